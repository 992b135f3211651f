"""The wait for a late answer: asked for, overtaken, cancelled, withdrawn or raced, and what people read about it."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client

from tests.execution.callbackkit import (
    Publish,
    bearer,
    ended,
    events,
    let_time_pass,
    look,
    publish,
    push,
    robot,
    start,
    tool,
    waiting,
)
from tests.services.toolserver import Session, answer, reset
from tests.services.webhookserver import ACCEPTED, WebhookTool, failed, ok, saying

if TYPE_CHECKING:
    from policy.agents import NewAgent

__all__ = ["publish", "robot", "tool"]
pytestmark = [pytest.mark.usefixtures("at_once"), pytest.mark.django_db]


def test_42_a_look_finds_the_answer_and_the_push_that_follows_is_409(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    tool.knows("job-1")
    look()
    tool.poll = answer(b"", 204)
    look()
    tool.poll = saying(ok({"n": 3}))
    look()
    assert ended(row) == ("succeeded", {"n": 3})
    assert [asked.path for asked in tool.polls] == ["/jobs/job-1"] * 3
    assert tool.polls[0].headers["Accept"] == "application/json"
    assert push(client, ok({"n": 4}), bearer(tool.token)).status_code == 409
    assert waiting().polls == 3
    assert row.attempts.get().sent > sum(len(asked.body) for asked in tool.asked)


def test_a_failure_that_a_look_finds_is_an_answer_and_a_retryable_one_tried_again(
    client: Client, publish: Publish, tool: WebhookTool
) -> None:
    row = start(client, publish(attempts=2))
    tool.knows("job-1")
    tool.poll = saying(failed("busy", retryable=True))
    look()
    row.refresh_from_db()
    assert (row.state, row.fence, waiting(1).state) == ("waiting_callback", 2, "answered")
    tool.poll = saying(failed("gone", retryable=True))
    look(2)
    state, error = ended(row)
    assert (state, error["message"]) == ("failed", "gone")


def test_a_look_after_the_last_moment_ends_the_wait_without_asking(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    from execution.pipeline import answering

    row = start(client, robot)
    let_time_pass()
    answering.look(waiting().pk)
    assert (ended(row)[0], tool.polls) == ("timed_out", [])


def test_an_answer_to_a_call_whose_key_is_gone_is_not_shown_and_keeps_no_other_waiting(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    """Without the key nobody knows which parts of the answer are secret."""
    from execution.models import Callback
    from execution.sweeping import sweep

    row, other = start(client, robot), start(client, robot, "job-2")
    lost = Callback.objects.get(call=row)
    Callback.objects.filter(pk=lost.pk).update(sealed_needles=b"\x02zzbroken")
    token = tool.asked[0].headers["X-Placet-Callback-Token"]
    assert push(client, ok({"n": 4711}), bearer(token)).status_code == 202
    state, error = ended(row)
    assert (state, error["code"], "4711" in row.result) == ("failed", "internal", False)
    Callback.objects.filter(call=other).update(sealed_needles=b"\x02zzbroken")
    let_time_pass()
    sweep()
    assert ended(other)[0] == "timed_out"


def test_it_is_not_time_to_look_before_two_seconds(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    from execution.pipeline import answering

    start(client, robot)
    answering.look(waiting().pk)
    assert tool.polls == []


def test_43_failed_looks_are_counted_and_the_wait_goes_on(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    row = start(client, robot)
    tool.knows("job-1")
    for trouble in (reset(), answer("busy", 503), answer("slow down", 429, Retry_After="9"), saying("ok", 408)):
        tool.poll = trouble
        look()
    row.refresh_from_db()
    held = waiting()
    assert (row.state, held.polls, held.failed_polls) == ("waiting_callback", 4, 4)
    tool.poll = saying(ok({"n": 1}))
    look()
    assert ended(row)[0] == "succeeded"


@pytest.mark.parametrize(
    ("status", "code"), [(404, "execution_failed"), (401, "auth_invalid"), (403, "auth_forbidden")]
)
def test_a_look_that_is_refused_for_good_ends_the_wait(
    client: Client, robot: NewAgent, tool: WebhookTool, status: int, code: str
) -> None:
    row = start(client, robot)
    tool.knows("job-1")
    tool.poll = answer("no", status)
    look()
    state, error = ended(row)
    assert (state, error["code"]) == ("failed", code)


def test_a_look_at_the_answer_of_another_request_is_a_failure(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    tool.knows("job-1")
    tool.poll = saying(ok({"n": 1}, request_id="other"))
    look()
    assert ended(row)[0] == "failed"


def test_looks_that_a_broker_lost_are_sent_again_by_the_sweeper(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    from execution.models import Callback
    from execution.sweeping import sweep
    from registry.clock import Later

    row = start(client, robot)
    tool.knows("job-1")
    tool.poll = saying(ok({"n": 1}))
    sweep()
    assert tool.polls == []
    Callback.objects.update(next_poll_at=Later(-5))
    sweep()
    assert ended(row)[0] == "succeeded"


def test_f39_an_answer_that_overtakes_our_own_records_is_taken_and_not_doubled(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    """The tool pushes while its 202 is still on the way: the call is running, and ends from there."""
    pushed: list[int] = []

    def ask(session: Session) -> None:
        ACCEPTED(session)

    from execution import waiting as waits

    real = waits.begin

    def begin(claim: Any, traffic: Any) -> bool:
        from execution.models import Call

        assert Call.objects.get(pk=claim.id).state == "running"
        pushed.append(push(client, ok({"n": 5}), bearer(tool.token)).status_code)
        return real(claim, traffic)

    tool.ask = ask
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waits, "begin", begin)
        row = start(client, robot)
    assert pushed == [202]
    assert ended(row) == ("succeeded", {"n": 5})
    assert events().count("call.succeeded") == 1
    assert "call.waiting_callback" not in events()
    assert row.attempts.count() == 1


def test_a_cancelled_call_ends_and_its_answer_is_409(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    from execution import calls

    row = start(client, robot)
    calls.cancel(row, actor="agent:robot")
    state, error = ended(row)
    assert (state, error["code"], row.sealed) == ("cancelled", "canceled", None)
    attempt = row.attempts.get()
    assert (attempt.status, attempt.upstream_status) == ("cancelled", "202")
    assert (attempt.sent, attempt.received) == (waiting().sent, waiting().received)
    assert attempt.sent > 100
    assert attempt.received > 10
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 409
    assert ended(row)[0] == "cancelled"
    assert waiting().sealed_needles is None


def test_a_cancellation_that_came_while_the_tool_was_asked_ends_the_wait(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    from execution import calls
    from execution import waiting as waits
    from execution.models import Call

    real = waits.begin

    def begin(claim: Any, traffic: Any) -> bool:
        calls.cancel(Call.objects.get(pk=claim.id), actor="agent:robot")
        return real(claim, traffic)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waits, "begin", begin)
        row = start(client, robot)
    row.refresh_from_db()
    assert row.state == "cancelled"


def lose_the_worker(row: Any) -> None:
    """As if it had died between the request and its own record of the 202."""
    from execution.models import Call, Callback
    from execution.sweeping import sweep
    from registry.clock import Later

    Callback.objects.update(next_poll_at=None)
    Call.objects.filter(pk=row.pk).update(state="running", lease_until=Later(-1))
    sweep()
    row.refresh_from_db()


def test_f38_the_token_of_an_attempt_that_was_lost_and_repeated_is_409(
    client: Client, publish: Publish, tool: WebhookTool
) -> None:
    row = start(client, publish())
    old = tool.token
    lose_the_worker(row)
    assert (row.state, row.fence, waiting(1).state) == ("waiting_callback", 2, "open")
    assert push(client, ok({"n": 1}), bearer(old)).status_code == 409
    row.refresh_from_db()
    assert row.state == "waiting_callback"
    assert push(client, ok({"n": 2}), bearer(tool.token)).status_code == 202
    assert ended(row) == ("succeeded", {"n": 2})
    assert events().count("call.callback_refused") == 1


def test_an_answer_to_a_call_that_a_person_must_settle_is_409_and_recorded(
    client: Client, publish: Publish, tool: WebhookTool
) -> None:
    from execution.sweeping import sweep

    row = start(client, publish(idempotency="non_idempotent"))
    lose_the_worker(row)
    assert row.state == "unknown"
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 409
    assert events()[-1] == "call.callback_refused"
    let_time_pass()
    sweep()
    row.refresh_from_db()
    assert (row.state, waiting().state, waiting().sealed_needles) == ("unknown", "closed", None)


def test_a_tool_withdrawn_while_it_worked_may_still_answer(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    from registry import publishing
    from registry.models import ToolkitVersion

    row = start(client, robot)
    publishing.withdraw(ToolkitVersion.objects.get(toolkit__name="Later"), by=None, reason="gone")
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 202
    assert ended(row)[0] == "succeeded"


def test_a34_an_endpoint_that_is_placet_itself_is_never_called(
    client: Client, publish: Publish, tool: WebhookTool, settings: Any
) -> None:
    settings.PLACET_URL = tool.server.url
    row = start(client, publish())
    state, error = ended(row)
    assert (state, error["code"], error["details"]["refused"]) == ("failed", "runtime_policy_invalid", "loop")
    assert tool.server.asked == []


def test_a34_an_endpoint_on_a_closed_address_is_never_called(
    client: Client, publish: Publish, tool: WebhookTool, settings: Any
) -> None:
    settings.PLACET_EGRESS_ALLOW = []
    row = start(client, publish())
    assert ended(row)[1]["code"] == "runtime_policy_invalid"
    assert tool.server.connections == 0


def test_the_timeline_tells_of_the_wait_and_verifies(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    from audit.verification import verify
    from execution.timeline import timeline_of

    row = start(client, robot)
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 202
    assert push(client, ok({"n": 2}), bearer(tool.token)).status_code == 409
    row.refresh_from_db()
    told = timeline_of(row)
    sentences = [moment.sentence for moment in told.moments]
    assert "Attempt 1: the tool took the call and answers later." in sentences
    assert "The tool sent its answer to attempt 1." in sentences
    assert sentences[-1] == "An answer to attempt 1 came after the attempt had ended; it was not used."
    assert told.faults == ()
    assert verify().is_intact


@pytest.mark.django_db(transaction=True)
def test_of_many_answers_at_the_same_moment_exactly_one_counts(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    tool.poll = saying(ok({"n": 100}))
    for number in range(5):
        row = start(client, robot, f"race-{number}")
        tool.knows(f"race-{number}")
        token, statuses, begin = tool.token, list[int](), threading.Barrier(5, timeout=30)

        def one(n: int, request_id: str, key: str) -> None:
            try:
                begin.wait()  # noqa: B023  joined before the next round
                if n == 4:
                    look_for(request_id)
                else:
                    statuses.append(push(Client(), ok({"n": n}), bearer(key), request_id).status_code)  # noqa: B023
            finally:
                connection.close()

        threads = [threading.Thread(target=one, args=(n, f"race-{number}", token)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ended(row)[0] == "succeeded"
        won = json.loads(row.result)["n"]
        assert sorted(statuses) == ([409] * 4 if won == 100 else [202, 409, 409, 409])
        assert row.attempts.count() == 1


def look_for(request_id: str) -> None:
    from execution.models import Callback
    from execution.pipeline import answering
    from registry.clock import Later

    Callback.objects.filter(request_id=request_id, state="open").update(next_poll_at=Later(-0.1))
    answering.look(Callback.objects.get(request_id=request_id).pk)
