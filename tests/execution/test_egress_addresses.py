"""Which addresses and spellings may be reached; judged without a single packet."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from config import env
from execution.egress import EgressDenied
from execution.egress.addresses import METADATA, closed, networks
from execution.egress.target import parse

CLOSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "::8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::808:808",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
    "2001:0:808:808:0:0:80ff:fffe",  # Teredo: the client behind it is 127.0.0.1
    "2001:0:7f00:1:0:0:f7f7:f7f7",  # Teredo: its server is
    "2001:0:808:808:0:0:f7f7:f7f7",
    "2001:1::1",
    "2a00:1450::5efe:10.0.0.1",
    "100::1",
    "2001:2::1",
    "2001:db8::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "1::1",
]
OPEN = [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("text", CLOSED)
def test_an_address_that_is_not_everybodys_is_closed(text: str) -> None:
    assert closed(ip_address(text), ())


@pytest.mark.parametrize("text", OPEN)
def test_a_public_address_is_open(text: str) -> None:
    assert closed(ip_address(text), ()) == ""


@given(st.ip_addresses())
def test_what_is_open_is_public_to_everyone_else_too(address: IPv4Address | IPv6Address) -> None:
    if closed(address, ()) == "":
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize("address", sorted(METADATA, key=str), ids=str)
def test_a_metadata_service_is_closed_even_in_an_opened_range(address: object) -> None:
    everything = networks(("0.0.0.0/0", "::/0"))
    assert closed(ip_address(str(address)), everything) == "a metadata service"
    assert closed(ip_address(str(address)), networks((str(address),))) == ""


@pytest.mark.parametrize(
    "text", ["::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "2001::5601:5601"]
)
def test_no_way_round_leads_to_a_metadata_service(text: str) -> None:
    assert closed(ip_address(text), networks(("0.0.0.0/0", "::/0"))) == "a metadata service"


def test_an_opened_range_is_open_and_nothing_beside_it() -> None:
    allowed = networks(("127.0.0.0/8", "fd00::/8"))
    assert [closed(ip_address(text), allowed) for text in ("127.0.0.1", "::ffff:127.9.9.9", "fd01::1")] == ["", "", ""]
    assert closed(ip_address("10.0.0.1"), allowed)
    assert closed(ip_address("::1"), allowed)
    assert closed(ip_address("64:ff9b::7f00:1"), allowed)  # another machine's loopback


SPELLINGS = ["0", "127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.0.0.01", "①②⑦.0.0.1", "1.2.3", "0x"]


@pytest.mark.parametrize("host", SPELLINGS)
def test_a_host_that_only_some_readers_take_for_an_address_is_refused(host: str) -> None:
    with pytest.raises(EgressDenied):
        parse(f"http://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "http://good@evil.example/",
        "http://good:pass@evil.example/",
        "http://evil.example#good.example",
        "http://evil.example\\@good.example/",
        "http:\\\\evil.example/",
        "http://evil.example/\tx",
        "http://evil.example/ x",
        "http://evil.example/x\r\nHost: y",
        "http://evil.example/%00",
        "http://evil.example/%0d%0aX:1",
        "http://evil%00.example/",
        "http://evil.example%2f@good/",
        "http://[::1%25eth0]/",
        "http://[::1/",
        "http://::1/",
        "http://[1.2.3.4]/",
        "http://evil.example:/",
        "http://evil.example:0/",
        "http://evil.example:65536/",
        "http://evil.example:+80/",
        "http://evil.example:22/",
        "http://evil.example:25/",
        "http://evil.example:6379/",
        "http://evil.example:5432/",
        "http://.example/",
        "http://a..example/",
        "http://-a.example/",
        "http:///path",
        "http:/evil.example",
        "//evil.example/",
        "ftp://evil.example/",
        "file:///etc/passwd",
        "gopher://evil.example/",
        "unix:///var/run/docker.sock",
        "http+unix://%2fvar%2frun%2fdocker.sock/",
        "javascript:alert(1)",
        "http://éxample.test/",
        "http://e.example/é",
        "",
        "http://" + "a" * 64 + ".example/",
        "http://evil.example/" + "a" * 5000,
    ],
)
def test_an_address_that_two_readers_may_read_differently_is_refused(url: str) -> None:
    with pytest.raises(EgressDenied) as refused:
        parse(url)
    assert "pass" not in refused.value.reason


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("http://tool.example", "tool.example", 80, "/", "tool.example"),
        ("HTTPS://Tool.Example:8443/a/b?c=d&e", "tool.example", 8443, "/a/b?c=d&e", "tool.example:8443"),
        ("https://tool.example.?x", "tool.example.", 443, "/?x", "tool.example"),
        ("http://[2606:4700::1111]:8080/", "2606:4700::1111", 8080, "/", "[2606:4700::1111]:8080"),
        ("http://127.0.0.1:8000/a@b", "127.0.0.1", 8000, "/a@b", "127.0.0.1:8000"),
        ("http://my_service:9000/", "my_service", 9000, "/", "my_service:9000"),
        ("http://tool.example/100%25", "tool.example", 80, "/100%25", "tool.example"),
    ],
)
def test_a_plain_address_is_taken_apart(url: str, host: str, port: int, path: str, authority: str) -> None:
    target = parse(url)
    assert (target.host, target.port, target.path, target.authority) == (host, port, path, authority)


_PIECES = ["http://", "https://", "a.example", "127.0.0.1", "[::1]", ":", "80", "@", "/", "?", "#", "%", ".", "\\", "é"]


@given(st.lists(st.sampled_from([*_PIECES, " ", "\t", "x", "0x7f", "[", "]", "-", "_"]), max_size=8).map("".join))
def test_what_we_read_in_an_address_is_what_another_reader_reads(rest: str) -> None:
    url = f"http://{rest}"
    try:
        target = parse(url)
    except EgressDenied:
        return
    other = urlsplit(url)
    assert (other.hostname, other.port or 80, other.username) == (target.host, target.port, None)


def test_the_setting_takes_ranges_and_names_the_one_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACET_EGRESS_ALLOW", "127.0.0.0/8, fd00::/8,192.0.2.7")
    assert env.networks("PLACET_EGRESS_ALLOW") == ["127.0.0.0/8", "fd00::/8", "192.0.2.7"]
    for bad in ("127.0.0.1/8", "localhost", "10.0.0.0/33", "*"):
        monkeypatch.setenv("PLACET_EGRESS_ALLOW", f"127.0.0.0/8,{bad}")
        with pytest.raises(ImproperlyConfigured, match="PLACET_EGRESS_ALLOW"):
            env.networks("PLACET_EGRESS_ALLOW")
