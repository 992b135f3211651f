"""The guard on the way out: names, rebinding, stalls and proxies, with a network that records every packet."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from execution.cancel import Cancel
from execution.egress import (
    EgressCancelled,
    EgressDenied,
    EgressFailed,
    EgressTimeout,
    connected,
)
from execution.egress.addresses import METADATA_NAMES
from tests.execution.egresskit import Network, ask, network
from tests.services.toolserver import answer, toolserver

__all__ = ["network"]

SOON = 0.25  # seconds; the promise is 0.12, but a test may share its processor with others


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "0.0.0.0", "0", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "①②⑦.0.0.1", "[::]"],
)
def test_no_spelling_of_this_machine_is_connected_to(network: Network, host: str) -> None:
    with pytest.raises(EgressDenied) as denied:
        ask(f"http://{host}:8080/")
    assert (denied.value.is_sent, network.dialled, network.asked) == (False, [], [])


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/"])
def test_a_metadata_service_gets_no_packet(network: Network, url: str, settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["169.254.0.0/16", "fd00::/8"]
    with pytest.raises(EgressDenied, match="metadata"):
        ask(url)
    assert network.dialled == []


@pytest.mark.parametrize("name", [*sorted(METADATA_NAMES), "Metadata.Google.Internal."])
def test_a26_the_name_of_a_metadata_service_is_not_even_looked_up(network: Network, name: str, settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["169.254.0.0/16"]
    with pytest.raises(EgressDenied, match="metadata"):
        ask(f"http://{name}/")
    assert (network.asked, network.dialled) == ([], [])


def test_the_name_of_a_metadata_service_that_is_opened_by_itself_is_judged_by_its_address(
    network: Network, settings: Any
) -> None:
    settings.PLACET_EGRESS_ALLOW = ["169.254.169.254"]
    network.names["metadata.google.internal"] = ["169.254.169.253"]
    with pytest.raises(EgressDenied, match="link-local"):
        ask("http://metadata.google.internal/")
    assert network.asked == ["metadata.google.internal"]


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("localhost", ["127.0.0.1"]),
        ("localhost", ["::1"]),
        ("metadata.example", ["169.254.169.254"]),
        ("public.example", ["127.0.0.1"]),
        ("mixed.example", ["8.8.8.8", "10.0.0.1"]),
        ("mixed.example", ["10.0.0.1", "8.8.8.8"]),
        ("mixed6.example", ["8.8.8.8", "::ffff:127.0.0.1"]),
        ("nat64.example", ["64:ff9b::7f00:1"]),
        ("sixtofour.example", ["2002:7f00:1::"]),
        ("cgnat.example", ["100.64.0.1"]),
    ],
)
def test_a_name_with_one_closed_address_is_closed(network: Network, name: str, addresses: list[str]) -> None:
    network.names[name] = addresses
    with pytest.raises(EgressDenied) as denied:
        ask(f"http://{name}/")
    assert (denied.value.is_sent, network.dialled) == (False, [])


def test_the_address_that_was_checked_is_the_one_connected_to_although_the_name_moves(network: Network) -> None:
    network.names["rebinding.example"] = ["8.8.8.8"]
    network.stall = lambda: network.asked[1:] and network.names.update({"rebinding.example": ["127.0.0.1"]})
    with pytest.raises(EgressFailed) as failed:
        ask("http://rebinding.example:8080/")
    assert network.dialled == [("8.8.8.8", 8080)]
    assert network.asked == ["rebinding.example"]
    assert failed.value.is_sent is False


def test_a_connection_that_ends_elsewhere_gets_no_byte(network: Network) -> None:
    network.names["public.example"] = ["8.8.8.8"]
    with toolserver({"/": answer("secret")}) as server:
        network.leads_to = ("127.0.0.1", server.port)
        with pytest.raises(EgressDenied, match="another address"):
            ask("http://public.example/")
    assert server.asked == []


def test_every_address_is_tried_before_a_host_is_given_up(network: Network) -> None:
    network.names["many.example"] = ["8.8.8.8", "2606:4700::1111", "1.1.1.1"]
    with pytest.raises(EgressFailed) as failed:
        ask("http://many.example/")
    assert [host for host, _ in network.dialled] == ["8.8.8.8", "2606:4700::1111", "1.1.1.1"]
    assert (failed.value.is_sent, failed.value.can_retry) == (False, True)
    assert "ECONNREFUSED" in failed.value.reason


@contextmanager
def swallowing(address: str, port: int) -> Iterator[None]:
    """Someone who listens and never takes a connection, with a queue that is full already."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect((address, port))
        yield


