"""Home: what needs me, how calls went; only what is mine, and every number leads to the list that it counted."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from execution.models import Breaker
from policy.models import AccessRequest
from registry.models import Tool, Toolkit
from tests.factories.registry import draft, published
from tests.portal.conftest import MakeCall

pytestmark = pytest.mark.django_db

Seen = Callable[..., str]


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


def number(page: str, name: str) -> str:
    """The figure of a card or tile."""
    for block in re.findall(r"<li class=\"portal-(?:need|tile).*?</li>", page, re.S):
        if f">{name}</span>" in block:
            return re.search(r'class="portal-figure">([^<]*)<', block)[1]  # type: ignore[index]
    raise AssertionError(f"there is no {name} on the page")


def links(page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="(/[^"]*)"', page.partition("<main")[2])]


def test_it_counts_calls_by_outcome(root: User, call: MakeCall, seen_by: Seen) -> None:
    for state in ("succeeded", "succeeded", "failed", "denied"):
        call(state)
    page = seen_by(root)
    assert [number(page, name) for name in ("Calls", "Failed", "Refused")] == ["4", "1", "1"]
    assert "50.0 % of them succeeded" in page


def test_each_window_shows_what_is_in_it(root: User, call: MakeCall, seen_by: Seen) -> None:
    for days in (0.1, 3, 20):
        call(ago=timedelta(days=days))
    sums = [number(seen_by(root, f"/admin/?window={window}"), "Calls") for window in ("24h", "7d", "30d")]
    assert sums == ["1", "2", "3"]


def test_a_tool_that_one_may_not_open_is_no_link(
    call: MakeCall, tool: Tool, agent: Any, person: Callable[..., User], seen_by: Seen
) -> None:
    call()
    owner = person("polly", "policy owner")
    type(agent).objects.filter(pk=agent.pk).update(owner=owner)
    text = seen_by(owner)
    assert tool.tool_id in text
    assert not [each for each in links(text) if each.startswith("/catalogue/")]


def test_a_window_that_is_none_shows_the_last_day(root: User, call: MakeCall, seen_by: Seen) -> None:
    call()
    assert number(seen_by(root, "/admin/?window=%00<script>"), "Calls") == "1"


def test_every_link_leads_to_a_page(root: User, call: MakeCall, tool: Tool, seen_by: Seen) -> None:
    for state in ("succeeded", "failed", "denied", "unknown"):
        call(state)
    client = Client()
    client.force_login(root)
    found = links(seen_by(root))
    assert len(found) > 30  # bars, rows, cards
    for address in dict.fromkeys(found):
        assert client.get(address).status_code == 200, address


@pytest.mark.parametrize(("name", "states"), [("Failed", ("failed", "timed_out", "unknown")), ("Refused", ("denied",))])
def test_a_number_leads_to_exactly_what_it_counted(
    root: User, call: MakeCall, seen_by: Seen, name: str, states: tuple[str, ...]
) -> None:
    call("succeeded")
    call(states[0], ago=timedelta(days=3))
    for state in states:
        call(state)
    page = seen_by(root)
    (block,) = [each for each in re.findall(r'<li class="portal-tile.*?</li>', page, re.S) if f">{name}</span>" in each]
    address = unescape(re.search(r'href="([^"]*)"', block)[1])  # type: ignore[index]
    listed = seen_by(root, address).count('class="field-when')
    assert str(listed) == number(page, name) == str(len(states))


def test_a_bar_leads_to_the_calls_of_its_hour(root: User, call: MakeCall, seen_by: Seen) -> None:
    at = datetime.now(UTC).replace(minute=59, second=59, microsecond=999_000) - timedelta(hours=3)
    call(at=at)
    call(at=at + timedelta(milliseconds=1))  # the next hour
    address = next(each for each in links(seen_by(root)) if f"from_1={at.hour:02}%3A00%3A00" in each)
    assert seen_by(root, address).count('class="field-when') == 1


def test_tools_are_ranked_by_calls_and_by_failures(root: User, call: MakeCall, seen_by: Seen) -> None:
    other = published("Abacus").tools.get()
    for _ in range(3):
        call()
    call("failed", tool=other, tool_ref=other.tool_id)
    page = seen_by(root)
    busiest, _, failing = page.partition("Busiest tools")[2].partition("Most failing tools")
    assert busiest.index("Calculator.Add@1.0.0") < busiest.index("Abacus.Add@1.0.0")
    assert "100 % of its calls" in failing
    assert "Calculator.Add" not in failing


def test_a_publisher_sees_own_toolkits_and_no_others(
    person: Callable[..., User], call: MakeCall, tool: Tool, seen_by: Seen
) -> None:
    other = published("Abacus").tools.get()
    call()
    call("failed", tool=other, tool_ref=other.tool_id)
    pia = person("pia", "publisher")
    assign_perm("registry.publish_toolkit", pia, tool.version.toolkit)
    page = seen_by(pia)
    assert number(page, "Calls") == "1"
    assert "Abacus" not in page
    assert "/admin/execution/call/?" not in page  # the list would not show them: no number leads there


def test_an_auditor_sees_all_and_decides_nothing(person: Callable[..., User], call: MakeCall, seen_by: Seen) -> None:
    call()
    page = seen_by(person("ada", "auditor"))
    assert number(page, "Calls") == "1"
    assert "your role reads, and others decide" in page


def test_who_has_no_role_is_told_whom_to_ask(person: Callable[..., User], call: MakeCall, seen_by: Seen) -> None:
    call()
    page = seen_by(person("sol"))
    assert "Nothing here is yours yet" in page
    assert "Calculator" not in page


def test_people_who_are_not_staff_have_a_home_too(call: MakeCall, tool: Tool, seen_by: Seen) -> None:
    amy = User.objects.create_user("amy")
    assign_perm("registry.approve_toolkit", amy, tool.version.toolkit)
    page = seen_by(amy)
    assert number(page, "Approvals") == "0"
    assert "nav-sidebar" not in page


def test_an_agent_has_no_home(agent: Any) -> None:
    client = Client()
    client.force_login(agent.user)
    assert client.get("/admin/").status_code == 403


def test_nobody_is_asked_to_log_in(db: None) -> None:
    answer = Client().get("/admin/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/login/?next=/admin/")


def test_what_needs_me_is_counted_for_me_alone(
    root: User, person: Callable[..., User], call: MakeCall, tool: Tool, agent: Any, seen_by: Seen
) -> None:
    toolkit = tool.version.toolkit
    pia, rita, sol = person("pia", "publisher"), person("rita"), person("sol")
    for verb in ("publish", "audit"):
        assign_perm(f"registry.{verb}_toolkit", pia, toolkit)
    assign_perm("registry.review_toolkit", rita, toolkit)
    call("unknown")
    opened = datetime.now(UTC)
    Breaker.objects.create(tool=tool, state="open", failures=10, opened_at=opened, retry_at=opened)
    AccessRequest.objects.create(agent=agent, toolkit=toolkit, reason="to add", requested_by="agent:caller")
    waiting = draft(version="2.0.0", by=pia)
    type(waiting).objects.filter(pk=waiting.pk).update(review_requested_at=opened)
    page = seen_by(pia)
    mine = [number(page, name) for name in ("Unknown outcomes", "Open breakers", "Access requests")]
    assert mine == ["1", "1", "1"]
    assert "Versions to review" not in page
    assert number(seen_by(rita), "Versions to review") == "1"
    assert number(seen_by(root), "Versions to review") == "1"
    assert "portal-need" not in seen_by(sol)


def test_hostile_names_are_shown_as_text(root: User, call: MakeCall, seen_by: Seen) -> None:
    call(error="<script>alert(2)</script>", tool_ref="<b>\u202e")
    Toolkit.objects.update(title="<img src=x onerror=alert(1)>")
    User.objects.filter(pk=root.pk).update(first_name="<script>alert(3)</script>")
    page = seen_by(root)
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_nothing_on_the_page_is_inline(root: User, call: MakeCall, seen_by: Seen) -> None:
    call()
    own = seen_by(root).partition("<main")[2].partition("</main>")[0]
    for inline in (" style=", "<style", "<script", "onclick", "javascript:", "http://", "https://"):
        assert inline not in own


def test_approvals_that_were_answered_tell_how_long_they_waited(
    root: User, person: Callable[..., User], agent: Any, tool: Tool, seen_by: Seen
) -> None:
    from policy.models import Approval
    from registry.ids import new_id

    asked = datetime.now(UTC) - timedelta(minutes=30)
    facts = {"call_id": "c", "door": "oxp", "agent": agent, "tool": tool, "tool_ref": "x", "risk": 3, "quorum": 1}
    for minutes in (2, 4, 6):
        decided = asked + timedelta(minutes=minutes)
        Approval.objects.create(
            **facts,
            call=new_id(),
            arguments_digest="",
            digest="",
            revision=0,
            rule="",
            reason="",
            run_within=60,
            state="denied",
            created_at=asked,
            decide_by=asked + timedelta(hours=1),
            decided_at=decided,
            ended_at=decided,
        )
    for reader in (root, person("ada", "auditor")):
        text = seen_by(reader).partition("How long calls wait for people")[2]
        assert re.findall(r'portal-figure">([^<]+)<', text)[:3] == ["4 min", "6 min", "6 min"]
    amy = person("amy", "approver")
    assign_perm("registry.approve_toolkit", amy, published("Abacus").toolkit)
    assert "Nobody has answered a question of this time" in seen_by(amy)


@pytest.mark.parametrize("window", ["24h", "7d", "30d"])
def test_the_page_asks_the_database_as_often_however_much_there_is(root: User, call: MakeCall, window: str) -> None:
    client = Client()
    client.force_login(root)

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            client.get(f"/admin/?window={window}")
        return len(asked)

    call()
    call("failed")
    few = queries()
    for number_of in range(6):
        tool = published(f"More{number_of}").tools.get()
        for hours in (2, 5, 30, 200):
            call("failed", ago=timedelta(hours=hours), tool=tool)
    assert queries() == few <= 22
