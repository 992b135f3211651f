"""Clients with a handshake: -32042 for those that can open pages, the link in a text for all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from execution.models import Call, State
from execution.pipeline.perform import perform
from execution.protocols.mcp import calling, elicitations
from policy import agents, approvals
from policy.models import Approval
from registry.models import ToolkitVersion
from tests.execution.approving import lines, move_clock
from tests.execution.racing import race
from tests.mcp.taskkit import FORMS, PAGES, Answer, LegacyClient, ModernClient

pytestmark = pytest.mark.django_db

TOOL = "Lab_Fire"
Agent = LegacyClient | ModernClient


@pytest.fixture
def key(lab: ToolkitVersion, unsent: list[Any]) -> str:
    return agents.create("bot", actor="shell", call=["Lab"]).key


def decide(by: User, answer: str) -> None:
    for approval in Approval.objects.filter(state=Approval.State.PENDING):
        approvals.decide(approval.pk, by=by, answer=answer, reason="so be it")
        perform(approval.call)


def make(kind: str, key: str) -> Agent:
    if kind == "modern":
        return ModernClient(key)
    return LegacyClient(key, PAGES if kind == "pages" else FORMS)


def is_asked(answer: Answer) -> bool:
    if "error" in answer.body:
        return answer.code == -32042
    return bool(answer.result.get("isError")) and "/approvals/" in answer.text


def test_a_client_that_opens_pages_is_told_by_an_error_which_one(key: str, ledger: Path) -> None:
    answer = LegacyClient(key, PAGES).call(TOOL, {"ledger": str(ledger)})
    assert answer.code == -32042
    (asked,) = answer.error["data"]["elicitations"]
    assert asked["mode"] == "url"
    assert asked["url"].endswith(f"/approvals/{Approval.objects.get().pk}/")
    assert asked["elicitationId"] == str(Call.objects.get().pk)
    assert "Lab.Fire@1.0.0" in asked["message"]


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_client_without_pages_or_of_an_older_revision_gets_the_link(key: str, ledger: Path, version: str) -> None:
    declared = FORMS if version == "2025-11-25" else PAGES
    answer = LegacyClient(key, declared, version).call(TOOL, {"ledger": str(ledger)})
    assert answer.result["isError"] is True
    assert f"/approvals/{Approval.objects.get().pk}/" in answer.text


@pytest.mark.parametrize("kind", ["pages", "forms", "modern"])
def test_the_same_call_made_again_asks_nobody_twice_and_gets_the_result_once(
    key: str, ana: User, ledger: Path, kind: str
) -> None:
    client = make(kind, key)
    assert is_asked(client.call(TOOL, {"ledger": str(ledger)}))
    assert is_asked(client.call(TOOL, {"ledger": str(ledger)}))
    assert (Call.objects.count(), Approval.objects.count()) == (1, 1)
    decide(ana, "approve")
    assert client.call(TOOL, {"ledger": str(ledger)}).text == "1"
    assert lines(ledger) == 1
    assert is_asked(client.call(TOOL, {"ledger": str(ledger)}))  # after that it is another call
    assert (Call.objects.count(), lines(ledger)) == (2, 1)


@pytest.mark.parametrize("kind", ["pages", "forms", "modern"])
def test_a_denial_is_told_once_to_the_same_call(key: str, ana: User, ledger: Path, kind: str) -> None:
    client = make(kind, key)
    client.call(TOOL, {"ledger": str(ledger)})
    decide(ana, "deny")
    answer = client.call(TOOL, {"ledger": str(ledger)})
    assert answer.result["isError"] is True
    assert "so be it" in answer.text
    assert is_asked(client.call(TOOL, {"ledger": str(ledger)}))


def test_an_expired_and_a_cancelled_call_are_told_to_the_same_call(key: str, ledger: Path) -> None:
    client = LegacyClient(key, PAGES)
    client.call(TOOL, {"ledger": str(ledger)})
    move_clock(Approval.objects.get(), decide_by=-1)
    approvals.expire_due()
    assert "Nobody decided in time" in client.call(TOOL, {"ledger": str(ledger)}).text
    client.call(TOOL, {"ledger": str(ledger)})
    waiting = Call.objects.get(state=State.AWAITING_APPROVAL)
    assert client.send("tasks/cancel", {"taskId": str(waiting.pk)}).result["status"] == "cancelled"
    assert "cancelled" in client.call(TOOL, {"ledger": str(ledger)}).text


def test_other_arguments_or_another_agent_are_another_call(key: str, ana: User, ledger: Path) -> None:
    LegacyClient(key, PAGES).call(TOOL, {"ledger": str(ledger)})
    decide(ana, "approve")
    assert is_asked(LegacyClient(key, PAGES).call(TOOL, {"ledger": str(ledger), "amount": 2}))
    other = agents.create("other", actor="shell", call=["Lab"]).key
    assert is_asked(LegacyClient(other, PAGES).call(TOOL, {"ledger": str(ledger)}))
    assert lines(ledger) == 1


def test_a_result_that_nobody_fetched_is_not_given_to_a_call_of_another_day(
    key: str, ana: User, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = LegacyClient(key, PAGES)
    client.call(TOOL, {"ledger": str(ledger)})
    decide(ana, "approve")
    monkeypatch.setattr(elicitations, "KEPT", -5.0)  # as if it had ended long ago
    assert is_asked(client.call(TOOL, {"ledger": str(ledger)}))
    assert Call.objects.count() == 2


def test_a_call_with_an_id_of_its_own_is_that_call(key: str, ana: User, ledger: Path) -> None:
    client = LegacyClient(key, FORMS)
    client.call(TOOL, {"ledger": str(ledger)})
    again = client.call(TOOL, {"ledger": str(ledger)}, _meta={"placet.dev/call_id": "mine"})
    assert is_asked(again)
    assert Call.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_result_goes_to_one_of_those_who_come_for_it(key: str, ana: User, tmp_path: Path) -> None:
    client = ModernClient(key)
    rounds = 8
    ledgers = [tmp_path / f"ledger{number}" for number in range(rounds)]
    for ledger in ledgers:
        client.call(TOOL, {"ledger": str(ledger)})
    decide(ana, "approve")

    def run(number: int) -> Answer:
        return client.call(TOOL, {"ledger": str(ledgers[number])})

    for number, answers in enumerate(race(run, run, rounds=rounds)):
        assert sorted(is_asked(answer) for answer in answers) == [False, True]
        assert lines(ledgers[number]) == 1


@pytest.mark.parametrize("kind", ["pages", "forms", "modern"])
def test_a_call_that_outlasts_its_client_is_not_run_twice_by_being_made_again(
    key: str, ledger: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "QUICK", 0.05)
    monkeypatch.setattr(calling, "PATIENCE", 0.1)
    client = make(kind, key)
    for _ in range(2):
        answer = client.call("Lab_Ring", {"ledger": str(ledger)})
        assert answer.result["isError"] is True
        assert "does not run twice" in answer.text
    perform(Call.objects.get().pk)
    assert client.call("Lab_Ring", {"ledger": str(ledger)}).text == "1"
    assert (Call.objects.count(), lines(ledger)) == (1, 1)
    client.call("Lab_Ring", {"ledger": str(ledger)})
    assert Call.objects.count() == 2


def test_a_call_that_its_client_named_is_asked_for_by_name_only(
    key: str, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "QUICK", 0.05)
    monkeypatch.setattr(calling, "PATIENCE", 0.1)
    client = ModernClient(key)
    named = {"placet.dev/call_id": "mine"}
    client.call("Lab_Ring", {"ledger": str(ledger)}, _meta=named)
    perform(Call.objects.get().pk)
    assert client.call("Lab_Ring", {"ledger": str(ledger)}).result["isError"] is True
    assert Call.objects.count() == 2
    assert client.call("Lab_Ring", {"ledger": str(ledger)}, _meta=named).text == "1"