def test_an_address_that_swallows_packets_leaves_time_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    names = Network(names={"two.example": ["127.0.0.2", "127.0.0.1"]})
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    with toolserver({"/": answer("second")}) as server, swallowing("127.0.0.2", server.port):
        began = time.monotonic()
        assert ask(f"http://two.example:{server.port}/", seconds=1).body == b"second"
        assert 0.4 < time.monotonic() - began < 0.9
        with pytest.raises(EgressTimeout) as late:
            ask(f"http://127.0.0.2:{server.port}/", seconds=0.2)
    assert late.value.is_sent is False


def test_a_name_without_an_address_may_have_one_later(network: Network) -> None:
    with pytest.raises(EgressFailed) as failed:
        ask("http://nowhere.example/")
    assert (failed.value.is_sent, failed.value.can_retry) == (False, True)


def test_a_name_server_that_stalls_does_not_outlive_the_deadline(network: Network) -> None:
    over = threading.Event()
    network.stall = lambda: over.wait(10)
    began = time.monotonic()
    with pytest.raises(EgressTimeout) as late:
        ask("http://slow.example/", seconds=0.1)
    assert time.monotonic() - began < 0.1 + SOON
    assert late.value.is_sent is False
    over.set()


def test_a_cancellation_does_not_wait_for_a_name_server(network: Network) -> None:
    over, cancel = threading.Event(), Cancel()
    network.stall = lambda: over.wait(10)
    threading.Timer(0.1, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(EgressCancelled) as cancelled:
        ask("http://slow.example/", cancel=cancel)
    assert time.monotonic() - began < 0.1 + SOON
    assert cancelled.value.is_sent is False
    over.set()


def test_lookups_that_stall_are_bounded_in_number(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    network.stall = lambda: over.wait(10)
    monkeypatch.setattr("execution.egress.resolving._places", threading.BoundedSemaphore(2))
    for _ in range(2):
        with pytest.raises(EgressTimeout):
            ask("http://slow.example/", seconds=0.02)
    with pytest.raises(EgressFailed, match="too many"):
        ask("http://slow.example/", seconds=0.02)
    over.set()
    time.sleep(0.05)
    network.stall = None
    with pytest.raises(EgressFailed, match="no address"):
        ask("http://slow.example/")


def test_a_call_that_was_cancelled_before_it_began_connects_to_nobody(network: Network) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(EgressCancelled) as cancelled:
        ask("http://8.8.8.8/", cancel=cancel)
    assert (cancelled.value.is_sent, network.dialled) == (False, [])


def test_proxies_in_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with toolserver({"/": answer("proxied")}) as proxy, toolserver({"/": answer("direct")}) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert ask(f"{server.url}/").body == b"direct"
    assert proxy.connections == 0


def test_other_protocols_get_a_connection_to_a_checked_address_only(network: Network, settings: Any) -> None:
    for host in ("127.0.0.1", "[::1]", "127.1"):
        with pytest.raises(EgressDenied):
            connected(host, 50051, deadline=time.monotonic() + 1, cancel=None)
    assert network.dialled == []
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with toolserver({"/": answer("hello")}) as server:
        network.leads_to = ("127.0.0.1", server.port)
        with connected("127.0.0.1", server.port, deadline=time.monotonic() + 1, cancel=None) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Key", "a\r\nX-Admin: yes"),
        ("X-Key", "a\nb"),
        ("X-Key", "a\0b"),
        ("X-Key", "snow ☃"),
        ("X-Key", " padded"),
        ("X-Key", "x" * 20_000),
        ("X-Key\r\nX-Admin", "yes"),
        ("X Key", "yes"),
        ("", "yes"),
        ("Host", "elsewhere"),
        ("content-length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("CONNECTION", "keep-alive"),
        ("Proxy-Authorization", "Basic x"),
        ("Expect", "100-continue"),
        ("Upgrade", "h2c"),
    ],
)
def test_a_header_that_is_not_the_tools_to_set_is_refused_unsent(network: Network, name: str, value: str) -> None:
    with pytest.raises(EgressDenied) as denied:
        ask("http://8.8.8.8/", headers={name: value})
    assert (network.dialled, denied.value.is_sent) == ([], False)
    assert value not in denied.value.reason


def test_a_header_is_not_sent_twice_in_two_spellings(network: Network) -> None:
    with pytest.raises(EgressDenied, match="twice"):
        ask("http://8.8.8.8/", headers={"X-Key": "a", "x-key": "b"})
    assert network.dialled == []


def test_no_file_descriptor_is_left_behind(network: Network, settings: Any) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with toolserver({"/": answer("hello")}) as server:
        network.leads_to = ("127.0.0.1", server.port)
        before: Any = count()
        for _ in range(20):
            ask(f"{server.url}/")
        network.leads_to = None
        for _ in range(20):
            with pytest.raises(EgressFailed):
                ask(f"{server.url}/")
        time.sleep(0.1)
        assert count() <= before + 3
