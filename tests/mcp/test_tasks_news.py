"""Clients that listen: what their tasks do, and that people have decided what they were sent to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from execution.models import Call
from execution.pipeline.perform import perform
from execution.protocols.mcp import completions, sse, subscriptions, tasknews
from policy import agents, approvals
from policy.models import Approval
from registry.models import ToolkitVersion
from tests.mcp.taskkit import ACCEPT, LEGACY, META, MODERN, PAGES, TASKS, Answer, LegacyClient, ModernClient

pytestmark = pytest.mark.django_db

TOOL = "Lab_Fire"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture
def key(lab: ToolkitVersion, unsent: list[Any]) -> str:
    return agents.create("bot", actor="shell", call=["Lab"]).key


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "TICK", 0.01)
    monkeypatch.setattr(sse, "KEEP_ALIVE", 0.0)
    monkeypatch.setattr(completions, "LOOK", 0.0)
    monkeypatch.setattr(tasknews, "LOOK", 0.0)


class Listening:
    """A stream that is read piece by piece; it must be left."""

    def __init__(self, response: Any) -> None:
        assert response.streaming, response.content
        self._response = response
        self._pieces: Iterator[bytes] = iter(response.streaming_content)

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()

    def next(self, most: int = 200) -> dict[str, Any]:
        for _ in range(most):
            for line in next(self._pieces).decode().splitlines():
                if line.startswith("data:"):
                    message: dict[str, Any] = json.loads(line[5:])
                    return message
        raise AssertionError("the stream has nothing to say")


def listen(key: str, ids: Any, capabilities: dict[str, Any] = TASKS) -> Any:
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": capabilities}
    params = {"notifications": {"taskIds": ids}, "_meta": meta}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
    return post(key, {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}, headers)


def post(key: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    sent = {"Authorization": f"Bearer {key}", "Accept": ACCEPT, **headers}
    return Client().post("/mcp", body, content_type="application/json", headers=sent)


def test_a_task_is_told_of_as_it_moves(key: str, ana: User, ledger: Path) -> None:
    client = ModernClient(key, TASKS)
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    with Listening(listen(key, [task])) as stream:
        acknowledged = stream.next()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"taskIds": [task]}
        first = stream.next()
        assert first["method"] == "notifications/tasks"
        assert (first["params"]["taskId"], first["params"]["status"]) == (task, "working")
        approvals.decide(Approval.objects.get().pk, by=ana, answer="approve")
        assert stream.next()["params"]["statusMessage"] == "The call is queued."
        perform(Call.objects.get().pk)
        last = stream.next()["params"]
        assert last.pop("_meta")[SUBSCRIPTION] == 7
        got = client.get(task)
        assert {**last, "resultType": "complete", "_meta": got.get("_meta")} == {"_meta": None, **got}
        assert last["result"]["content"] == [{"type": "text", "text": "1"}]


def test_only_ones_own_tasks_that_go_on_are_agreed_to(key: str, ledger: Path) -> None:
    client = ModernClient(key, TASKS)
    over = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    client.send("tasks/cancel", {"taskId": over})
    other = agents.create("other", actor="shell", call=["Lab"]).key
    foreign = ModernClient(other, TASKS).call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    with Listening(listen(key, [over, foreign, "nonsense"])) as stream:
        assert stream.next()["params"]["notifications"] == {"taskIds": []}


def test_who_does_not_declare_tasks_may_not_listen_to_them(key: str) -> None:
    answer = Answer(listen(key, [], {}))
    assert (answer.status, answer.code) == (400, -32021)
    for malformed in ("x", [5], ["x"] * (tasknews.MOST + 1)):
        assert Answer(listen(key, malformed)).code == -32602


def test_a_session_that_was_sent_to_the_page_hears_that_people_decided(key: str, ana: User, ledger: Path) -> None:
    client = LegacyClient(key, PAGES)
    asked = client.call(TOOL, {"ledger": str(ledger)}).error["data"]["elicitations"][0]
    stranger = LegacyClient(key, PAGES)
    with Listening(open_stream(stranger)) as elsewhere, Listening(open_stream(client)) as stream:
        approvals.decide(Approval.objects.get().pk, by=ana, answer="approve")
        with pytest.raises(AssertionError, match="nothing to say"):
            elsewhere.next(most=5)
        told = stream.next()
        assert told["method"] == "notifications/elicitation/complete"
        assert told["params"] == {"elicitationId": asked["elicitationId"]}
        with pytest.raises(AssertionError, match="nothing to say"):
            stream.next(most=5)  # once


def test_it_is_told_on_one_stream_only(key: str, ana: User, ledger: Path) -> None:
    client = LegacyClient(key, PAGES)
    client.call(TOOL, {"ledger": str(ledger)})
    with Listening(open_stream(client)) as one, Listening(open_stream(client)) as other:
        approvals.decide(Approval.objects.get().pk, by=ana, answer="deny", reason="no")
        assert one.next()["method"] == "notifications/elicitation/complete"
        with pytest.raises(AssertionError, match="nothing to say"):
            other.next(most=5)


def open_stream(client: LegacyClient) -> Any:
    headers = {"Authorization": f"Bearer {client.key}", "Accept": "text/event-stream", **client.headers}
    assert headers["MCP-Protocol-Version"] == LEGACY
    return Client().get("/mcp", headers=headers)


def test_places_are_given_back(key: str, ledger: Path) -> None:
    client = ModernClient(key, TASKS)
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    before = subscriptions.PLACES.taken
    with Listening(listen(key, [task])) as stream:
        stream.next()
        assert subscriptions.PLACES.taken == before + 1
    listen(key, [task]).close()  # never read
    assert subscriptions.PLACES.taken == before
