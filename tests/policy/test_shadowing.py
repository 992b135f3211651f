"""A shadow revision is asked about real calls; where it disagrees is written down, and the call notices nothing."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from policy import engine, revisions, rulesets, shadowing
from policy.decision import Decision
from policy.evaluation import caller_of
from policy.models import Difference
from policy.question import Question
from registry import revision
from registry.resolution import resolve
from registry.toolref import ToolRef
from tests.policy.stage import SMALL, Stage, draft, live, stage

pytestmark = pytest.mark.django_db

ASK_ONE = {"name": "ask", "tools": ["Payments.*"], "effect": "ask", "ask": {"quorum": 1}}


@pytest.fixture
def here() -> Stage:
    return stage()


def asked(here: Stage, **arguments: Any) -> Question:
    ref = ToolRef.parse("Payments.Refund")
    assert ref is not None
    tool = resolve(ref)
    assert tool is not None
    return Question(caller=caller_of(here.agent.agent), tool=tool, arguments=arguments)


def call(here: Stage, **arguments: Any) -> UUID:
    """As a door does it: decide, then compare."""
    id, question = uuid4(), asked(here, **arguments)
    shadowing.compare(question, engine.decide(question), id)
    return id


def test_where_the_shadow_decides_otherwise_it_is_written_down(here: Stage) -> None:
    was = live(ASK_ONE)
    shadow = draft(SMALL)
    revisions.set_shadow(shadow, by=None)
    id = call(here, amount=5.0)
    found = Difference.objects.get()
    assert (found.call, found.agent.name, found.tool_ref) == (id, "support-bot", "Payments.Refund@1.0.0")
    assert (found.live_revision, found.live_effect, found.live_rule) == (was.number, "ask", "ask")
    assert (found.shadow_revision, found.shadow_effect) == (shadow.number, "allow")
    assert found.shadow_rule == "small refunds go through"
    assert found.shadow_reason == rulesets.rules_numbered(shadow.number).judge(asked(here, amount=5.0)).reason


def test_where_both_agree_nothing_is_written(here: Stage) -> None:
    live(ASK_ONE)
    revisions.set_shadow(draft(SMALL), by=None)
    call(here, amount=500.0)  # the one asks by its rule, the other by the default: the caller would notice nothing
    assert not Difference.objects.exists()


@pytest.mark.parametrize("ask", [{"quorum": 2}, {"quorum": 1, "approvers": "payers"}])
def test_who_has_to_agree_is_a_difference_too(here: Stage, ask: dict[str, Any]) -> None:
    live(ASK_ONE)
    revisions.set_shadow(draft(ASK_ONE | {"ask": ask}), by=None)
    call(here, amount=5.0)
    assert Difference.objects.get().shadow_effect == "ask"


def test_without_a_shadow_it_costs_no_query(here: Stage, django_assert_num_queries: Any) -> None:
    question = asked(here, amount=5.0)
    decision = engine.decide(question)
    with revision.pinned():
        rulesets.live_rules()
        with django_assert_num_queries(0):
            shadowing.compare(question, decision, uuid4())


def test_a_shadow_that_ended_is_not_asked_any_more(here: Stage) -> None:
    live(ASK_ONE)
    revisions.set_shadow(draft(SMALL), by=None)
    revisions.set_shadow(None, by=None)
    call(here, amount=5.0)
    assert not Difference.objects.exists()


def test_a_shadow_that_fails_costs_the_call_nothing(
    here: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    live(ASK_ONE)
    revisions.set_shadow(draft(SMALL), by=None)
    question = asked(here, amount=5.0)
    decision = engine.decide(question)

    def broken(self: Any, question: Question) -> Decision:
        raise ZeroDivisionError

    monkeypatch.setattr(rulesets.RuleSet, "judge", broken)
    shadowing.compare(question, decision, uuid4())
    assert "the shadow could not be asked" in caplog.text
    assert not Difference.objects.exists()


def test_a_row_that_is_refused_does_not_spoil_the_transaction_around_it(
    here: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(ASK_ONE)
    revisions.set_shadow(draft(SMALL), by=None)

    def refused(**_: Any) -> None:
        row = Difference(call=uuid4(), shadow_revision=1, live_revision=1)
        row.save()  # it names no agent

    monkeypatch.setattr(Difference.objects, "create", refused)
    call(here, amount=5.0)
    assert not Difference.objects.exists()  # a broken transaction would not even answer this
