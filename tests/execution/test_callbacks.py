"""Tools that answer later: the wait is durable, one answer counts, and every other one is told so and recorded."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
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
from tests.protocols.wire import call
from tests.services.toolserver import answer
from tests.services.webhookserver import WebhookTool, echoing_headers, encoded, failed, ok, saying, signed

if TYPE_CHECKING:
    from policy.agents import NewAgent

__all__ = ["publish", "robot", "tool"]
pytestmark = [pytest.mark.usefixtures("at_once"), pytest.mark.django_db]


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
    assert tool.token.encode() not in bytes(held.sealed_token) + bytes(held.sealed_needles or b"")
    assert held.next_poll_at is not None
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
