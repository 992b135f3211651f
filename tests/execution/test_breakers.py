"""Breakers: a tool that keeps failing is left alone, visibly, until it is well again; others notice nothing."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audit.models import Event
from execution import breakers
from execution.errors import CallError, ErrorCode
from execution.models import Breaker, Call, State
from execution.pipeline.perform import perform
from policy import agents
from registry import revision
from registry.clock import Later
from registry.models import ToolkitVersion
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.execution.conftest import Call as MakeCall
from tests.execution.hands import Hands, fails, works

pytestmark = pytest.mark.django_db

DOWN = fails(can_retry=True)


@pytest.fixture
def hands(lab: ToolkitVersion, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Hands:
    settings.PLACET_BREAKER_FAILURES = 3
    fake = Hands()
    fake.does = DOWN
    monkeypatch.setattr("execution.pipeline.perform.runtime_for", lambda tool: fake)
    return fake


@pytest.fixture
def echo(lab: ToolkitVersion) -> ToolSpec:
    ref = ToolRef.parse("Lab.Echo")
    assert ref is not None
    tool = resolve(ref)
    assert tool is not None
    return tool


def open_it(call: MakeCall) -> None:
    for _ in range(3):
        call("Echo")
    assert Breaker.objects.get().state == Breaker.State.OPEN


def rest(**moments: float) -> None:
    """As if so many seconds had passed, or had yet to."""
    Breaker.objects.update(**{name: Later(seconds) for name, seconds in moments.items()})


def news() -> list[tuple[str, str, str]]:
    found = Event.objects.filter(event__startswith="tool.breaker").order_by("seq")
    return [(event.subject_id, event.event, event.actor) for event in found]


def test_after_so_many_failures_in_a_row_calls_are_answered_at_once(call: MakeCall, hands: Hands) -> None:
    open_it(call)
    outcome = call("Echo", call_id="mine")
    assert outcome.failure is not None
    assert outcome.failure.code is ErrorCode.EXECUTION_FAILED
    assert outcome.failure.can_retry
    assert 25_000 < (outcome.failure.retry_after_ms or 0) <= 30_000
    assert len(hands.runs) == 3
    assert not Call.objects.filter(call_id="mine").exists()
    assert Event.objects.filter(event="call.turned_away", subject_kind="agent").count() == 1
    assert news() == [("Lab@1.0.0", "tool.breaker_opened", "system")]


def test_a_success_in_between_begins_the_count_anew(call: MakeCall, hands: Hands) -> None:
    for does in (DOWN, DOWN, works, DOWN, DOWN):
        hands.does = does
        call("Echo")
    assert Breaker.objects.get().state == Breaker.State.CLOSED
    hands.does = DOWN
    call("Echo")
    assert Breaker.objects.get().state == Breaker.State.OPEN


def test_failures_outside_the_window_do_not_count(call: MakeCall, hands: Hands) -> None:
    call("Echo")
    call("Echo")
    rest(since=-61)
    call("Echo")
    breaker = Breaker.objects.get()
    assert (breaker.state, breaker.failures) == (Breaker.State.CLOSED, 1)


@pytest.mark.parametrize(
    "does",
    [
        fails(can_retry=False),
        fails(ErrorCode.AUTH_INVALID),
        fails(ErrorCode.AUTH_FORBIDDEN),
        fails(ErrorCode.AUTH_EXPIRED),
        fails(ErrorCode.SECRET_UNRESOLVED),
        fails(ErrorCode.RUNTIME_INVALID),
        fails(ErrorCode.CANCELED),
    ],
)
def test_what_is_not_the_backends_fault_does_not_count(call: MakeCall, hands: Hands, does: Any) -> None:
    hands.does = does
    for _ in range(4):
        call("Echo")
    assert len(hands.runs) == 4
    assert not Breaker.objects.exists()


def test_a_tool_that_takes_too_long_counts(call: MakeCall, hands: Hands, at_once: None) -> None:
    hands.does = fails(ErrorCode.TIMEOUT)
    for _ in range(3):
        call("Fail", message="x")
    assert Breaker.objects.get().code == "timeout"
    assert Breaker.objects.get().state == Breaker.State.OPEN


def test_one_trial_after_the_pause_closes_it_again(call: MakeCall, hands: Hands) -> None:
    open_it(call)
    rest(retry_at=-1)
    hands.does = works
    assert call("Echo").is_success
    assert Breaker.objects.get().state == Breaker.State.CLOSED
    assert call("Echo").is_success
    assert [event for _, event, _ in news()] == ["tool.breaker_opened", "tool.breaker_closed"]


def test_a_trial_that_fails_is_a_new_pause(call: MakeCall, hands: Hands) -> None:
    open_it(call)
    rest(retry_at=-1)
    call("Echo")
    assert len(hands.runs) == 4
    call("Echo")
    assert len(hands.runs) == 4
    breaker = Breaker.objects.get()
    assert (breaker.state, breaker.trial_until, breaker.failures) == (Breaker.State.OPEN, None, 4)
    assert len(news()) == 1


def test_only_one_trial_at_a_time(call: MakeCall, hands: Hands, echo: ToolSpec) -> None:
    open_it(call)
    rest(retry_at=-1)
    assert breakers.refusal(echo) is None  # the door only looks
    breakers.enter(echo)
    assert breakers.refusal(echo) is not None
    with pytest.raises(CallError) as refused:
        breakers.enter(echo)
    assert not refused.value.is_sent
    rest(retry_at=-1, trial_until=-1)  # its worker was lost
    breakers.enter(echo)


def test_a_trial_that_says_nothing_about_the_backend_leaves_the_next_call_to_try(call: MakeCall, hands: Hands) -> None:
    open_it(call)
    rest(retry_at=-1)
    hands.does = fails(ErrorCode.AUTH_FORBIDDEN)
    call("Echo")
    hands.does = works
    assert call("Echo").is_success


def test_a_call_that_was_answered_before_is_answered_again(call: MakeCall, hands: Hands) -> None:
    hands.does = works
    first = call("Echo", call_id="before")
    hands.does = DOWN
    open_it(call)
    again = call("Echo", call_id="before")
    assert (again.is_success, again.id) == (True, first.id)


def test_a_call_that_was_queued_before_fails_without_being_sent(
    call: MakeCall, hands: Hands, unsent: list[Any]
) -> None:
    waiting = call("Fail", message="x")
    for _ in range(3):
        perform(call("Fail", message="x").id)
    assert len(hands.runs) == 3
    perform(waiting.id)
    row = Call.objects.get(pk=waiting.id)
    assert (row.state, len(hands.runs)) == (State.FAILED, 3)
    assert Breaker.objects.get().failures == 3  # our own refusal is not the tool's failure


def test_f45_a_tool_that_always_fails_costs_others_nothing(call: MakeCall, hands: Hands) -> None:
    for _ in range(100):
        call("Echo")
    assert len(hands.runs) == 3
    hands.does = works
    assert call("RingInline", ledger="x").is_success
    assert call("Echo").failure is not None


def test_opening_is_news_for_every_process_and_counting_is_not(call: MakeCall, hands: Hands, echo: ToolSpec) -> None:
    before = revision.current()
    call("Echo")
    call("Echo")
    assert revision.current() == before
    call("Echo")
    assert revision.current() != before
    Breaker.objects.update(state=Breaker.State.CLOSED, opened_at=None, retry_at=None)  # by another process
    assert breakers.refusal(echo) is None


def test_without_a_number_there_are_no_breakers(call: MakeCall, hands: Hands, settings: Any) -> None:
    settings.PLACET_BREAKER_FAILURES = 0
    for _ in range(20):
        call("Echo")
    assert len(hands.runs) == 20


def test_every_door_says_when_to_come_again(call: MakeCall, hands: Hands, client: Client) -> None:
    open_it(call)
    key = {"Authorization": f"Bearer {agents.create('bot', actor='shell', call=['Lab']).key}"}
    asked = {"tool_id": "Lab.Echo", "input": {"value": 1}}
    oxp = client.post("/tools/call", {"request": asked}, content_type="application/json", headers=key)
    assert oxp.json()["result"]["error"]["can_retry"] is True
    native = client.post("/api/calls/", asked, content_type="application/json", headers=key)
    assert native.status_code == 502
    body = {"request_id": "r", "tool": {"name": "Lab_Echo"}, "input": {"value": 1}}
    contract = client.post("/contract/v1/execute", body, content_type="application/json", headers=key)
    error = contract.json()["error"]
    assert (contract.status_code, error["code"], error["retryable"]) == (502, "execution_failed", True)
    assert int(contract["Retry-After"]) > 25
    assert 'placet_breaker_open{tool="Lab.Echo@1.0.0"} 1.0' in client.get("/metrics").content.decode()
    rest(retry_at=-1)
    hands.does = works
    again = client.post("/contract/v1/execute", body, content_type="application/json", headers=key)
    assert again.json()["status"] == "ok"


def test_a_person_who_may_publish_the_toolkit_closes_it_in_the_admin(
    call: MakeCall, hands: Hands, admin_client: Client, client: Client
) -> None:
    open_it(call)
    page = reverse("admin:execution_breaker_changelist")
    assert "Lab.Echo" in admin_client.get(page).content.decode()
    action = {"action": "let_through", "_selected_action": [str(Breaker.objects.get().pk)]}
    onlooker = User.objects.create_user("onlooker", is_staff=True)
    client.force_login(onlooker)
    client.post(page, action)
    assert Breaker.objects.get().state == Breaker.State.OPEN
    admin_client.post(page, action)
    assert Breaker.objects.get().state == Breaker.State.CLOSED
    assert news()[-1] == ("Lab@1.0.0", "tool.breaker_closed", "user:admin")
    hands.does = works
    assert call("Echo").is_success
