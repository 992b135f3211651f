"""The tasks extension of 2026-07-28: a task is a call, and a person who must agree is a question inside of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from execution import calls
from execution.errors import ErrorCode, Failure
from execution.models import Call, State
from execution.pipeline.perform import perform
from execution.protocols.mcp import calling
from policy import agents, approvals
from policy.models import Approval
from registry.models import ToolkitVersion
from tests.execution.approving import events, lines, move_clock
from tests.factories.registry import published
from tests.mcp.taskkit import PAGES, TASKS, Answer, LegacyClient, ModernClient

pytestmark = pytest.mark.django_db

TOOL = "Lab_Fire"
EXTENSION = "io.modelcontextprotocol/tasks"
ENVELOPE = {"taskId", "status", "result", "error", "inputRequests", "requestState"}


@pytest.fixture
def key(lab: ToolkitVersion, unsent: list[Any]) -> str:
    return agents.create("bot", actor="shell", call=["Lab"]).key


@pytest.fixture
def client(key: str) -> ModernClient:
    return ModernClient(key, TASKS)


@pytest.fixture(autouse=True)
def _nobody_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "QUICK", 0.05)
    monkeypatch.setattr(calling, "HANDOVER", 0.05)


def decide(by: User, answer: str) -> None:
    approval = Approval.objects.get()
    approvals.decide(approval.pk, by=by, answer=answer, reason="so be it")
    perform(approval.call)


def update(client: ModernClient, task: str, answers: Any) -> Answer:
    return client.send("tasks/update", {"taskId": task, "inputResponses": answers})


def test_the_extension_is_advertised_to_modern_clients(key: str) -> None:
    capabilities = ModernClient(key).send("server/discover").result["capabilities"]
    assert EXTENSION in capabilities["extensions"]
    assert "tasks" not in capabilities


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_client_that_does_not_declare_it_is_told_what_is_missing(key: str, method: str) -> None:
    answer = ModernClient(key).send(method, {"taskId": "x", "inputResponses": {}})
    assert (answer.status, answer.code) == (400, -32021)
    assert answer.error["data"]["requiredCapabilities"] == {"extensions": {EXTENSION: {}}}


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
def test_what_the_extension_left_out_is_unknown(client: ModernClient, method: str) -> None:
    answer = client.send(method, {"taskId": "x"})
    assert (answer.status, answer.code) == (404, -32601)


def test_a_call_that_needs_a_person_becomes_a_task_with_the_link(client: ModernClient, ledger: Path) -> None:
    made = client.call(TOOL, {"ledger": str(ledger)}).result
    assert (made["resultType"], made["status"]) == ("task", "working")
    assert made.keys() & ENVELOPE == {"taskId", "status"}
    assert made["taskId"] == str(Call.objects.get().pk)
    assert made["ttlMs"] is None
    assert made["pollIntervalMs"] == 5_000
    assert made["createdAt"].endswith("Z")
    assert made["lastUpdatedAt"] >= made["createdAt"]
    assert f"/approvals/{Approval.objects.get().pk}/" in made["statusMessage"]
    got = client.get(made["taskId"])
    assert got["resultType"] == "complete"
    assert {name: got[name] for name in made if name != "resultType"} == {
        name: made[name] for name in made if name != "resultType"
    }


def test_an_approved_task_completes_with_the_result_inside(client: ModernClient, ana: User, ledger: Path) -> None:
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    approvals.decide(Approval.objects.get().pk, by=ana, answer="approve")
    assert (client.get(task)["status"], client.get(task)["pollIntervalMs"]) == ("working", 1_000)
    perform(Call.objects.get().pk)
    got = client.get(task)
    assert (got["status"], got["resultType"]) == ("completed", "complete")
    assert got["result"]["content"] == [{"type": "text", "text": "1"}]
    assert "io.modelcontextprotocol/related-task" not in got["result"].get("_meta", {})
    assert "error" not in got
    assert "pollIntervalMs" not in got
    assert got["lastUpdatedAt"] > got["createdAt"]
    assert lines(ledger) == 1


def test_a_denied_task_completes_with_an_error_that_says_why(client: ModernClient, ana: User, ledger: Path) -> None:
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    decide(ana, "deny")
    got = client.get(task)
    assert (got["status"], got["result"]["isError"]) == ("completed", True)
    assert "so be it" in got["result"]["content"][0]["text"]
    assert "so be it" in got["statusMessage"]


def test_a_task_that_nobody_decided_completes_with_an_error(client: ModernClient, ledger: Path) -> None:
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    move_clock(Approval.objects.get(), decide_by=-1)
    approvals.expire_due()
    got = client.get(task)
    assert (got["status"], got["result"]["isError"]) == ("completed", True)


def test_a_tools_own_error_is_a_result_and_a_fault_of_ours_is_a_failure(client: ModernClient) -> None:
    task = client.call("Lab_Fail", {"message": "no luck"}).result["taskId"]
    perform(Call.objects.get().pk)
    got = client.get(task)
    assert (got["status"], got["result"]["isError"]) == ("completed", True)
    assert "no luck" in got["result"]["content"][0]["text"]
    broken = client.call("Lab_Fail", {"message": "again"}).result["taskId"]
    row = Call.objects.get(pk=broken)
    calls._end_queued(row, State.FAILED, Failure(code=ErrorCode.INTERNAL, message="a bug"), "call.failed", "system", {})
    got = client.get(broken)
    assert (got["status"], got["error"]["code"]) == ("failed", -32603)
    assert "result" not in got


def test_a_client_that_opens_pages_finds_the_question_in_the_task(key: str, ledger: Path) -> None:
    client = ModernClient(key, PAGES | TASKS)
    made = client.call(TOOL, {"ledger": str(ledger)}).result
    assert (made["resultType"], made["status"]) == ("task", "input_required")
    assert "inputRequests" not in made
    asked = client.get(made["taskId"])["inputRequests"]["approval"]
    assert (asked["method"], asked["params"]["mode"]) == ("elicitation/create", "url")
    assert asked["params"]["url"].endswith(f"/approvals/{Approval.objects.get().pk}/")


@pytest.mark.parametrize("action", ["accept", "cancel"])
def test_an_answered_question_is_not_asked_again_and_the_call_waits_on(
    key: str, ana: User, ledger: Path, action: str
) -> None:
    client = ModernClient(key, PAGES | TASKS)
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    answer = update(client, task, {"approval": {"action": action}})
    assert answer.result.keys() & ENVELOPE == set()
    assert answer.result["resultType"] == "complete"
    got = client.get(task)
    assert got["status"] == "working"
    assert "inputRequests" not in got
    assert "/approvals/" in got["statusMessage"]
    assert Approval.objects.get().state == Approval.State.PENDING
    update(client, task, {"approval": {"action": "decline"}})  # too late: it was answered
    assert Call.objects.get().state == State.AWAITING_APPROVAL
    decide(ana, "approve")
    assert client.get(task)["result"]["content"][0]["text"] == "1"


def test_a_declined_question_cancels_the_task(key: str, ledger: Path) -> None:
    client = ModernClient(key, PAGES | TASKS)
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    update(client, task, {"approval": {"action": "decline"}})
    assert client.get(task)["status"] == "cancelled"
    assert Approval.objects.get().state == Approval.State.WITHDRAWN


def test_answers_to_nothing_are_passed_over_and_malformed_ones_refused(key: str, ledger: Path) -> None:
    client = ModernClient(key, PAGES | TASKS)
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    assert update(client, task, {"unknown-key": {"ignored": True}}).result["resultType"] == "complete"
    assert update(client, task, {}).result["resultType"] == "complete"
    wrong: list[Any] = [None, [], {"approval": 5}, {"approval": {"action": "yes"}}]
    for malformed in wrong:
        assert update(client, task, malformed).code == -32602
    assert client.send("tasks/update", {"taskId": task}).code == -32602
    assert client.get(task)["status"] == "input_required"


def test_a_cancelled_task_never_runs_and_cancelling_is_acknowledged_every_time(
    client: ModernClient, ledger: Path
) -> None:
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    for _ in range(2):
        acknowledged = client.send("tasks/cancel", {"taskId": task}).result
        assert acknowledged["resultType"] == "complete"
        assert acknowledged.keys() & ENVELOPE == set()
    assert client.get(task)["status"] == "cancelled"
    assert "result" not in client.get(task)
    assert Approval.objects.get().state == Approval.State.WITHDRAWN
    assert events("call", task)[-1] == "call.cancelled"


def test_a_task_that_ended_is_acknowledged_and_stays_as_it_is(client: ModernClient, ana: User, ledger: Path) -> None:
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    decide(ana, "approve")
    assert client.send("tasks/cancel", {"taskId": task}).result["resultType"] == "complete"
    assert client.get(task)["status"] == "completed"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_task_of_another_agent_does_not_exist(client: ModernClient, ledger: Path, method: str) -> None:
    task = client.call(TOOL, {"ledger": str(ledger)}).result["taskId"]
    other = ModernClient(agents.create("other", actor="shell", call=["Lab"]).key, TASKS)
    foreign = other.send(method, {"taskId": task, "inputResponses": {"approval": {"action": "decline"}}})
    unknown = other.send(method, {"taskId": "00000000-0000-7000-8000-000000000000", "inputResponses": {}})
    assert (foreign.code, foreign.error["message"]) == (unknown.code, unknown.error["message"])
    assert foreign.code == -32602
    assert Call.objects.get().state == State.AWAITING_APPROVAL


@pytest.mark.parametrize("task", ["", "nonsense", "{00000000-0000-7000-8000-000000000000}", "0" * 32])
def test_an_id_that_is_none_is_unknown(client: ModernClient, task: str) -> None:
    assert client.send("tasks/get", {"taskId": task}).code == -32602


def test_a_call_that_takes_long_becomes_a_task_where_the_client_declares_it(client: ModernClient, key: str) -> None:
    made = client.call("Lab_Environment", {}).result
    assert (made["resultType"], made["status"], made["pollIntervalMs"]) == ("task", "working", 1_000)
    perform(Call.objects.get().pk)
    assert client.get(made["taskId"])["status"] == "completed"


def test_a_quick_tool_answers_at_once_even_if_a_task_is_hinted_at(client: ModernClient) -> None:
    answer = client.call("Lab_Echo", {"value": "hello"}, task={"ttl": 60_000, "pollInterval": 100})
    assert answer.result["resultType"] == "complete"
    assert answer.text == "hello"


def test_a_tool_that_must_be_a_task_says_so_to_those_who_cannot(key: str, client: ModernClient) -> None:
    published("Jobs", "1.0.0", {"name": "Run", "annotations": {"taskSupport": "required"}})
    agents.create("worker", actor="shell", call=["Jobs"])
    key = agents.create("runner", actor="shell", call=["Jobs"]).key
    refused = ModernClient(key).call("Jobs_Run", {"a": 1, "b": 2})
    assert (refused.status, refused.code) == (400, -32021)
    assert refused.error["data"]["requiredCapabilities"] == {"extensions": {EXTENSION: {}}}
    assert LegacyClient(key).call("Jobs_Run", {"a": 1, "b": 2}).code == -32601
    assert Call.objects.count() == 0
    assert ModernClient(key, TASKS).call("Jobs_Run", {"a": 1, "b": 2}).result["resultType"] == "task"
    made = LegacyClient(key).call("Jobs_Run", {"a": 1, "b": 2}, task={})
    assert made.result["task"]["status"] == "working"
