"""Agents on pages: only one's own, with keys, use and reach; as many queries for fifty as for five."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from execution import totals
from policy import accessrequests, agents, permissions
from policy.models import Agent, KeyUse
from registry.models import Tool
from tests.factories.registry import published
from tests.portal.conftest import MakeCall

pytestmark = pytest.mark.django_db

Seen = Callable[..., str]


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


def row(page: str, name: str) -> str:
    """The row of one agent, as text."""
    (found,) = [each for each in re.findall(r"<tr>.*?</tr>", page, re.S) if f"/agents/{name}/" in each]
    return " ".join(re.sub(r"<[^>]+>", " ", found).split())


def test_a_row_says_who_answers_for_it_how_it_is_let_in_and_how_much_it_calls(
    root: User, agent: Agent, call: MakeCall, seen_by: Seen
) -> None:
    Agent.objects.filter(pk=agent.pk).update(owner=root)
    KeyUse.objects.create(credential=agent.credentials.get(), used_at=timezone.now())
    agents.new_key(agent, actor="shell", expires_at=timezone.now() + timedelta(days=3))
    call(ago=timedelta(days=2))
    call("failed", ago=timedelta(hours=1))
    call(ago=timedelta(days=20))
    text = row(seen_by(root, "/agents/"), "caller")
    for part in ("root", "2 in force", "soon", "1 2"):  # one toolkit, two calls
        assert part in text
    assert "never" not in text


def test_counted_spans_and_calls_that_are_not_counted_yet_make_one_sum(
    root: User, agent: Agent, call: MakeCall, seen_by: Seen
) -> None:
    for hours in (1, 30, 60, 100, 24 * 12):
        call(ago=timedelta(hours=hours))
    before = row(seen_by(root, "/agents/"), "caller")
    totals.count_due(most=10_000)
    assert row(seen_by(root, "/agents/"), "caller") == before
    assert before.endswith(" 1 4")


def test_people_see_their_own_agents_and_who_may_view_agents_sees_all(
    agent: Agent, person: Callable[..., User], seen_by: Seen
) -> None:
    olga, vera = person("olga"), person("vera")
    agents.create("hers", actor="shell", owner="olga")
    vera.user_permissions.add(Permission.objects.get(codename="view_agent"))
    assert "hers" in seen_by(olga, "/agents/")
    assert "/agents/caller/" not in seen_by(olga, "/agents/")
    assert "/agents/caller/" in seen_by(User.objects.get(pk=vera.pk), "/agents/")
    client = Client()
    client.force_login(olga)
    assert client.get("/agents/caller/").status_code == 404
    client.force_login(User.objects.get(pk=vera.pk))
    page = client.get("/agents/caller/").content.decode()
    assert "rotate" not in page  # seeing is not changing
    assert client.post("/agents/caller/admission/", {"admit": "no"}).status_code == 403


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("q=OLGA", {"hers"}),
        ("q=call", {"caller"}),
        ("state=shut-out", {"idle"}),
        ("keys=none", {"idle"}),
        ("keys=soon", {"hers"}),
        ("keys=unused", {"hers", "idle"}),
        ("q=%00%3Cscript%3E&state=x&keys=y&page=-1", set()),
    ],
)
def test_the_list_is_narrowed(
    root: User, agent: Agent, call: MakeCall, person: Callable[..., User], seen_by: Seen, asked: str, found: set[str]
) -> None:
    person("olga")
    call()
    hers = agents.create("hers", actor="shell", owner="olga").agent
    agents.new_key(hers, actor="shell", expires_at=timezone.now() + timedelta(days=13))
    idle = agents.create("idle", actor="shell").agent
    agents.revoke_key(idle.credentials.get(), actor="shell")
    agents.set_active(idle, False, actor="shell")
    page = seen_by(root, f"/agents/?{asked}")
    assert set(re.findall(r'href="/agents/([^"/]+)/"', page)) == found


def test_fifty_agents_cost_as_many_queries_as_five(root: User, tool: Tool) -> None:
    client = Client()
    client.force_login(root)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/agents/").status_code == 200
        return len(queries)

    for number in range(5):
        agents.create(f"bot{number}", actor="shell", call=["Calculator"])
    client.get("/agents/")
    few = cost()
    for number in range(5, 50):
        agents.create(f"bot{number}", actor="shell", call=["Calculator"])
    assert cost() == few < 30
    assert "Page 1 of 2, 50 in all" in client.get("/agents/").content.decode()


# Making one


def test_an_agent_is_made_and_its_key_and_secret_are_shown_once(root: User, tool: Tool) -> None:
    client = Client()
    client.force_login(root)
    answer = client.post("/new-agent/", {"name": "fresh", "owner": "root", "call": ["Calculator"]})
    page = answer.content.decode()
    assert 'id="key"' in page
    assert 'id="jwt-secret"' in page
    assert "no-store" in answer.headers["Cache-Control"]
    assert "Calculator" in client.get("/agents/fresh/").content.decode()
    again = client.post("/new-agent/", {"name": "fresh", "owner": "root"})
    assert again.status_code == 422
    assert "already an agent" in again.content.decode()


def test_nobody_makes_an_agent_that_may_more_than_they_can_give(tool: Tool, person: Callable[..., User]) -> None:
    olga = person("olga")
    permissions.put(tool.version.toolkit, "view", olga, actor="shell")
    client = Client()
    client.force_login(olga)
    assert client.get("/new-agent/").status_code == 403
    olga.user_permissions.add(Permission.objects.get(codename="add_agent"))
    client.force_login(User.objects.get(pk=olga.pk))
    answer = client.post("/new-agent/", {"name": "fresh", "owner": "olga", "call": ["Calculator"]})
    assert answer.status_code == 422
    assert not Agent.objects.filter(name="fresh").exists()


# Its page


def test_its_page_says_what_it_may_call_and_why_what_it_called_and_what_waits(
    root: User, agent: Agent, call: MakeCall, seen_by: Seen
) -> None:
    readers = Group.objects.create(name="readers")
    agent.user.groups.add(readers)
    abacus = published("Abacus").toolkit
    permissions.put(abacus, "call", readers, actor="shell")
    call()
    waiting = call("awaiting_approval", ago=timedelta(minutes=1))
    accessrequests.ask(agent, published("Mail").toolkit, reason="to write", by=agent.user)
    page = seen_by(root, "/agents/caller/")
    for part in ("given directly", "through the group readers", f"/calls/{waiting.pk}/", "Asks to call Mail"):
        assert part in page


def test_an_agent_that_may_call_everything_says_so(root: User, tool: Tool, call: MakeCall, seen_by: Seen) -> None:
    boss = agents.create("boss", actor="shell", call_all=True).agent
    call(agent=boss)
    page = seen_by(root, "/agents/boss/")
    assert "<strong>every toolkit</strong>" in page
    assert "given directly, on every toolkit" in page


def test_a_hostile_label_stays_text(root: User, agent: Agent, seen_by: Seen) -> None:
    agents.new_key(agent, actor="shell", label="<script>x</script>\u202e")
    page = seen_by(root, "/agents/caller/")
    assert "<script>x" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("is_staff", [True, False])
def test_an_owners_page_leads_nowhere_that_is_refused(agent: Agent, call: MakeCall, is_staff: bool) -> None:
    olga = User.objects.create_user("olga", is_staff=is_staff)
    Agent.objects.filter(pk=agent.pk).update(owner=olga)
    call()
    accessrequests.ask(agent, published("Mail").toolkit, reason="to write", by=agent.user)
    client = Client()
    client.force_login(olga)
    page = client.get("/agents/caller/").content.decode().partition("<main")[2].partition("</main>")[0]
    links = re.findall(r'href="(/[^"]*)"', page)
    assert len(links) >= 3
    for link in links:
        assert client.get(link.replace("&amp;", "&")).status_code == 200, link
