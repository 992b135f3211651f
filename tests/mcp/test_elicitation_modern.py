"""A client of 2026-07-28 that can open pages: asked once, retried with a state that is good for one retry only."""

from __future__ import annotations

import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client as Browser

from execution import dispatch
from execution.models import Call, Elicitation, State
from execution.pipeline.perform import perform
from execution.protocols.mcp import elicitation
from policy import agents, approvals
from policy.models import Approval
from registry.models import ToolkitVersion
from tests.execution.approving import lines, move_clock
from tests.execution.racing import race
from tests.mcp.taskkit import FORMS, PAGES, TASKS, Answer, ModernClient

pytestmark = pytest.mark.django_db

TOOL = "Lab_Fire"
ACCEPTED = {"approval": {"action": "accept"}}


@pytest.fixture
def client(lab: ToolkitVersion, unsent: list[Any]) -> ModernClient:
    return ModernClient(agents.create("bot", actor="shell", call=["Lab"]).key, PAGES)


@pytest.fixture(autouse=True)
def _nobody_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elicitation, "HOLD", 0.05)
    monkeypatch.setattr(elicitation, "RUN", 0.05)


def retry(client: ModernClient, first: Answer, ledger: Path, **more: Any) -> Answer:
    state = first.result["requestState"]
    return client.call(TOOL, {"ledger": str(ledger)}, **{"requestState": state, "inputResponses": ACCEPTED} | more)


def decide(by: User, answer: str) -> Approval:
    approval = Approval.objects.get()
    approvals.decide(approval.pk, by=by, answer=answer, reason="so be it")
    perform(approval.call)
    return approval


def test_the_question_opens_the_approval_page_and_tells_no_secret(client: ModernClient, ledger: Path) -> None:
    answer = client.call(TOOL, {"ledger": str(ledger)})
    approval = Approval.objects.get()
    assert answer.status == 200
    assert answer.result["resultType"] == "input_required"
    assert "taskId" not in answer.result
    ((key, asked),) = answer.result["inputRequests"].items()
    assert (key, asked["method"], asked["params"]["mode"]) == ("approval", "elicitation/create", "url")
    assert asked["params"]["url"].endswith(f"/approvals/{approval.pk}/")
    assert "elicitationId" not in asked["params"]
    assert "Lab.Fire@1.0.0" in asked["params"]["message"]
    assert str(ledger) not in str(asked)
    sealed = urlsafe_b64decode(answer.result["requestState"] + "==")
    assert str(approval.call).encode() not in sealed
    assert approval.call.hex.encode() not in sealed


