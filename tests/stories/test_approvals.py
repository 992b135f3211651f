"""Calls that wait for people, told with the whole product: nothing is lost, late, or done twice."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory, lines, together
from tests.stories.people import Person, hire
from tests.stories.product import wait_until

pytestmark = pytest.mark.story

ROUNDS = 20
RUN_WITHIN = 2  # seconds
HURRY = f"""
import django; django.setup()
from policy import revisions
from policy.rulespec import read_rule
ask = {{"quorum": 1, "decideWithin": "10m", "runWithin": "{RUN_WITHIN}s"}}
rule = read_rule({{"name": "at once or not at all", "tools": ["Lab.FireAgain"], "effect": "ask", "ask": ask}})
revisions.activate(revisions.new_draft(by=None, rules=[rule]), by=None)
"""


@pytest.fixture(scope="module")
def two(laboratory: Laboratory) -> list[Person]:
    """Uma and Max, logged in; policy gives one tool only a moment to run after its approval."""
    laboratory.script(HURRY)
    return hire(laboratory, "uma", "max")


def parked(laboratory: Laboratory, tool: str, **arguments: Any) -> tuple[Any, str]:
    """A call that waits for people, and its approval's id."""
    call = laboratory.post(tool, **arguments)
    assert call["state"] == "awaiting_approval"
    return call, approval_of(laboratory, call["id"])


def approval_of(laboratory: Laboratory, id: str) -> str:
    ((told,),) = laboratory.query(
        "SELECT detail FROM audit_event WHERE subject_id = %s AND event = 'call.awaiting_approval'", [id]
    )
    return str(json.loads(told)["approval"])


def chain(laboratory: Laboratory, approval: str) -> list[str]:
    rows = laboratory.query(
        "SELECT event FROM audit_event WHERE subject_kind = 'approval' AND subject_id = %s ORDER BY seq", [approval]
    )
    return [row[0] for row in rows]


def test_an_approval_outlives_its_caller_the_web_and_the_worker(laboratory: Laboratory, two: list[Person]) -> None:
    uma, _ = two
    ledger = laboratory.ledger()

    def ask() -> Any:
        return laboratory.oxp("Fire", call_id="refund-1", ledger=str(ledger))

    waits = ask()
    assert (waits.status, waits.code) == (400, "approval_pending"), waits
    (call,) = laboratory.send("GET", "/api/calls/?search=refund-1").body["results"]
    with ThreadPoolExecutor(1) as thread:
        follows = thread.submit(laboratory.get, call["id"], wait=30)
        laboratory.kill("granian")
        laboratory.kill("celery")
        with pytest.raises((OSError, HTTPException)):
            follows.result(timeout=20)
    assert wait_until(laboratory.is_healthy)
    laboratory.leader("celery")
    assert ask().code == "approval_pending"
    approval = approval_of(laboratory, call["id"])
    assert uma.look(approval)["arguments"]["ledger"] == str(ledger)
    assert lines(ledger) == 0
    reply = uma.approve(approval)
    assert (reply.status, reply.body["state"]) == (200, "approved"), reply
    assert laboratory.ended(call["id"])["state"] == "succeeded"
    again = ask()
    assert (again.status, again.body["result"]["call_id"], again.body["result"]["value"]) == (200, "refund-1", 1)
    assert ask().body == again.body
    assert lines(ledger) == 1
    assert laboratory.events(call["id"])[2:] == [
        "call.awaiting_approval",
        "call.approved",
        "call.started",
        "call.succeeded",
    ]
    assert chain(laboratory, approval)[-2:] == ["approval.approved", "approval.consumed"]


def test_an_approved_call_that_no_worker_could_run_in_time_never_runs(
    laboratory: Laboratory, two: list[Person]
) -> None:
    uma, max_ = two
    ledger = laboratory.ledger()
    call, approval = parked(laboratory, "FireAgain", ledger=str(ledger), fails=0)
    with laboratory.frozen_workers():
        assert uma.approve(approval).status == 200
        assert laboratory.until(call["id"], "queued", "expired")["state"] == "queued"
        told = laboratory.until(call["id"], "expired", seconds=RUN_WITHIN + 15)
    assert told["error"]["code"] == "approval_timeout"
    assert max_.look(approval)["state"] == "lapsed"
    after = laboratory.post("Ring", wait=30, ledger=str(laboratory.ledger()))  # queued behind its message
    assert after["state"] == "succeeded"
    assert (lines(ledger), laboratory.get(call["id"])["state"]) == (0, "expired")
    assert "call.started" not in laboratory.events(call["id"])


def test_of_two_who_approve_at_once_one_decides_and_the_other_hears_who(
    laboratory: Laboratory, two: list[Person]
) -> None:
    ledger = laboratory.ledger()
    for _ in range(ROUNDS):
        call, approval = parked(laboratory, "Fire", ledger=str(ledger))
        replies = together(2, *[lambda who=who, id=approval: (who, who.approve(id)) for who in two])
        ((winner, _), (_, late)) = sorted(replies, key=lambda pair: pair[1].status)
        assert [reply.status for _, reply in replies].count(200) == 1, replies
        assert (late.status, late.code, late.body["details"]["decision"]["person"]) == (
            409,
            "already_decided",
            winner.name,
        )
        assert laboratory.ended(call["id"])["state"] == "succeeded"
        assert chain(laboratory, approval) == [
            "approval.asked",
            "approval.voted",
            "approval.approved",
            "approval.consumed",
        ]
    assert lines(ledger) == ROUNDS


def test_an_approval_and_a_denial_at_once_are_one_answer(laboratory: Laboratory, two: list[Person]) -> None:
    uma, max_ = two
    ledger = laboratory.ledger()
    ran = 0
    for _ in range(ROUNDS):
        call, approval = parked(laboratory, "Fire", ledger=str(ledger))
        yes, no = together(2, lambda id=approval: uma.approve(id), lambda id=approval: max_.deny(id))
        assert sorted((yes.status, no.status)) == [200, 409], (yes, no)
        after = laboratory.ended(call["id"])
        ran += yes.status == 200
        assert after["state"] == ("succeeded" if yes.status == 200 else "denied")
        decided = {"approval.approved", "approval.denied"} & set(chain(laboratory, approval))
        assert decided == {"approval.approved" if yes.status == 200 else "approval.denied"}
    assert lines(ledger) == ran
