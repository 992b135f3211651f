"""MCP's streams on the real web server: news arrive at once, and a client that goes away is noticed."""

from __future__ import annotations

import http.client
import json
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.stories.laboratory import Laboratory, lines
from tests.stories.product import Product, wait_until

pytestmark = pytest.mark.story

# No story here is about a worker that is lost; on a busy machine a short lease would tell such a one.
SETTINGS = {"PLACET_LEASE": "30"}

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"
ALLOW = """
import django; django.setup()
from policy import permissions
from policy.models import Agent
from registry.models import Toolkit
toolkit = Toolkit.objects.get(name="Calculator")
permissions.put(toolkit, "call", Agent.objects.get(name="tester"), actor="shell")
"""


class Door(Protocol):
    """A product, and a key to it."""

    product: Product
    key: str


@dataclass
class Demo:
    """The product of a newcomer, and the key that it printed."""

    product: Product
    key: str


class Client:
    """One request, whose answer is read line by line for as long as it is wanted."""

    def __init__(self, door: Door, verb: str, body: Any, headers: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", door.product.port, timeout=30)
        given = {"Authorization": f"Bearer {door.key}", "Content-Type": "application/json", "Accept": BOTH}
        content = None if body is None else json.dumps(body)
        self._connection.request(verb, "/mcp", content, {**given, **headers})
        self.response = self._connection.getresponse()
        self.status = self.response.status

    def lines(self) -> Iterator[str]:
        for line in self.response:
            yield line.decode().rstrip("\n")

    def messages(self) -> Iterator[Any]:
        for line in self.lines():
            if line.startswith("data:"):
                yield json.loads(line.removeprefix("data:"))

    def close(self) -> None:
        """Hangs up; a response that is not read to its end holds the socket, so both are closed."""
        self.response.close()
        self._connection.close()


def modern(door: Door, method: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> Client:
    own = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, **meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": own}}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": params.get("name", "")}
    return Client(door, "POST", body, {name: value for name, value in headers.items() if value})


def listen(door: Door) -> Client:
    return modern(door, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, {})


class Session:
    """A client of the older revisions."""

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}}
        with closing(self._post({"id": 0, "method": "initialize", "params": params}, {})) as client:
            id = client.response.headers["Mcp-Session-Id"]
            client.response.read()
        self.headers = {"Mcp-Session-Id": id, "MCP-Protocol-Version": LEGACY}

    def send(self, method: str, params: Mapping[str, Any], id: int | None = 1) -> Client:
        asked = {"method": method, "params": params, **({} if id is None else {"id": id})}
        return self._post(asked, self.headers)

    def get(self) -> Client:
        return Client(self._laboratory, "GET", None, self.headers)

    def _post(self, asked: Mapping[str, Any], headers: Mapping[str, str]) -> Client:
        return Client(self._laboratory, "POST", {"jsonrpc": "2.0", **asked}, headers)


