"""One call as a timeline: the whole story, in words, with evidence that is checked while one looks."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from audit.models import Event
from audit.sealing import seal_new_events
from execution import calls, losses
from execution.claim import Claim
from execution.errors import ErrorCode, Failure
from execution.models import Call, State
from execution.runtimes.base import RunResult
from execution.sentences import milliseconds, sentence
from execution.timeline import timeline_of
from policy.models import Agent
from registry.models import ToolkitVersion
from registry.resolution import resolve
from registry.toolref import ToolRef
from tests.execution.conftest import Call as MakeCall
from tests.flushing import without_triggers

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> None:
    settings.PLACET_HOME = tmp_path


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create_superuser("root"))


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def row(outcome: Any) -> Call:
    return Call.objects.get(pk=outcome.id)


def claim_of(call: Call) -> Claim:
    ref = ToolRef.parse(call.tool_ref)
    tool = resolve(ref) if ref else None
    assert tool is not None
    claim = calls.claim(call, tool, "tester")
    assert claim is not None
    return claim


def succeeded(call: MakeCall, value: Any = None, **arguments: Any) -> Call:
    """A call that a worker has answered, without running anything."""
    queued = row(call("Ring", ledger="/nowhere", **arguments))
    calls.succeed(claim_of(queued), RunResult(value=value))
    return Call.objects.get(pk=queued.pk)


def unknown(call: MakeCall) -> Call:
    queued = row(call("Ring", ledger="/nowhere"))
    claim_of(queued)
    Call.objects.filter(pk=queued.pk).update(lease_until="2000-01-01T00:00Z")
    lost = Failure(code=ErrorCode.OUTCOME_UNKNOWN, message="The worker was lost")
    assert losses.give_up(Call.objects.get(pk=queued.pk), lost, state=State.UNKNOWN)
    return Call.objects.get(pk=queued.pk)


def page(client: Client, call: Call) -> str:
    answer = client.get(f"/calls/{call.pk}/")
    assert answer.status_code == 200
    return answer.content.decode()


def tamper(statement: str, *parameters: Any) -> None:
    with without_triggers(connection), connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def test_the_story_is_told_from_request_to_result(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    done = succeeded(call, value={"lines": 7})
    assert seal_new_events() is not None
    told = page(root, done)
    places = [
        told.index(text)
        for text in (
            "Agent tester asked for Lab.Ring@1.0.0 at the test door.",
            "Policy allowed it: Low risk runs without a person.",
            "Put in the queue for a worker.",
            "Attempt 1 began in worker@",
            "Attempt 1 returned a result after",
        )
    ]
    assert places == sorted(places)
    assert "&quot;lines&quot;: 7" in told
    assert "Verified just now" in told
    assert 'hx-get="/calls/' not in told
    for check in ("permission", "default"):
        assert f"<strong>{check}</strong>: allow" in told


def test_an_open_call_renews_itself_until_it_has_ended(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    queued = row(call("Ring", ledger="/nowhere"))
    assert f'hx-get="/calls/{queued.pk}/story/?seen=' in page(root, queued)
    seen = timeline_of(queued).version
    story = f"/calls/{queued.pk}/story/"
    assert root.get(story, {"seen": seen}).status_code == 204
    calls.succeed(claim_of(queued), RunResult(value=1))
    moved = root.get(story, {"seen": seen})
    assert moved.status_code == 200
    assert b"<html" not in moved.content
    assert b"hx-get" in moved.content  # it has ended, and its seal is still to come
    assert seal_new_events() is not None
    assert b"hx-get" not in root.get(story, {"seen": seen}).content
    assert Client().get(story).headers["HX-Refresh"] == "true"


def test_events_say_by_which_seal_they_are_held(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    done = succeeded(call)
    assert "Not sealed yet" in page(root, done)
    assert seal_new_events() is not None
    assert "Every event is sealed, by seal 1." in page(root, done)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM audit_event WHERE subject_kind = 'agent'",
        "UPDATE audit_seal SET merkle_root = prev_seal_hash",
        "UPDATE audit_seal SET count = count + 1",
    ],
)
def test_a_seal_that_no_longer_fits_vouches_for_nothing(
    root: Client, call: MakeCall, unsent: list[Any], change: str
) -> None:
    done = succeeded(call)
    assert seal_new_events() is not None
    assert timeline_of(done).faults == ()
    tamper(change)
    told = page(root, done)
    assert "Not verified" in told
    assert "Seal 1 is not signed by us, or no longer fits the events it was made over." in told
    assert "Every event is sealed" not in told


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE audit_event SET actor = 'system' WHERE event = 'call.received'", "Event 1, call.received: its hash"),
        ("UPDATE audit_event SET detail = '{}' WHERE event = 'call.succeeded'", "its hash does not fit what it says"),
        ("DELETE FROM audit_event WHERE event = 'call.queued'", "what came before it is missing"),
        ("DELETE FROM audit_event WHERE event = 'call.succeeded'", "no event tells of such an end"),
        ("DELETE FROM audit_event", "No event tells that this call was received"),
        ("UPDATE audit_event SET key_id = 'other'", "under a key that is not known here"),
    ],
)
def test_an_event_that_was_touched_is_shown_as_not_verified(
    root: Client, call: MakeCall, unsent: list[Any], change: str, fault: str
) -> None:
    done = succeeded(call)
    tamper(f"{change} {'AND' if 'WHERE' in change else 'WHERE'} subject_kind = 'call'")
    told = page(root, done)
    assert "Not verified" in told
    assert "Verified just now" not in told
    assert fault in told


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("input", '{"ledger":"/elsewhere"}', "input"),
        ("result", "42", "result"),
        ("tool_ref", "Lab.Other@1.0.0", "tool"),
        ("decision", '{"effect":"deny"}', "decision"),
        ("call_id", "another", "call_id"),
    ],
)
def test_a_row_that_no_longer_fits_its_events_is_shown_as_not_verified(
    root: Client, call: MakeCall, unsent: list[Any], column: str, value: str, what: str
) -> None:
    done = succeeded(call, value=7)
    assert timeline_of(done).faults == ()
    tamper(f"UPDATE execution_call SET {column} = %s", value)
    assert f"The stored {what.replace('_', ' ')} is not the one that the events recorded." in page(root, done)


def test_a_state_that_no_event_tells_of_is_a_fault(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    done = succeeded(call)
    tamper("UPDATE execution_call SET state = 'failed'")
    assert "The row says failed, and no event tells of such an end." in page(root, done)


@pytest.mark.parametrize("spoiled", ["{not json", "[]", '"text"', "null"])
def test_spoiled_rows_are_shown_and_never_break_the_page(
    root: Client, call: MakeCall, unsent: list[Any], spoiled: str
) -> None:
    done = succeeded(call)
    tamper("UPDATE execution_call SET input = %s, result = %s, decision = %s", spoiled, spoiled, spoiled)
    tamper("UPDATE audit_event SET detail = %s WHERE subject_kind = 'call'", spoiled)
    assert "Not verified" in page(root, done)


def test_hostile_text_is_literal_everywhere_on_the_page(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e\x07"
    done = succeeded(call, value={hostile: hostile}, call_id="<b>id</b>")
    refused = row(call(f"Lab.{hostile}", x=hostile))
    for shown in (done, refused):
        told = page(root, shown)
        assert "<img src=x" not in told
        assert "<b>id" not in told
        assert "\u202e" not in told
        assert "\x07" not in told
        assert "&lt;img src=x onerror=alert(1)&gt;⟨U+202E⟩" in told


def test_long_values_are_folded(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    assert "characters</summary>" in page(root, succeeded(call, value=["x" * 50] * 100))


def test_the_page_has_no_script_or_style_of_its_own(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    story = root.get(f"/calls/{succeeded(call).pk}/story/").content.lower()
    for word in (b"<script", b" style=", b"onclick", b"javascript:"):
        assert word not in story


def test_an_owner_cancels_a_waiting_call(call: MakeCall, unsent: list[Any]) -> None:
    owner = User.objects.create_user("owner")
    Agent.objects.filter(name="tester").update(owner=owner)
    queued = row(call("Ring", ledger="/nowhere"))
    client = client_of(owner)
    assert f'action="/calls/{queued.pk}/cancel/"' in page(client, queued)
    assert client.get(f"/calls/{queued.pk}/cancel/").status_code == 405
    assert client.post(f"/calls/{queued.pk}/cancel/").status_code == 302
    queued.refresh_from_db()
    assert queued.state == State.CANCELLED
    assert "owner cancelled the call before it ran." in page(client, queued)
    assert "Cancel the call" not in page(client, queued)


def test_who_only_audits_may_look_and_not_cancel_or_settle(
    call: MakeCall, unsent: list[Any], lab: ToolkitVersion
) -> None:
    auditor = User.objects.create_user("auditor")
    assign_perm("registry.audit_toolkit", auditor, lab.toolkit)
    client = client_of(auditor)
    queued, lost = row(call("Ring", ledger="/nowhere")), unknown(call)
    assert "Cancel the call" not in page(client, queued)
    client.post(f"/calls/{queued.pk}/cancel/")
    assert Call.objects.get(pk=queued.pk).state == State.QUEUED
    assert "Settle the outcome" not in page(client, lost)
    client.post(f"/calls/{lost.pk}/settle/", {"outcome": "failed", "reason": "I say so"})
    assert Call.objects.get(pk=lost.pk).state == State.UNKNOWN


def test_a_publisher_settles_an_unknown_outcome_with_a_reason(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    lost = unknown(call)
    assert f'action="/calls/{lost.pk}/settle/"' in page(root, lost)
    root.post(f"/calls/{lost.pk}/settle/", {"outcome": "succeeded", "reason": ""})
    assert Call.objects.get(pk=lost.pk).state == State.UNKNOWN
    root.post(f"/calls/{lost.pk}/settle/", {"outcome": "succeeded", "reason": "Seen in the ledger"})
    lost.refresh_from_db()
    assert lost.state == State.SUCCEEDED
    told = page(root, lost)
    assert "root established that the call succeeded: Seen in the ledger" in told
    assert "Verified just now" in told


def test_a_call_of_others_looks_like_one_that_does_not_exist(call: MakeCall, unsent: list[Any]) -> None:
    queued = row(call("Ring", ledger="/nowhere"))
    client = client_of(User.objects.create_user("stranger", is_staff=True))
    for rest in ("", "story/"):
        assert client.get(f"/calls/{queued.pk}/{rest}").status_code == 404
    for rest in ("cancel/", "settle/"):
        assert client.post(f"/calls/{queued.pk}/{rest}").status_code == 404
    assert Client().get(f"/calls/{queued.pk}/").headers["Location"].startswith("/login/?next=/calls/")


def test_every_state_has_a_page_that_verifies(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    ended = [
        row(call("Lab.Nothing")),
        succeeded(call),
        unknown(call),
        calls.cancel(row(call("Ring", ledger="/a")), actor="user:root"),
    ]
    for code in (ErrorCode.EXECUTION_FAILED, ErrorCode.TIMEOUT, ErrorCode.CANCELED):
        queued = row(call("Ring", ledger="/a"))
        calls.fail(claim_of(queued), Failure(code=code, message="It went wrong"))
        ended.append(queued)
    retried = row(call("Ring", ledger="/a"))
    calls.retry(claim_of(retried), Failure(code=ErrorCode.TIMEOUT, message="Slow"), 1.5)
    expired = row(call("Ring", ledger="/a"))
    assert calls.expire(expired)
    denied = row(call("Ring", ledger="/a"))
    assert calls.deny(denied, Failure(code=ErrorCode.PERMISSION_DENIED, message="No longer allowed"))
    for shown in [*ended, retried, expired, denied]:
        told = page(root, shown)
        assert "Verified just now" in told, Call.objects.get(pk=shown.pk).state
        for name in Event.objects.filter(subject_id=str(shown.pk)).values_list("event", flat=True):
            assert f"{name} by" not in told


def test_times_are_for_the_viewers_zone_and_utc_is_only_on_hover(
    root: Client, call: MakeCall, unsent: list[Any]
) -> None:
    text = page(root, succeeded(call))
    assert "portal/times.js" in text
    assert text.count('data-style="clock"') == 2  # when the attempt began and ended
    assert "UTC" not in re.sub(r"<time.*?</time>", "", text)


def test_tool_and_agent_lead_to_their_pages_where_one_may_open_them(
    root: Client, call: MakeCall, unsent: list[Any]
) -> None:
    shown = succeeded(call)
    links = ('href="/catalogue/Lab/Ring/"', f'href="/agents/{shown.agent.name}/"')
    told = page(root, shown)
    assert all(each in told for each in links)
    for each in links:
        assert root.get(each[6:-1]).status_code == 200
    approver = User.objects.create_user("reader")
    approver.user_permissions.add(Permission.objects.get(codename="view_call"))
    told = page(client_of(User.objects.get(pk=approver.pk)), shown)
    assert not any(each in told for each in links)


def test_a_question_without_its_end_says_nothing_about_it() -> None:
    assert sentence("approval.asked", "system", {}) == "One person had to agree."


def test_a_page_costs_the_same_queries_however_long_the_story(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    short, long = succeeded(call), row(call("Ring", ledger="/a"))
    for _ in range(5):
        calls.retry(claim_of(Call.objects.get(pk=long.pk)), Failure(code=ErrorCode.TIMEOUT, message="Slow"), 0.0)
    spent = []
    for shown in (short, long):
        page(root, shown)
        with CaptureQueriesContext(connection) as queries:
            page(root, shown)
        spent.append(len(queries))
    assert spent[0] == spent[1]


def test_spans_of_time_are_told_as_people_read_them() -> None:
    told = [milliseconds(value) for value in (0, 0.42, 12.4, 3_400, 125_000, 7_500_000)]
    assert told == ["0 ms", "0.4 ms", "12 ms", "3.4 s", "2 min 5 s", "2 h 5 min"]


def test_an_event_without_words_of_its_own_is_told_by_its_name() -> None:
    assert sentence("call.teleported", "system", {}) == "call.teleported by system"
