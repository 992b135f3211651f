"""R13: where the redactor fails, nobody sees what the tool said, and the call says that it failed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.test import Client

from audit import redaction
from audit.models import Event
from execution.models import Attempt, Call
from execution.runtimes import RUNTIMES
from execution.runtimes.base import Invocation, RunResult
from tests.execution.secretkit import VALUE, FakeRuntime, keep, publish_sender

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

DOORS = {
    "/tools/call": {"request": {"tool_id": "Sender.Send", "input": {}}},
    "/call": {"request": {"tool_id": "Sender.Send", "input": {}}},
    "/contract/v1/execute": {"request_id": "r", "tool": {"name": "Sender_Send"}},
    "/api/calls/": {"tool_id": "Sender.Send", "input": {}},
}


def says(invocation: Invocation) -> RunResult:
    return RunResult(value={"text": f"the key is {VALUE}"})


def complains(invocation: Invocation) -> RunResult:
    from execution.errors import CallError, ErrorCode

    raise CallError(ErrorCode.EXECUTION_FAILED, f"bad key {VALUE}", developer_message=VALUE, details={"key": VALUE})


def broken(*args: Any) -> Any:
    raise MemoryError


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    from policy import agents

    keep()
    publish_sender({"profile": "bearer", "secretRef": "search-key"})
    monkeypatch.setattr(redaction, "_by_value", broken)
    return agents.create("robot", actor="shell", call=["Sender"]).key


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("answer", [says, complains])
def test_r13_an_answer_that_cannot_be_searched_for_secrets_is_a_failure_that_shows_nothing(
    client: Client, key: str, monkeypatch: pytest.MonkeyPatch, path: str, answer: Any
) -> None:
    monkeypatch.setitem(RUNTIMES, "http", FakeRuntime(answer))
    headers = {"OXP-API-Key": key, "Prefer": "wait=10"}
    reply = client.post(path, DOORS[path], content_type="application/json", headers=headers)
    assert reply.status_code in (200, 502), reply.content
    if path in ("/contract/v1/execute", "/api/calls/"):
        assert reply.json()["error"]["code"] == "execution_failed"
    else:
        assert reply.json().get("result", reply.json())["success"] is False
    call = Call.objects.get()
    assert (call.state, orjson.loads(call.error)["code"], call.result) == ("failed", "execution_failed", "")
    kept = [reply.content.decode(), call.error, Attempt.objects.get().detail]
    kept += Event.objects.values_list("detail", flat=True)
    assert not any(VALUE in text for text in kept)


def test_a_tool_that_returns_those_very_words_has_answered(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from policy import agents

    publish_sender({})
    monkeypatch.setitem(RUNTIMES, "http", FakeRuntime(lambda invocation: RunResult(value="[UNREDACTABLE]")))
    made = agents.create("robot", actor="shell", call=["Sender"])
    reply = client.post(
        "/tools/call",
        DOORS["/tools/call"],
        content_type="application/json",
        headers={"OXP-API-Key": made.key},
    )
    assert reply.json()["result"]["value"] == "[UNREDACTABLE]"
