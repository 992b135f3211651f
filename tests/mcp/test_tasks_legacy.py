"""The tasks of 2025-11-25: the client asks for one, and its result is waited for, but never without end."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from execution.models import Call, State
from execution.pipeline.perform import perform
from execution.protocols.mcp import blocking, tasks
from execution.protocols.mcp.exchange import Era, Exchange, Stream
from policy import agents, approvals
from policy.caller import Caller
from policy.models import Approval
from registry.models import ToolkitVersion
from tests.execution.approving import lines, move_clock
from tests.mcp.taskkit import FORMS, PAGES, LegacyClient

pytestmark = pytest.mark.django_db

TOOL = "Lab_Fire"
RELATED = "io.modelcontextprotocol/related-task"


@pytest.fixture
def key(lab: ToolkitVersion, unsent: list[Any]) -> str:
    return agents.create("bot", actor="shell", call=["Lab"]).key


@pytest.fixture
def client(key: str) -> LegacyClient:
    return LegacyClient(key)


def start(client: LegacyClient, ledger: Path) -> dict[str, Any]:
    task: dict[str, Any] = client.call(TOOL, {"ledger": str(ledger)}, task={"ttl": 60_000}).result["task"]
    return task


def decide(by: User, answer: str) -> None:
    approval = Approval.objects.get()
    approvals.decide(approval.pk, by=by, answer=answer, reason="so be it")
    perform(approval.call)


def test_tasks_are_a_capability_of_this_revision_only(key: str) -> None:
    declared = LegacyClient(key).server["capabilities"]["tasks"]
    assert declared == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert "tasks" not in LegacyClient(key, version="2025-06-18").server["capabilities"]


def test_tools_say_whether_they_can_be_tasks(client: LegacyClient) -> None:
    listed = {tool["name"]: tool for tool in client.send("tools/list").result["tools"]}
    assert listed[TOOL]["execution"] == {"taskSupport": "optional"}
    assert listed["Lab_Echo"].get("execution", {}).get("taskSupport", "forbidden") == "forbidden"


@pytest.mark.parametrize("declared", [{}, FORMS, PAGES])
def test_a_task_begins_working_and_tells_where_a_person_can_help(
    key: str, ledger: Path, declared: dict[str, Any]
) -> None:
    client = LegacyClient(key, declared)
    answer = client.call(TOOL, {"ledger": str(ledger)}, task={"ttl": 60_000}).result
    task = answer["task"]
    assert (task["taskId"], task["status"], task["ttl"]) == (str(Call.objects.get().pk), "working", None)
    assert task["pollInterval"] == 5_000
    link = f"/approvals/{Approval.objects.get().pk}/"
    assert link in task["statusMessage"]
    assert link in answer["_meta"]["io.modelcontextprotocol/model-immediate-response"]
    assert client.get(task["taskId"]) == task


def test_an_approved_task_has_its_result_and_names_the_task_in_it(
    client: LegacyClient, ana: User, ledger: Path
) -> None:
    task = start(client, ledger)["taskId"]
    decide(ana, "approve")
    assert client.get(task)["status"] == "completed"
    for _ in range(2):
        result = client.send("tasks/result", {"taskId": task}).result
        assert result["content"] == [{"type": "text", "text": "1"}]
        assert result["_meta"][RELATED] == {"taskId": task}
    assert lines(ledger) == 1


def test_a_denied_and_an_expired_task_failed_and_say_why(client: LegacyClient, ana: User, ledger: Path) -> None:
    task = start(client, ledger)["taskId"]
    decide(ana, "deny")
    assert (client.get(task)["status"], "so be it" in client.get(task)["statusMessage"]) == ("failed", True)
    result = client.send("tasks/result", {"taskId": task}).result
    assert result["isError"] is True
    assert "so be it" in result["content"][0]["text"]
    other = start(client, ledger.with_name("other"))["taskId"]
    move_clock(Approval.objects.get(call=other), decide_by=-1)
    approvals.expire_due()
    assert client.get(other)["status"] == "failed"
    assert client.send("tasks/result", {"taskId": other}).result["isError"] is True


def test_a_cancelled_task_is_cancelled_and_cannot_be_cancelled_twice(client: LegacyClient, ledger: Path) -> None:
    task = start(client, ledger)["taskId"]
    cancelled = client.send("tasks/cancel", {"taskId": task}).result
    assert (cancelled["taskId"], cancelled["status"]) == (task, "cancelled")
    assert client.send("tasks/cancel", {"taskId": task}).code == -32602
    assert client.send("tasks/result", {"taskId": task}).result["isError"] is True
    assert Approval.objects.get().state == Approval.State.WITHDRAWN


def test_a_task_that_ended_cannot_be_cancelled(client: LegacyClient, ana: User, ledger: Path) -> None:
    task = start(client, ledger)["taskId"]
    decide(ana, "approve")
    assert client.send("tasks/cancel", {"taskId": task}).code == -32602
    assert client.get(task)["status"] == "completed"


def test_a_running_task_is_cancelled_at_once_and_stays_so_whatever_its_tool_does(
    client: LegacyClient, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = client.call("Lab_Ring", {"ledger": str(ledger)}, task={}).result["task"]["taskId"]
    seen: list[Any] = []
    import execution.calls as calls

    succeed = calls.succeed

    def cancelled_meanwhile(claim: Any, result: Any) -> Any:
        seen.append(client.send("tasks/cancel", {"taskId": task}).result["status"])
        seen.append(client.send("tasks/result", {"taskId": task}).result["isError"])
        return succeed(claim, result)

    monkeypatch.setattr("execution.calls.succeed", cancelled_meanwhile)
    perform(Call.objects.get().pk)
    assert seen == ["cancelled", True]
    assert Call.objects.get().state == State.SUCCEEDED
    assert client.get(task)["status"] == "cancelled"
    assert "succeeded" in client.get(task)["statusMessage"]


def test_a_tool_that_answers_at_once_cannot_be_a_task(client: LegacyClient) -> None:
    assert client.call("Lab_Echo", {"value": 1}, task={}).code == -32601
    assert Call.objects.count() == 0


@pytest.mark.parametrize("task", [None, 5, [], {"ttl": "long"}, {"ttl": -1}, {"ttl": True}])
def test_a_malformed_wish_for_a_task_is_refused(client: LegacyClient, ledger: Path, task: Any) -> None:
    assert client.call(TOOL, {"ledger": str(ledger)}, task=task).code == -32602
    assert Call.objects.count() == 0


def test_an_older_revision_knows_no_tasks(key: str, ledger: Path) -> None:
    client = LegacyClient(key, version="2025-06-18")
    assert client.call(TOOL, {"ledger": str(ledger)}, task={"ttl": 1}).result["isError"] is True
    assert client.send("tasks/get", {"taskId": str(Call.objects.get().pk)}).code == -32601


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_the_task_of_another_agent_does_not_exist(client: LegacyClient, ledger: Path, method: str) -> None:
    task = start(client, ledger)["taskId"]
    other = LegacyClient(agents.create("other", actor="shell", call=["Lab"]).key)
    assert other.send(method, {"taskId": task}).code == -32602
    assert other.send("tasks/list").result["tasks"] == []
    assert Call.objects.get().state == State.AWAITING_APPROVAL


def test_tasks_are_listed_newest_first_and_in_pages(
    client: LegacyClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "PAGE", 2)
    made = [start(client, tmp_path / str(number))["taskId"] for number in range(5)]
    client.call("Lab_Nothing", {})  # refused at the door: nothing to follow
    found: list[str] = []
    pages, cursor = 0, ""
    while True:
        page = client.send("tasks/list", {"cursor": cursor} if cursor else {}).result
        found += [task["taskId"] for task in page["tasks"]]
        pages += 1
        start(client, tmp_path / f"late{pages}")  # what comes meanwhile moves nobody's place
        if "nextCursor" not in page:
            break
        cursor = page["nextCursor"]
    assert (found, pages) == (made[::-1], 3)
    for wrong in ("nonsense", cursor + "=", 5, None, "AAAA"):
        assert client.send("tasks/list", {"cursor": wrong}).code == -32602


def test_waiting_for_a_result_has_an_end(client: LegacyClient, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "PATIENCE", 0.1)
    task = start(client, ledger)["taskId"]
    began = time.monotonic()
    answer = client.send("tasks/result", {"taskId": task})
    assert time.monotonic() - began < 3
    assert "longer" in answer.error["message"]
    assert blocking._seated.total() == 0


def test_a_server_that_ends_lets_go_who_waits_for_a_result(
    client: LegacyClient, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = start(client, ledger)["taskId"]
    monkeypatch.setattr("execution.stopping.is_stopping", lambda: True)
    began = time.monotonic()
    assert "longer" in client.send("tasks/result", {"taskId": task}).error["message"]
    assert time.monotonic() - began < 10


def waiting(client: LegacyClient, agent: int = 1) -> Any:
    """The stream of one who waits, seated, in this thread."""
    caller = Caller(agent_id=agent, name="bot", user_id=1, credential="key:test")
    exchange = Exchange(caller=caller, era=Era.LEGACY, version="2025-11-25", id=1, method="tasks/result")
    return blocking.until_final(exchange, Call.objects.get(), lambda call, exchange: {})


def test_few_wait_long_and_a_client_that_leaves_gives_its_seat_back(
    client: LegacyClient, ledger: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    start(client, ledger)
    monkeypatch.setattr(blocking, "LOOK_AGAIN", 0.01)
    monkeypatch.setattr(blocking, "SHORT_PATIENCE", 0.05)
    seated = [waiting(client) for _ in range(blocking.PER_CALLER)]
    assert [next(stream) for stream in seated] == [None] * blocking.PER_CALLER
    began = time.monotonic()
    assert list(waiting(client))[-1]["error"]["code"] > 0  # the caller has all its seats
    assert time.monotonic() - began < 2
    settings.PLACET_WEB_THREADS = 4 * blocking.PER_CALLER
    assert list(waiting(client, agent=2))[-1]["error"]["code"] > 0  # and so have all together
    seated.pop().close()
    free = waiting(client)
    assert next(free) is None
    for stream in [*seated, free]:
        stream.close()
    assert blocking._seated.total() == 0


@pytest.mark.django_db(transaction=True)
def test_the_result_comes_as_soon_as_the_call_ends(lab: ToolkitVersion, key: str, ana: User, ledger: Path) -> None:
    client = LegacyClient(key)
    task = start(client, ledger)["taskId"]

    def later() -> None:
        time.sleep(0.3)
        decide(ana, "approve")
        connection.close()

    person = threading.Thread(target=later)
    person.start()
    began = time.monotonic()
    answer = client.send("tasks/result", {"taskId": task})
    person.join()
    assert answer.result["content"][0]["text"] == "1"
    assert answer.result["_meta"][RELATED] == {"taskId": task}
    assert time.monotonic() - began < 10
    told = [notice for notice in answer.notices if notice["method"] == "notifications/tasks/status"]
    assert all(notice["params"]["taskId"] == task for notice in told)


@pytest.mark.django_db(transaction=True)
def test_whoever_gives_up_waiting_is_sent_nothing_more(lab: ToolkitVersion, key: str, ledger: Path) -> None:
    from execution import bell

    client = LegacyClient(key)
    start(client, ledger)
    stream = waiting(client)
    assert next(stream) is None
    caller = Caller(agent_id=1, name="bot", user_id=1, credential="key:test")
    exchange = Exchange(caller=caller, era=Era.LEGACY, version="2025-11-25", id=1, method="tasks/result")
    bell.ring(exchange.cancel_topic, is_local=True)
    assert list(stream) == []
    assert isinstance(Stream(stream), Stream)