def test_an_approved_call_is_told_to_the_retry_and_ran_once(client: ModernClient, ana: User, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    decide(ana, "approve")
    answer = retry(client, first, ledger)
    assert answer.result["resultType"] == "complete"
    assert answer.text == "1"
    assert not answer.result.get("isError")
    assert (lines(ledger), Call.objects.count()) == (1, 1)


def test_a_denied_call_is_told_with_the_reason(client: ModernClient, ana: User, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    decide(ana, "deny")
    answer = retry(client, first, ledger)
    assert answer.result["isError"] is True
    assert "so be it" in answer.text
    assert lines(ledger) == 0


def test_a_call_that_nobody_decided_in_time_is_told_as_expired(client: ModernClient, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    move_clock(Approval.objects.get(), decide_by=-1)
    assert approvals.expire_due() == 1
    answer = retry(client, first, ledger)
    assert answer.result["isError"] is True
    assert "Nobody decided in time" in answer.text


def test_while_people_think_the_page_is_not_offered_again(client: ModernClient, ana: User, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    second = retry(client, first, ledger)
    assert second.result["resultType"] == "input_required"
    assert "inputRequests" not in second.result
    assert second.result["requestState"] != first.result["requestState"]
    decide(ana, "approve")
    third = retry(client, second, ledger, inputResponses={})
    assert third.text == "1"
    assert Call.objects.count() == 1


def test_a_retry_waits_for_the_decision(
    client: ModernClient, ana: User, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elicitation, "HOLD", 10.0)
    first = client.call(TOOL, {"ledger": str(ledger)})
    original = dispatch.until_moved

    def decided_meanwhile(call: Call, *, wait: float) -> None:
        assert wait == 10.0
        decide(ana, "approve")
        original(call, wait=wait)

    monkeypatch.setattr(dispatch, "until_moved", decided_meanwhile)
    assert retry(client, first, ledger).text == "1"


def test_an_answer_that_is_missing_is_asked_for_again(client: ModernClient, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    answer = retry(client, first, ledger, inputResponses={"other": {"action": "accept"}})
    assert "approval" in answer.result["inputRequests"]
    assert Call.objects.count() == 1


def test_a_declined_question_cancels_the_call(client: ModernClient, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    answer = retry(client, first, ledger, inputResponses={"approval": {"action": "decline"}})
    assert answer.result["isError"] is True
    assert "cancelled" in answer.text
    assert Call.objects.get().state == State.CANCELLED
    assert Approval.objects.get().state == Approval.State.WITHDRAWN


def test_a_dismissed_question_leaves_the_call_waiting_and_gives_the_link(
    client: ModernClient, ana: User, ledger: Path
) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    answer = retry(client, first, ledger, inputResponses={"approval": {"action": "cancel"}})
    approval = Approval.objects.get()
    assert answer.result["isError"] is True
    assert f"/approvals/{approval.pk}/" in answer.text
    assert Call.objects.get().state == State.AWAITING_APPROVAL
    decide(ana, "approve")
    assert client.call(TOOL, {"ledger": str(ledger)}).text == "1"  # made again, it means the one that waited
    assert Call.objects.count() == 1


def test_a_client_that_keeps_coming_gets_the_link_before_it_gives_up(client: ModernClient, ledger: Path) -> None:
    answer = client.call(TOOL, {"ledger": str(ledger)})
    rounds = 0
    while answer.result["resultType"] == "input_required":
        rounds += 1
        answer = retry(client, answer, ledger)
    assert rounds == elicitation.TURNS < 10
    assert "/approvals/" in answer.text
    assert Call.objects.count() == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "padded", "other letters", "empty", "number", "long"])
def test_a_damaged_state_is_refused_and_moves_nothing(client: ModernClient, ledger: Path, damage: str) -> None:
    state = client.call(TOOL, {"ledger": str(ledger)}).result["requestState"]
    sealed = bytearray(urlsafe_b64decode(state + "=="))
    sealed[-1] ^= 1
    damaged: Any = {
        "cut": state[:-4],
        "flipped": urlsafe_b64encode(sealed).decode().rstrip("="),
        "padded": state + "==",
        "other letters": state + "\u00e9",
        "empty": "",
        "number": 7,
        "long": "A" * 100_000,
    }[damage]
    answer = client.call(TOOL, {"ledger": str(ledger)}, requestState=damaged, inputResponses=ACCEPTED)
    assert (answer.code, answer.error["data"]["reason"]) == (-32602, "invalid")
    assert (Call.objects.count(), Elicitation.objects.get().turn) == (1, 0)


@pytest.mark.parametrize("what", ["arguments", "tool", "agent", "added arguments"])
def test_a_state_is_good_for_its_own_request_only(client: ModernClient, ledger: Path, what: str) -> None:
    state = client.call(TOOL, {"ledger": str(ledger)}).result["requestState"]
    name, arguments, meta = TOOL, {"ledger": str(ledger)}, {}
    if what == "arguments":
        arguments["amount"] = 1_000_000  # type: ignore[assignment]
    elif what == "tool":
        name = "Lab_Detonate"
    elif what == "agent":
        client = ModernClient(agents.create("other", actor="shell", call=["Lab"]).key, PAGES)
    else:
        meta = {"placet.dev/arguments": {"amount": 5}}
    answer = client.call(name, arguments, requestState=state, inputResponses=ACCEPTED, _meta=meta)
    assert (answer.code, answer.error["data"]["reason"]) == (-32602, "invalid")
    assert "call_id" not in answer.error["data"]
    assert Call.objects.count() == 1


def test_a_state_expires(client: ModernClient, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    later = time.time() + elicitation.LONGEST
    monkeypatch.setattr("execution.protocols.mcp.requeststate.time.time", lambda: later)
    answer = retry(client, first, ledger)
    assert (answer.code, answer.error["data"]["reason"]) == (-32602, "expired")


def test_a_state_whose_key_is_gone_is_refused(client: ModernClient, ledger: Path, settings: Any) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    settings.PLACET_SEALING_KEYS = {"fresh": bytes(range(32)), **settings.PLACET_SEALING_KEYS}
    second = retry(client, first, ledger)  # a new key comes first: what was sealed before still opens
    assert second.result["resultType"] == "input_required"
    settings.PLACET_SEALING_KEYS = {"other": bytes(32)}
    answer = retry(client, second, ledger)
    assert (answer.code, answer.error["data"]["reason"]) == (-32602, "invalid")


def test_the_page_needs_a_login_and_opening_it_decides_nothing(client: ModernClient, ana: User, ledger: Path) -> None:
    asked = client.call(TOOL, {"ledger": str(ledger)}).result["inputRequests"]["approval"]["params"]
    address = urlsplit(asked["url"])
    assert (address.query, address.fragment, address.username) == ("", "", None)
    stranger = Browser().get(address.path)
    assert stranger.status_code == 302
    assert "login" in stranger.headers["Location"]
    agent = Browser().get(address.path, headers={"Authorization": f"Bearer {client.key}"})
    assert agent.status_code in (302, 403)
    person = Browser()
    person.force_login(ana)
    assert person.get(address.path).status_code == 200
    assert Approval.objects.get().state == Approval.State.PENDING


def test_a_state_lives_no_longer_than_its_question_and_a_little(client: ModernClient, ledger: Path) -> None:
    client.call(TOOL, {"ledger": str(ledger)})
    call = Call.objects.select_related("approval").get()
    assert call.approval is not None
    last = call.approval.decide_by.timestamp() + call.approval.run_within + elicitation.AFTERWARDS
    assert elicitation._expiry(call) == pytest.approx(min(last, time.time() + elicitation.LONGEST), abs=5)


def test_a_state_is_refused_the_second_time_and_the_caller_is_told_its_call(
    client: ModernClient, ana: User, ledger: Path
) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    decide(ana, "approve")
    assert retry(client, first, ledger).text == "1"
    again = retry(client, first, ledger)
    assert (again.code, again.error["data"]["reason"]) == (-32602, "used")
    meta = {"placet.dev/call_id": again.error["data"]["call_id"]}
    assert client.call(TOOL, {"ledger": str(ledger)}, _meta=meta).text == "1"
    assert (lines(ledger), Call.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    "answers",
    [None, 5, [], "x", {"approval": 5}, {"approval": None}, {"approval": {}}, {"approval": {"action": "approve"}}],
)
def test_malformed_answers_are_refused_and_the_state_stays_good(
    client: ModernClient, ledger: Path, answers: Any
) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    assert retry(client, first, ledger, inputResponses=answers).code == -32602
    assert retry(client, first, ledger).result["resultType"] == "input_required"


def test_accepting_is_not_approving(client: ModernClient, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    content = {"action": "accept", "content": {"approved": True, "confirm": True}}
    answer = retry(client, first, ledger, inputResponses={"approval": content})
    assert answer.result["resultType"] == "input_required"
    assert Approval.objects.get().state == Approval.State.PENDING
    assert lines(ledger) == 0


def test_a_client_that_knows_forms_only_gets_the_link_in_the_text(client: ModernClient, ledger: Path) -> None:
    client.capabilities = FORMS
    answer = client.call(TOOL, {"ledger": str(ledger)})
    assert answer.result["resultType"] == "complete"
    assert answer.result["isError"] is True
    assert f"/approvals/{Approval.objects.get().pk}/" in answer.text
    assert answer.result["_meta"]["placet.dev/call_id"] == Call.objects.get().call_id


def test_a_client_that_knows_tasks_too_gets_a_task_in_the_end(client: ModernClient, ledger: Path) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    client.capabilities = PAGES | TASKS
    answer = retry(client, first, ledger)
    assert (answer.result["resultType"], answer.result["taskId"]) == ("task", str(Call.objects.get().pk))
    assert "requestState" not in answer.result
    assert "inputRequests" not in answer.result


def test_a_call_that_runs_long_after_the_yes_is_found_by_making_it_again(
    client: ModernClient, ana: User, ledger: Path
) -> None:
    first = client.call(TOOL, {"ledger": str(ledger)})
    approvals.decide(Approval.objects.get().pk, by=ana, answer="approve")
    assert retry(client, first, ledger).result["isError"] is True
    perform(Call.objects.get().pk)
    assert client.call(TOOL, {"ledger": str(ledger)}).text == "1"
    assert (lines(ledger), Call.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_of_two_retries_at_once_exactly_one_follows(
    lab: ToolkitVersion, unsent: list[Any], ana: User, tmp_path: Path
) -> None:
    client = ModernClient(agents.create("bot", actor="shell", call=["Lab"]).key, PAGES)
    rounds = 12
    ledgers = [tmp_path / f"ledger{number}" for number in range(rounds)]
    firsts = [client.call(TOOL, {"ledger": str(ledger)}) for ledger in ledgers]
    for approval in Approval.objects.all():
        approvals.decide(approval.pk, by=ana, answer="approve")
        perform(approval.call)

    def run(number: int) -> Answer:
        return retry(client, firsts[number], ledgers[number])

    for number, answers in enumerate(race(run, run, run, rounds=rounds)):
        followed = [answer for answer in answers if "result" in answer.body]
        refused = [answer.error["data"]["reason"] for answer in answers if "error" in answer.body]
        assert [answer.text for answer in followed] == ["1"]
        assert refused == ["used", "used"]
        assert lines(ledgers[number]) == 1
    assert Call.objects.count() == rounds


@pytest.mark.django_db(transaction=True)
def test_a_decision_in_another_thread_ends_the_retry(
    lab: ToolkitVersion,
    unsent: list[Any],
    ana: User,
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elicitation, "HOLD", 15.0)
    monkeypatch.setattr(elicitation, "RUN", 15.0)
    client = ModernClient(agents.create("bot", actor="shell", call=["Lab"]).key, PAGES)
    first = client.call(TOOL, {"ledger": str(ledger)})

    def later() -> None:
        time.sleep(0.3)
        decide(ana, "approve")
        connection.close()

    person = threading.Thread(target=later)
    person.start()
    began = time.monotonic()
    answer = retry(client, first, ledger)
    person.join()
    assert answer.text == "1"
    assert time.monotonic() - began < 10
