"""Calls, attempts and demotions in the web admin."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from audit.models import Event
from execution.models import Attempt, Call, Demotion, State
from policy.models import Agent
from registry.ids import new_id
from registry.models import Tool, ToolkitVersion
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db

CALLS = "/admin/execution/call/"


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def agent(caller: Any) -> Agent:
    return Agent.objects.get(name="tester")


def made(agent: Agent, **more: Any) -> Call:
    """A call's row as the doors leave it, without its events."""
    id = new_id()
    tool = Tool.objects.get(name="Echo")
    told = {
        "call_id": str(id),
        "tool": tool,
        "tool_ref": "Lab.Echo@1.0.0",
        "state": State.SUCCEEDED,
        "door": "oxp",
        "duration_ms": 3.2,
    }
    return Call.objects.create(
        id=id, agent=agent, fingerprint="f" * 64, finished_at=datetime.now(UTC), **{**told, **more}
    )


def rows(page: bytes) -> int:
    return page.count(b'class="field-when')


def test_the_list_shows_time_agent_tool_state_and_duration(root: Client, agent: Agent) -> None:
    made(agent)
    page = root.get(CALLS).content.decode()
    for text in ("tester", "Lab.Echo@1.0.0", "Succeeded", "OXP", "3.2 ms"):
        assert text in page


def test_the_newest_call_stands_first(root: Client, agent: Agent) -> None:
    older = made(agent, tool_ref="Lab.Older@1.0.0")
    made(agent, tool_ref="Lab.Newer@1.0.0")
    page = root.get(CALLS).content.decode()
    assert page.index("Lab.Newer") < page.index("Lab.Older")
    assert f"/admin/execution/call/{older.pk}/change/" in page


@pytest.mark.parametrize(
    "asked",
    [
        {"q": "special-id"},
        {"q": "Lab.Special"},
        {"q": "trace-9"},
        {"q": "it broke"},
        {"state__exact": "failed"},
        {"door": "otc"},
    ],
)
def test_search_and_filters_find_the_one_call(root: Client, agent: Agent, asked: dict[str, str]) -> None:
    made(agent)
    made(
        agent,
        call_id="special-id",
        tool_ref="Lab.Special@1.0.0",
        trace_id="trace-9",
        error='{"code":"execution_failed","message":"it broke"}',
        state=State.FAILED,
        door="otc",
    )
    assert rows(root.get(CALLS, asked).content) == 1


def test_a_call_is_found_by_its_id_agent_and_toolkit(root: Client, agent: Agent) -> None:
    one, _ = made(agent), made(agent)
    assert rows(root.get(CALLS, {"q": str(one.pk)}).content) == 1
    for asked in ({"q": "tester"}, {"agent": "tester"}, {"toolkit": "Lab"}):
        assert rows(root.get(CALLS, asked).content) == 2
    for asked in ({"agent": "other"}, {"toolkit": "Other"}):
        assert rows(root.get(CALLS, asked).content) == 0
    assert root.get(CALLS, {"q": "x" * 60_000}).status_code == 200


def test_a_call_opens_as_its_timeline(root: Client, agent: Agent) -> None:
    call = made(agent)
    assert root.get(f"{CALLS}{call.pk}/change/").headers["Location"] == f"/calls/{call.pk}/"
    assert root.get(f"{CALLS}{new_id()}/change/").status_code == 404
    assert root.get(f"{CALLS}nonsense/change/").status_code == 404


def test_nothing_can_be_added_changed_or_removed(root: Client, agent: Agent) -> None:
    call = made(agent)
    for kind in ("call", "attempt", "demotion"):
        assert root.post(f"/admin/execution/{kind}/add/", {}).status_code == 403
    root.post(f"{CALLS}{call.pk}/change/", {"state": "failed"})
    assert root.post(f"{CALLS}{call.pk}/delete/", {"post": "yes"}).status_code == 403
    root.post(CALLS, {"action": "delete_selected", "_selected_action": [str(call.pk)], "post": "yes"})
    assert Call.objects.get(pk=call.pk).state == State.SUCCEEDED


def test_lists_cost_the_same_queries_whatever_their_length(root: Client, agent: Agent) -> None:
    for address in (CALLS, "/admin/execution/attempt/"):
        spent = []
        for count in (2, 30):
            for _ in range(count):
                Attempt.objects.create(
                    call=made(agent), number=1, where="w", finished_at=datetime.now(UTC), status="succeeded"
                )
            root.get(address)
            with CaptureQueriesContext(connection) as queries:
                root.get(address)
            spent.append(len(queries))
        assert spent[0] == spent[1], address


def test_staff_see_the_calls_that_are_theirs_and_only_these(agent: Agent, lab: ToolkitVersion) -> None:
    call = made(agent)
    Attempt.objects.create(call=call, number=1, where="w", finished_at=datetime.now(UTC), status="succeeded")
    clerk = User.objects.create_user("clerk", is_staff=True)
    client = Client()
    client.force_login(clerk)
    for address, mark in ((CALLS, "tester"), ("/admin/execution/attempt/", "Lab.Echo@1.0.0")):
        assert mark not in client.get(address).content.decode()
    assert client.get(f"{CALLS}{call.pk}/change/").status_code == 404
    assign_perm("registry.audit_toolkit", clerk, lab.toolkit)
    for address, mark in ((CALLS, "tester"), ("/admin/execution/attempt/", "Lab.Echo@1.0.0")):
        assert mark in client.get(address).content.decode()


def test_hostile_text_is_shown_as_text(root: Client, agent: Agent) -> None:
    call = made(agent, tool_ref="<script>alert(1)</script>\u202e")
    Attempt.objects.create(
        call=call, number=1, where="<i>", finished_at=datetime.now(UTC), status="failed", detail="<script>\u202e"
    )
    for address in (CALLS, "/admin/execution/attempt/"):
        page = root.get(address).content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩" in page
        assert "\u202e" not in page


def test_a_publisher_lets_a_tool_run_inline_again(agent: Agent, lab: ToolkitVersion) -> None:
    demotion = Demotion.objects.create(tool=Tool.objects.get(name="Echo"), reason="took 9 s")
    clerk = User.objects.create_user("clerk", is_staff=True)
    client = Client()
    client.force_login(clerk)
    chosen = {"action": "let_run_inline", "_selected_action": [str(demotion.pk)]}
    assign_perm("registry.view_toolkit", clerk, lab.toolkit)
    assert "took 9 s" in client.get("/admin/execution/demotion/").content.decode()
    client.post("/admin/execution/demotion/", chosen)
    assert Demotion.objects.exists()
    assign_perm("registry.publish_toolkit", clerk, lab.toolkit)
    client.post("/admin/execution/demotion/", chosen)
    assert not Demotion.objects.exists()
    event = Event.objects.get(event="tool.promoted")
    assert (event.actor, event.subject_id) == ("user:clerk", "Lab@1.0.0")


def test_a_refused_call_has_a_row_in_the_list(root: Client, call: MakeCall) -> None:
    call("Lab.Nothing")
    assert "Rejected" in root.get(CALLS).content.decode()
