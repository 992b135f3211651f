"""Breaking the glass: with a right and a reason, recorded, alarmed, and reviewed by another person."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from guardian.shortcuts import remove_perm

from audit.models import Event
from execution import breakglass
from execution.models import Call, State
from execution.pipeline.perform import perform
from policy import breakglass as reviewing
from policy import revisions
from policy.breakglass import BreakGlassError
from policy.caller import Caller
from policy.models import Agent, BreakGlass, Notice
from registry.models import Toolkit, ToolkitVersion
from tests.execution.approving import asked, call_state, events, lines
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db


def with_the_right(name: str) -> User:
    person = User.objects.create_user(name, f"{name}@placet.invalid", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="break_glass"))
    return person


@pytest.fixture
def eve() -> User:
    return with_the_right("eve")


@pytest.fixture
def denied(call: MakeCall, lab: ToolkitVersion, caller: Caller, unsent: list[Any], ledger: Path) -> Any:
    """A call that policy denied, of an agent that may only look."""
    agent = Agent.objects.get(pk=caller.agent_id)
    toolkit = Toolkit.objects.get(pk=lab.toolkit_id)
    from guardian.shortcuts import assign_perm

    assign_perm("registry.view_toolkit", agent.user, toolkit)
    remove_perm("registry.call_toolkit", agent.user, toolkit)
    outcome = call("Ring", ledger=str(ledger))
    assert outcome.state == State.DENIED
    return outcome


def test_an_undecided_call_runs_and_everyone_concerned_is_told(
    call: MakeCall, unsent: list[Any], ledger: Path, eve: User
) -> None:
    with_the_right("zoe")
    outcome = call("Detonate", ledger=str(ledger))
    breakglass.run(outcome.id, by=eve, reason="the site is down")
    assert call_state(outcome.id) == State.QUEUED
    perform(outcome.id)
    assert lines(ledger) == 1
    row = BreakGlass.objects.get()
    assert (row.call, row.person, row.reason, row.verdict) == (outcome.id, eve, "the site is down", "")
    assert "approval.glass_broken" in events("approval", asked(outcome).pk)
    assert Event.objects.get(event="glass.broken").actor == "user:eve"
    assert set(Notice.objects.filter(kind="break_glass.used").values_list("target", flat=True)) == {
        "zoe@placet.invalid"
    }


def test_a_broken_glass_holds_also_under_another_policy(
    call: MakeCall, unsent: list[Any], ledger: Path, eve: User
) -> None:
    outcome = call("Detonate", ledger=str(ledger))
    revisions.activate(revisions.new_draft(by=None), by=None)
    breakglass.run(outcome.id, by=eve, reason="the site is down")
    perform(outcome.id)
    assert lines(ledger) == 1


def test_a_denied_call_is_repeated_exactly(denied: Any, ledger: Path, eve: User) -> None:
    ran = breakglass.run(denied.id, by=eve, reason="the site is down")
    assert (ran.state, ran.call_id) == (State.QUEUED, f"break-glass:{denied.id}")
    perform(ran.pk)
    assert lines(ledger) == 1
    assert call_state(denied.id) == State.DENIED
    assert BreakGlass.objects.get().instead_of == denied.id
    assert events("call", denied.id)[-1] == "call.repeated"
    with pytest.raises(BreakGlassError) as again:
        breakglass.run(denied.id, by=eve, reason="once more")
    assert again.value.status == 409
    assert BreakGlass.objects.count() == 1


def test_other_arguments_than_the_denied_ones_do_not_pass(denied: Any, ledger: Path, eve: User) -> None:
    with pytest.raises(BreakGlassError) as refused:
        breakglass.run(denied.id, by=eve, reason="the site is down", arguments={"ledger": "/elsewhere"})
    assert (refused.value.status, refused.value.code) == (409, "other_arguments")
    assert Call.objects.count() == 1
    breakglass.run(denied.id, by=eve, reason="the site is down", arguments={"ledger": str(ledger)})
    assert Call.objects.count() == 2


@pytest.mark.parametrize("reason", ["", "  ", "x"])
def test_a_reason_is_needed(denied: Any, eve: User, reason: str) -> None:
    with pytest.raises(BreakGlassError) as refused:
        breakglass.run(denied.id, by=eve, reason=reason)
    assert refused.value.status == 422


def test_the_right_is_needed_and_an_agent_never_has_it(denied: Any, caller: Caller) -> None:
    agent = Agent.objects.get(pk=caller.agent_id)
    agent.user.user_permissions.add(Permission.objects.get(codename="break_glass"))
    for person in (User.objects.create_user("nobody"), User.objects.get(pk=agent.user_id)):
        with pytest.raises(BreakGlassError) as refused:
            breakglass.run(denied.id, by=person, reason="let me")
        assert refused.value.status == 403
    assert not BreakGlass.objects.exists()


def test_a_call_that_ran_is_not_let_through_again(call: MakeCall, eve: User) -> None:
    with pytest.raises(BreakGlassError) as refused:
        breakglass.run(call("Echo", value=1).id, by=eve, reason="again")
    assert refused.value.status == 409


def test_another_person_reviews_it_once(denied: Any, eve: User) -> None:
    breakglass.run(denied.id, by=eve, reason="the site is down")
    row, zoe = BreakGlass.objects.get(), with_the_right("zoe")
    with pytest.raises(BreakGlassError) as own:
        reviewing.review(row, by=eve, verdict="justified")
    assert own.value.code == "self_review"
    with pytest.raises(BreakGlassError):
        reviewing.review(row, by=zoe, verdict="unjustified", note=" ")
    assert reviewing.review(row, by=zoe, verdict="unjustified", note="nothing was down").reviewed_by == zoe
    with pytest.raises(BreakGlassError) as twice:
        reviewing.review(row, by=zoe, verdict="justified")
    assert twice.value.status == 409
    assert events("break_glass", row.pk) == ["glass.broken", "glass.reviewed"]
