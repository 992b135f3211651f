"""Chapter one: what the door does with a call before, and instead of, running it."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from django.conf import settings
from django.db import IntegrityError, connection
from guardian.shortcuts import remove_perm

from audit import trail
from audit.models import Event
from audit.rows import Rows
from execution.errors import ErrorCode, Stage
from execution.messages import CallContext
from execution.models import Attempt, Call, State
from policy import agents
from policy.caller import Caller
from policy.models import Agent
from registry.models import Toolkit, ToolkitVersion
from registry.publishing import deprecate, withdraw
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db


def events(outcome_id: Any) -> list[str]:
    found = Event.objects.filter(subject_kind="call", subject_id=str(outcome_id)).order_by("seq")
    return list(found.values_list("event", flat=True))


def test_an_inline_call_leaves_its_row_its_attempt_and_every_event(call: MakeCall) -> None:
    outcome = call("Echo", value=7)
    assert (outcome.state, outcome.value, outcome.failure) == (State.SUCCEEDED, 7, None)
    row = Call.objects.get(pk=outcome.id)
    assert (row.tool_ref, row.dispatch, row.fence, row.result) == ("Lab.Echo@1.0.0", "inline", 1, "7")
    assert row.call_id == outcome.call_id
    assert row.finished_at is not None
    assert row.duration_ms is not None
    assert events(row.pk) == ["call.received", "call.decided", "call.started", "call.succeeded"]
    attempt = Attempt.objects.get(call=row)
    assert (attempt.number, attempt.status) == (1, "succeeded")


def test_what_will_run_is_sealed_while_the_call_is_open_and_gone_after(
    call: MakeCall, unsent: list[Any], tmp_path: Path
) -> None:
    from execution.pipeline.perform import perform

    outcome = call("Ring", ledger=str(tmp_path / "ledger"))
    row = Call.objects.get(pk=outcome.id)
    assert row.state == State.QUEUED
    assert row.sealed is not None
    assert b"ledger" not in bytes(row.sealed)
    perform(row.pk)
    row.refresh_from_db()
    assert row.state == State.SUCCEEDED
    assert row.sealed is None


def test_the_same_call_id_and_request_gets_the_stored_answer_and_runs_once(call: MakeCall, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")
    first = call("RingInline", call_id="once", ledger=ledger)
    second = call("RingInline", call_id="once", ledger=ledger)
    assert (first.value, second.value) == (1, 1)
    assert first.id == second.id
    assert Call.objects.count() == 1


def test_the_same_call_id_with_another_request_is_refused_and_the_first_untouched(call: MakeCall) -> None:
    first = call("Echo", call_id="mine", value=1)
    before = Call.objects.values().get(pk=first.id)
    second = call("Echo", call_id="mine", value=2)
    assert second.failure is not None
    assert second.failure.code is ErrorCode.CALL_ID_REUSED
    assert Call.objects.values().get(pk=first.id) == before
    assert Event.objects.filter(event="call.id_reused", subject_kind="agent", subject_id="tester").count() == 1


def test_a_call_id_belongs_to_its_agent(call: MakeCall, lab: ToolkitVersion) -> None:
    from guardian.shortcuts import assign_perm

    from execution.messages import CallRequest
    from execution.pipeline.admit import admit
    from registry.toolref import ToolRef

    call("Echo", call_id="shared", value="first agent")
    other = agents.create("other", actor="shell").agent
    assign_perm("registry.call_toolkit", other.user, lab.toolkit)
    stranger = Caller(agent_id=other.pk, name=other.name, user_id=other.user_id, credential="")
    outcome = admit(
        CallRequest(
            caller=stranger,
            door="test",
            tool_text="Lab.Echo",
            tool_ref=ToolRef.parse("Lab.Echo"),
            arguments={"value": "second agent"},
            call_id="shared",
        )
    )
    assert outcome.value == "second agent"


def test_an_unknown_tool_and_one_that_may_not_be_seen_get_the_same_answer(call: MakeCall, caller: Caller) -> None:
    unknown = call("Lab.Nothing")
    agent = Agent.objects.get(pk=caller.agent_id)
    remove_perm("registry.call_toolkit", agent.user, Toolkit.objects.get(name="Lab"))
    hidden = call("Lab.Echo", value=1)
    assert unknown.failure is not None
    assert hidden.failure is not None
    assert hidden.failure.code is unknown.failure.code is ErrorCode.UNSUPPORTED_TOOL
    assert hidden.failure.message.replace("Echo", "Nothing") == unknown.failure.message
    assert hidden.state == unknown.state == State.REJECTED


def test_a_tool_that_may_be_seen_but_not_called_is_denied_with_what_would_help(call: MakeCall, caller: Caller) -> None:
    from guardian.shortcuts import assign_perm

    agent, lab = Agent.objects.get(pk=caller.agent_id), Toolkit.objects.get(name="Lab")
    remove_perm("registry.call_toolkit", agent.user, lab)
    assign_perm("registry.view_toolkit", agent.user, lab)
    outcome = call("Echo", value=1)
    assert outcome.failure is not None
    assert outcome.failure.code is ErrorCode.PERMISSION_DENIED
    assert "call" in outcome.failure.developer_message
    row = Call.objects.get(pk=outcome.id)
    assert row.state == State.DENIED
    assert [check["effect"] for check in orjson.loads(row.decision)["checks"]] == ["deny"]


def test_invalid_input_names_the_parameter_and_never_the_value(call: MakeCall) -> None:
    outcome = call("Slow", ledger="/tmp/x", seconds="hunter2-hunter2")
    assert outcome.failure is not None
    assert outcome.failure.code.stage is Stage.INPUT
    assert set(outcome.failure.parameter_errors) == {"seconds"}
    assert "hunter2" not in str(outcome.failure)
    assert events(outcome.id) == ["call.received", "call.rejected"]


def test_what_the_tool_requires_and_the_caller_did_not_bring_is_named(call: MakeCall) -> None:
    outcome = call("Needy", context=CallContext(secrets={"API_KEY": "k-123456789"}))
    assert outcome.failure is not None
    assert outcome.failure.code is ErrorCode.MISSING_REQUIREMENT
    missing = outcome.failure.missing_requirements
    (need,) = missing["authorization"]
    assert need["id"] == "google"
    assert need["url"] == f"{settings.PLACET_URL}/catalogue/Lab/Needy/"
    assert missing["user_id"] is True
    assert "secrets" not in missing


def test_what_the_caller_brought_reaches_the_tool_and_stays_nowhere(call: MakeCall, at_once: None) -> None:
    secret, token = "canary-4f9a2b7c-secret", "canary-77aa-token"
    brought = CallContext(secrets={"API_KEY": secret}, authorization={"google": token}, user_id="ada")
    outcome = call("Needy", context=brought)
    assert outcome.failure is None
    assert outcome.value["secret_length"] == len(secret)
    assert outcome.value["user"] == "ada"
    assert secret not in outcome.value["leak"]
    assert canaries_in_the_database(secret, token) == []


def canaries_in_the_database(*canaries: str) -> list[str]:
    """Every column of every row of every table, as text."""
    hits = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor.fetchall():
                text = " ".join(
                    bytes(v).decode("latin-1") if isinstance(v, bytes | memoryview) else str(v) for v in row
                )
                hits += [f"{table}: {canary}" for canary in canaries if canary in text]
    return hits


def test_a_deprecated_version_still_runs_and_says_so(
    call: MakeCall, lab: ToolkitVersion, people: dict[str, Any]
) -> None:
    deprecate(lab, by=people["author"])
    outcome = call("Echo", value=1)
    assert outcome.value == 1
    assert "deprecated" in outcome.warnings[0]


def test_a_withdrawn_version_can_no_longer_be_called(
    call: MakeCall, lab: ToolkitVersion, people: dict[str, Any]
) -> None:
    withdraw(lab, by=people["author"], reason="It misbehaves")
    outcome = call("Echo", value=1)
    assert outcome.failure is not None
    assert outcome.failure.code is ErrorCode.UNSUPPORTED_TOOL


def test_no_event_no_effect(call: MakeCall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    linked = trail.linked

    def refused(*args: Any, **kwargs: Any) -> tuple[trail.Chain, Rows]:
        """Events that the table does not take."""
        chain, events = linked(*args, **kwargs)
        return chain, events._replace(values=[(*row[:2], -1, *row[3:]) for row in events.values])

    monkeypatch.setattr(trail, "linked", refused)
    with pytest.raises(IntegrityError):
        call("RingInline", ledger=str(tmp_path / "ledger"))
    assert not (tmp_path / "ledger").exists()
    assert not Call.objects.exists()


def test_people_see_a_redacted_result_and_the_caller_the_exact_one_again(call: MakeCall) -> None:
    first = call("Token", call_id="t")
    row = Call.objects.get(pk=first.id)
    assert "page-2-of-the-list" not in row.result
    assert first.value == {"next_page_token": "page-2-of-the-list"}
    assert call("Token", call_id="t").value == first.value


def test_content_is_told_apart_from_values(call: MakeCall) -> None:
    outcome = call("Picture", call_id="p")
    assert [block["type"] for block in outcome.content] == ["text", "image"]
    assert call("Picture", call_id="p").content == outcome.content