def slow(laboratory: Laboratory, tool: str, seconds: float) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Parameters and _meta of a call that takes so long, and its ledger."""
    ledger = laboratory.ledger()
    arguments = {"ledger": str(ledger), "seconds": seconds}
    meta = {"placet.dev/call_id": uuid.uuid4().hex, "progressToken": "p"}
    return {"name": f"Lab_{tool}", "arguments": arguments}, meta, ledger


def the_call(laboratory: Laboratory, meta: Mapping[str, Any]) -> Any:
    (call,) = laboratory.send("GET", f"/api/calls/?search={meta['placet.dev/call_id']}").body["results"]
    return call


def test_46_a_modern_client_that_hangs_up_cancels_its_call(laboratory: Laboratory) -> None:
    params, meta, ledger = slow(laboratory, "Slow", 15)
    client = modern(laboratory, "tools/call", params, meta)
    assert client.response.headers["Content-Type"] == "text/event-stream"
    assert client.response.headers["X-Accel-Buffering"] == "no"
    assert next(client.lines()) == ":"
    assert wait_until(lambda: lines(ledger) == 1)
    client.close()
    gone = time.monotonic()
    ended = laboratory.ended(the_call(laboratory, meta)["id"])
    assert (ended["state"], ended["door"]) == ("cancelled", "mcp")
    assert time.monotonic() - gone < 6


def test_46_a_client_that_stays_is_kept_awake_and_answered(laboratory: Laboratory) -> None:
    params, meta, _ = slow(laboratory, "SlowButSafe", 4)
    with closing(modern(laboratory, "tools/call", params, meta)) as client:
        told = list(client.lines())
    assert told.count(":") >= 3
    (answer,) = [json.loads(line.removeprefix("data:")) for line in told if line.startswith("data:")]
    assert (answer["id"], answer["result"]["resultType"], answer["result"]["isError"]) == (1, "complete", False)


def test_27_a_client_with_a_session_that_hangs_up_cancels_nothing(laboratory: Laboratory) -> None:
    params, meta, ledger = slow(laboratory, "SlowButSafe", 4)
    client = Session(laboratory).send("tools/call", {**params, "_meta": meta})
    assert next(client.lines()) == ":"
    assert wait_until(lambda: lines(ledger) == 1)
    client.close()
    assert laboratory.ended(the_call(laboratory, meta)["id"])["state"] == "succeeded"


def test_27_a_client_with_a_session_cancels_by_saying_so_and_is_sent_no_response(laboratory: Laboratory) -> None:
    params, meta, ledger = slow(laboratory, "Slow", 15)
    session = Session(laboratory)
    with closing(session.send("tools/call", {**params, "_meta": meta}, id=7)) as client:
        assert next(client.lines()) == ":"
        assert wait_until(lambda: lines(ledger) == 1)
        with closing(Session(laboratory).send("notifications/cancelled", {"requestId": 7}, id=None)) as other:
            assert other.status == 202  # the same number in another session is another request
        assert the_call(laboratory, meta)["state"] == "running"
        with closing(session.send("notifications/cancelled", {"requestId": 7}, id=None)) as told:
            assert (told.status, told.response.read()) == (202, b"")
        assert list(client.messages()) == []
    assert laboratory.ended(the_call(laboratory, meta)["id"])["state"] == "cancelled"


def test_24_48_whoever_listens_hears_at_once_that_it_may_call_more(laboratory: Laboratory) -> None:
    with closing(listen(laboratory)) as new, closing(Session(laboratory).get()) as old:
        from_new, from_old = new.messages(), old.messages()
        assert next(from_new)["method"] == "notifications/subscriptions/acknowledged"
        laboratory.script(ALLOW)
        changed = time.monotonic()
        assert next(from_new)["method"] == "notifications/tools/list_changed"
        assert next(from_old) == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        assert time.monotonic() - changed < 3
    with closing(modern(laboratory, "tools/list", {}, {})) as client:
        assert "Calculator_Add" in {tool["name"] for tool in json.load(client.response)["result"]["tools"]}


def test_streams_are_bounded_and_the_places_of_those_who_left_are_free_again(laboratory: Laboratory) -> None:
    """A quarter of 64 threads for streams, half of those for one agent."""
    held: list[Client] = []

    def hold_all() -> bool:
        client = listen(laboratory)
        if client.status == 200:
            held.append(client)
        else:
            client.close()
        return len(held) == 8

    assert wait_until(hold_all)
    with closing(listen(laboratory)) as refused:
        assert (refused.status, json.load(refused.response)["error"]["code"]) == (429, 42900)
    assert laboratory.is_healthy()
    for client in held:
        client.close()

    def is_free() -> bool:
        with closing(listen(laboratory)) as client:
            return client.status == 200

    assert wait_until(is_free, 10)


def test_clients_that_never_send_their_bodies_leave_the_threads_to_others(laboratory: Laboratory) -> None:
    """More of them than there are threads; each has announced a body, and sent one byte of it."""
    told = [f"Host: 127.0.0.1:{laboratory.product.port}", f"Authorization: Bearer {laboratory.key}", f"Accept: {BOTH}"]
    head = ["POST /mcp HTTP/1.1", *told, "Content-Type: application/json", "Content-Length: 5000", "", "{"]
    with ExitStack() as open_ones:
        for _ in range(80):
            half = socket.create_connection(("127.0.0.1", laboratory.product.port), timeout=10)
            open_ones.enter_context(half).sendall("\r\n".join(head).encode())
        assert wait_until(laboratory.is_healthy, 15)
        assert half.recv(12) == b"HTTP/1.1 503"  # the last of them
        assert laboratory.is_healthy()


def test_48_a_server_that_ends_says_so_to_whoever_listens_and_does_not_wait_for_them(tmp_path: Path) -> None:
    product = Product(tmp_path / "home", environment={"DATABASE_URL": "", "CELERY_BROKER_URL": ""}).ready()
    try:
        demo = Demo(product, json.loads((tmp_path / "home" / "demo.json").read_text())["agents"][0]["key"])
        with closing(listen(demo)) as client:
            messages = client.messages()
            assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
            assert product.finish() == 0
            assert next(messages)["result"]["resultType"] == "complete"
    finally:
        product.process.kill()
    assert "Killing" not in product.output
