"""Tools that answer later: the wait is durable, one answer counts, and every other one is told so and recorded."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client

from tests.execution.callbackkit import (
    Publish,
    bearer,
    let_time_pass,
    look,
    publish,
    push,
    robot,
    start,
    tool,
    waiting,
)
from tests.protocols.wire import call
from tests.services.toolserver import Session, answer, reset
from tests.services.webhookserver import ACCEPTED, WebhookTool, echoing_headers, encoded, failed, ok, saying, signed

if TYPE_CHECKING:
    from policy.agents import NewAgent

__all__ = ["publish", "robot", "tool"]
pytestmark = [pytest.mark.usefixtures("at_once"), pytest.mark.django_db]


def events() -> list[str]:
    from audit.models import Event

    return list(Event.objects.filter(subject_kind="call").order_by("id").values_list("event", flat=True))


def ended(row: Any) -> tuple[str, Any]:
    row.refresh_from_db()
    return row.state, json.loads(row.result or row.error)


def test_the_tool_is_told_where_its_answer_goes_and_an_immediate_one_ends_the_call(
    client: Client, robot: NewAgent, tool: WebhookTool, settings: Any
) -> None:
    tool.ask = echoing_headers("X-Tool-Contract-Version", "Idempotency-Key", "X-Placet-Callback-Url")
    row = start(client, robot, "job/1 ä")
    told = ended(row)[1]
    assert told["X-Tool-Contract-Version"] == "v1"
    assert told["X-Placet-Callback-Url"] == f"{settings.PLACET_URL}/v1/tool-callbacks/job%2F1%20%C3%A4"
    (asked,) = tool.asked
    assert asked.json["request_id"] == "job/1 ä"
    assert waiting().state == "closed"
    late = push(client, ok({"n": 1}), bearer(tool.token), "job%2F1%20%C3%A4")
    assert late.status_code == 409


def test_after_202_the_call_waits_durably_and_no_worker_is_held(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    assert (row.state, row.fence, row.lease_until, row.sealed is not None) == ("waiting_callback", 1, None, True)
    held = waiting()
    assert (held.state, held.endpoint, held.upstream_status) == ("open", tool.endpoint, "202")
    assert held.token_hash == hashlib.sha256(tool.token.encode()).hexdigest()
    assert tool.token.encode() not in bytes(held.sealed_token) + bytes(held.sealed_needles)
    assert 1 < (held.next_poll_at - held.asked_at).total_seconds() < 4
    assert 29 < (held.deadline - held.asked_at).total_seconds() < 31
    assert events()[-1] == "call.waiting_callback"


@pytest.mark.parametrize("status", [201, 204])
def test_any_other_success_than_200_means_later(
    client: Client, robot: NewAgent, tool: WebhookTool, status: int
) -> None:
    tool.ask = answer(b"", status)
    assert start(client, robot).state == "waiting_callback"


@pytest.mark.parametrize("status", ["pending", "running", "queued", ""])
def test_a_200_that_says_it_has_not_finished_means_later(
    client: Client, robot: NewAgent, tool: WebhookTool, status: str
) -> None:
    tool.ask = tool.poll = saying({"status": status})
    row = start(client, robot)
    tool.knows("job-1")
    look()
    row.refresh_from_db()
    assert (row.state, len(tool.polls)) == ("waiting_callback", 1)


def test_a_pushed_answer_ends_the_call_and_is_checked_stored_and_told(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    pushed = push(client, ok({"n": 7}, request_id="job-1"), bearer(tool.token))
    assert (pushed.status_code, pushed.json()) == (202, {"request_id": "job-1", "status": "delivered"})
    assert ended(row) == ("succeeded", {"n": 7})
    assert (row.sealed, row.lease_until) == (None, None)
    assert row.finished_at is not None
    again = call(client, robot, "Later.Thing", {}, call_id="job-1").json()["result"]
    assert (again["success"], again["value"]) == (True, {"n": 7})
    assert events()[-3:] == ["call.waiting_callback", "call.answered", "call.succeeded"]
    (attempt,) = row.attempts.all()
    assert (attempt.status, attempt.upstream_status, attempt.where.partition("@")[0]) == ("succeeded", "202", "push")
    held = waiting()
    assert (held.state, held.sealed_needles, held.next_poll_at) == ("answered", None, None)


def test_a_signed_answer_is_taken_like_one_with_the_token(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    row = start(client, robot)
    body = encoded(ok({"n": 1}))
    assert push(client, body, signed(tool.token, body)).status_code == 202
    assert ended(row)[0] == "succeeded"
    assert push(client, body, signed(tool.token, body)).status_code == 200


@pytest.mark.parametrize("offset", [-299, 299])
def test_a_signature_may_be_a_little_old_or_early(
    client: Client, robot: NewAgent, tool: WebhookTool, offset: int
) -> None:
    start(client, robot)
    body = encoded(ok({"n": 1}))
    assert push(client, body, signed(tool.token, body, at=time.time() + offset)).status_code == 202


def test_a84_what_does_not_prove_to_be_the_tool_is_refused_and_changes_nothing(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    body, token = encoded(ok({"n": 1})), tool.token
    good = signed(token, body)
    attacks: list[dict[str, str]] = [
        {},
        bearer("wrong"),
        bearer(token + "x"),
        bearer(token.swapcase()),
        bearer("ä" * 43),
        bearer(""),
        {"Authorization": f"Basic {token}"},
        {"Authorization": token},
        signed(token, body, at=time.time() - 310),
        signed(token, body, at=time.time() + 310),
        signed(token, body + b" "),
        signed("another secret", body),
        {"X-Signature": good["X-Signature"]},
        {"X-Signature": good["X-Signature"].removeprefix("sha256="), "X-Timestamp": good["X-Timestamp"]},
        {"X-Signature": good["X-Signature"], "X-Timestamp": good["X-Timestamp"] + ".0"},
        {"X-Signature": good["X-Signature"], "X-Timestamp": "9" * 400},
        {"X-Signature": good["X-Signature"], "X-Timestamp": str(int(good["X-Timestamp"]) + 1)},
        {"X-Signature": "sha256=" + "0" * 64, "X-Timestamp": good["X-Timestamp"], **bearer(token)},
        bearer(robot.key),
    ]
    before = events()
    for headers in attacks:
        refused = push(client, body, headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthenticated"), headers
        assert token not in refused.content.decode()
    row.refresh_from_db()
    assert (row.state, events()) == ("waiting_callback", before)


def test_the_token_of_one_call_answers_no_other(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    start(client, robot, "job-1")
    first = tool.token
    second = start(client, robot, "job-2")
    assert tool.token != first
    assert push(client, ok({"n": 1}), bearer(first), "job-2").status_code == 401
    second.refresh_from_db()
    assert second.state == "waiting_callback"


def test_two_agents_with_the_same_call_id_each_get_their_own_answer(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    from execution.models import Call
    from policy import agents

    start(client, robot)
    first = tool.token
    other = agents.create("other", actor="shell", call=["Later"])
    call(client, other, "Later.Thing", {}, call_id="job-1")
    second = tool.token
    assert push(client, ok({"n": 2}), bearer(second)).status_code == 202
    assert push(client, ok({"n": 1}), bearer(first)).status_code == 202
    answers = {row.agent.name: json.loads(row.result)["n"] for row in Call.objects.select_related("agent")}
    assert answers == {"robot": 1, "other": 2}


@pytest.mark.parametrize("request_id", ["nothing", "%00", "x" * 300, "a/b", "%ff"])
def test_an_unknown_request_is_404(client: Client, robot: NewAgent, tool: WebhookTool, request_id: str) -> None:
    start(client, robot)
    assert push(client, ok({}), bearer(tool.token), request_id).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"ok"',
        b'{"status":"ok","status":"ok"}',
        b"{}",
        encoded({"status": "running"}),
        encoded({"status": "done"}),
        encoded({"status": 1}),
        encoded(ok({"n": 1}, request_id="another")),
        b'{"status":"ok","output":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
)
def test_what_is_no_answer_is_refused_and_the_token_stays_good(
    client: Client, robot: NewAgent, tool: WebhookTool, body: bytes
) -> None:
    row = start(client, robot)
    assert push(client, body, bearer(tool.token)).status_code == 400
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 202
    assert ended(row)[0] == "succeeded"


def test_an_answer_larger_than_any_may_be_is_413(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    row = start(client, robot)
    assert push(client, ok({"n": 1, "x": "x" * 1_000_001}), bearer(tool.token)).status_code == 413
    row.refresh_from_db()
    assert row.state == "waiting_callback"


def test_only_post_is_answered(client: Client, robot: NewAgent) -> None:
    refused = client.get("/v1/tool-callbacks/job-1")
    assert (refused.status_code, refused["Allow"]) == (405, "POST")


def test_i21_f38_the_same_answer_again_is_200_and_another_one_409_and_told(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 202
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 200
    assert "call.callback_refused" not in events()
    assert push(client, ok({"n": 2}), bearer(tool.token)).status_code == 409
    assert ended(row) == ("succeeded", {"n": 1})
    assert events()[-1] == "call.callback_refused"
    assert row.attempts.count() == 1


def test_refused_answers_without_end_fill_no_trail(client: Client, robot: NewAgent, tool: WebhookTool) -> None:
    from execution.callbacks import MAX_REFUSED

    start(client, robot)
    for n in range(MAX_REFUSED + 5):
        push(client, ok({"n": n}), bearer(tool.token))
    assert events().count("call.callback_refused") == MAX_REFUSED


def test_46_when_its_time_is_over_the_call_timed_out_and_an_answer_is_410(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    from execution.sweeping import sweep

    row = start(client, robot)
    sweep()
    row.refresh_from_db()
    assert row.state == "waiting_callback"
    let_time_pass()
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 410
    sweep()
    state, error = ended(row)
    assert (state, error["code"], error["details"]["request_id"]) == ("timed_out", "timeout", "job-1")
    assert (row.sealed, waiting().state, waiting().sealed_needles) == (None, "expired", None)
    assert push(client, ok({"n": 1}), bearer(tool.token)).status_code == 410
    assert ended(row)[0] == "timed_out"
    assert events().count("call.callback_refused") == 2


def test_a_timeout_is_tried_again_and_the_old_attempts_token_answers_nothing(
    client: Client, publish: Publish, tool: WebhookTool
) -> None:
    from execution.sweeping import sweep

    row = start(client, publish(attempts=2))
    old = tool.token
    let_time_pass()
    sweep()
    row.refresh_from_db()
    assert (row.state, row.fence, len(tool.asked)) == ("waiting_callback", 2, 2)
    assert [asked.json["attempt"] for asked in tool.asked] == [1, 2]
    assert tool.token != old
    assert push(client, ok({"n": 1}), bearer(old)).status_code == 410
    assert push(client, ok({"n": 2}), bearer(tool.token)).status_code == 202
    assert ended(row) == ("succeeded", {"n": 2})
    assert [attempt.status for attempt in row.attempts.order_by("number")] == ["failed", "succeeded"]


def test_a_tool_that_must_not_run_twice_is_asked_once_whatever_it_answers(
    client: Client, publish: Publish, tool: WebhookTool
) -> None:
    row = start(client, publish(attempts=3, idempotency="non_idempotent"))
    assert push(client, failed("busy", retryable=True), bearer(tool.token)).status_code == 202
    assert (ended(row)[0], len(tool.asked)) == ("failed", 1)


def test_a_pushed_failure_is_told_and_a_retryable_one_tried_again(
    client: Client, publish: Publish, tool: WebhookTool
) -> None:
    row = start(client, publish(attempts=2))
    assert push(client, failed("busy", retryable=True), bearer(tool.token)).status_code == 202
    row.refresh_from_db()
    assert (row.state, row.fence) == ("waiting_callback", 2)
    assert push(client, failed("no such thing"), bearer(tool.token)).status_code == 202
    state, error = ended(row)
    assert (state, error["code"], error["message"]) == ("failed", "execution_failed", "no such thing")


def test_an_answer_that_breaks_the_output_schema_fails_the_call(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    assert push(client, ok({"n": "seven"}), bearer(tool.token)).status_code == 202
    state, error = ended(row)
    assert (state, "output schema" in error["developer_message"]) == ("failed", True)


def test_an_answer_that_tells_the_token_or_a_password_is_redacted(
    client: Client, robot: NewAgent, tool: WebhookTool
) -> None:
    row = start(client, robot)
    assert push(client, ok({"n": 1, "seen": f"it was {tool.token}."}), bearer(tool.token)).status_code == 202
    row.refresh_from_db()
    assert tool.token not in row.result
    shown = call(client, robot, "Later.Thing", {}, call_id="job-1").content.decode()
    assert tool.token not in shown


def test_the_tools_secret_is_sent_with_each_look_and_never_shown(
    client: Client, publish: Publish, tool: WebhookTool
) -> None:
    from execution import secretstore

    robot = publish(auth={"profile": "bearer", "secretRef": "jobs-token"})
    secretstore.create("jobs-token", {"value": "canary-4711-of-jobs"}, actor="shell", toolkits=["Later"])
    row = start(client, robot)
    tool.knows("job-1")
    look()
    assert [asked.headers["Authorization"] for asked in tool.server.asked] == ["Bearer canary-4711-of-jobs"] * 2
    assert push(client, ok({"seen": "canary-4711-of-jobs"}), bearer(tool.token)).status_code == 202
    row.refresh_from_db()
    assert row.state == "succeeded"
    assert "canary-4711" not in row.result


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
    assert row.attempts.get().status == "cancelled"
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
