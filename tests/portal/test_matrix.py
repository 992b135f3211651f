"""Permissions as a matrix: who may do what with one's own toolkits; each cell gives and takes as the API does."""

import json
import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from policy import agents, permissions
from policy.models import Agent
from registry.models import Tool, Toolkit
from tests.factories.registry import published

pytestmark = pytest.mark.django_db

Seen = Callable[..., str]
CELL = "/permissions/of/?holder=agent:caller&toolkit=Calculator"


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def kit(tool: Tool) -> Toolkit:
    return tool.version.toolkit


@pytest.fixture
def pia(person: Callable[..., User], kit: Toolkit) -> User:
    """Publishes the calculator."""
    pia = person("pia", "publisher")
    permissions.put(kit, "publish", pia, actor="shell")
    return pia


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def cells(page: str, name: str) -> list[str]:
    """What each toolkit says about one holder, in words."""
    for found in re.findall(r"<tr>.*?</tr>", page.partition("<tbody>")[2], re.S):
        told = [
            " ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in re.findall(r"<t[hd].*?</t[hd]>", found, re.S)
        ]
        if told[0].startswith(name):
            return told[1:]
    raise AssertionError(f"{name} has no row")


def test_agents_people_and_groups_stand_against_toolkits(
    root: User, agent: Agent, kit: Toolkit, pia: User, seen_by: Seen
) -> None:
    crew = Group.objects.create(name="crew")
    crew.user_set.add(pia, agent.user)
    published("Abacus")
    permissions.put(Toolkit.objects.get(name="Abacus"), "view", crew, actor="shell")
    everywhere, abacus, calculator = cells(seen_by(root, "/permissions/"), "caller")
    assert "nothing" in everywhere
    assert abacus.startswith("view * through the group crew")
    assert calculator.startswith("call")
    assert cells(seen_by(root, "/permissions/?who=people"), "pia")[2].startswith("publish")
    assert cells(seen_by(root, "/permissions/?who=groups"), "crew")[1].startswith("view")


def test_what_counts_everywhere_and_who_owns_is_told(root: User, kit: Toolkit, person: Callable[..., User]) -> None:
    agents.create("boss", actor="shell", call_all=True)
    person("olaf")
    Toolkit.objects.filter(pk=kit.pk).update(owner=User.objects.get(username="olaf"))
    client = logged_in(root)
    assert cells(client.get("/permissions/").content.decode(), "boss")[0] == "call"
    assert cells(client.get("/permissions/?who=people").content.decode(), "olaf")[1].startswith("owner")


def test_only_toolkits_that_one_gives_permissions_on_or_audits_are_there(
    agent: Agent, pia: User, person: Callable[..., User], seen_by: Seen
) -> None:
    agents.create("secretive", actor="shell", call=[published("Abacus").toolkit.name])
    page = seen_by(pia, "/permissions/")
    assert "Calculator" in page
    assert "caller" in page
    assert "Abacus" not in page
    assert "secretive" not in page
    ada = person("ada", "auditor")  # audits everything, but was given no toolkit: the API tells her nothing either
    assert "No toolkit whose permissions you read" in seen_by(ada, "/permissions/")
    assert logged_in(ada).get(CELL).status_code == 403
    assert logged_in(ada).get("/api/toolkits/Calculator/permissions/").status_code == 403


def test_it_is_narrowed_and_paged_both_ways(root: User, agent: Agent, seen_by: Seen) -> None:
    for number in range(12):
        published(f"Kit{number:02}")
    agents.create("server", actor="shell", serve=["Kit03"])
    first = seen_by(root, "/permissions/")
    assert "Toolkits 1 to 10 of 13" in first
    assert "Kit11" not in first
    assert "Kit11" in seen_by(root, "/permissions/?columns=2")
    assert cells(seen_by(root, "/permissions/?toolkit=kit03"), "server")[1].startswith("serve")
    assert "caller" not in seen_by(root, "/permissions/?may=serve")
    assert "Nothing fits" in seen_by(root, "/permissions/?q=nobody%00")


def test_it_costs_the_same_for_few_and_for_many(root: User, agent: Agent) -> None:
    client = logged_in(root)

    def cost(address: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        return len(queries)

    pages = ["/permissions/", "/permissions/?who=people", "/permissions/?who=groups"]
    Group.objects.create(name="crew0")
    permissions.put(Toolkit.objects.get(), "call", Group.objects.get(name="crew0"), actor="shell")
    permissions.put(Toolkit.objects.get(), "review", root, actor="shell")
    for each in pages:
        client.get(each)
    few = [cost(each) for each in pages]
    for number in range(1, 15):
        kit = published(f"Kit{number}").toolkit
        agents.create(f"bot{number}", actor="shell", call=[kit.name])
        permissions.put(kit, "review", User.objects.create_user(f"u{number}"), actor="shell")
        permissions.put(kit, "call", Group.objects.create(name=f"crew{number}"), actor="shell")
    assert [cost(each) for each in pages] == few
    assert max(few) < 30


# A cell


def test_a_cell_gives_and_takes_and_leaves_evidence_that_it_then_tells(root: User, agent: Agent, kit: Toolkit) -> None:
    client = logged_in(root)
    assert "may now serve" in client.post(CELL, {"change": "give serve"}, follow=True).content.decode()
    assert permissions.held(kit, agent).permissions == ("call", "serve")
    page = client.get(CELL).content.decode()
    assert "given directly, by root" in page
    assert "Someone at the shell" in page  # who gave "call"
    client.post(CELL, {"change": "take call"})
    assert permissions.held(kit, agent).permissions == ("serve",)
    event = Event.objects.filter(event="permission.taken").get()
    assert (event.actor, json.loads(event.detail)) == ("user:root", {"holder": "agent:caller", "permission": "call"})


def test_a_question_comes_before_something_is_taken_and_looking_takes_nothing(
    root: User, agent: Agent, kit: Toolkit
) -> None:
    client = logged_in(root)
    page = client.get(f"{CELL}&take=call&back=unused").content.decode()
    assert "Take “call” on Calculator away from agent:caller?" in page
    assert permissions.held(kit, agent).permissions == ("call",)
    answer = client.post(f"{CELL}&take=call", {"change": "take call", "back": "unused"})
    assert answer.headers["Location"] == "/permissions/unused/"
    other = client.post(CELL, {"change": "give call", "back": "//evil.example"})
    assert other.headers["Location"].startswith("/permissions/of/")


def test_a_cell_refuses_what_the_api_refuses(
    agent: Agent, pia: User, kit: Toolkit, person: Callable[..., User]
) -> None:
    client = logged_in(pia)
    Agent.objects.filter(pk=agent.pk).update(owner=pia)
    assert client.post(CELL, {"change": "give serve"}).status_code == 403  # her own agent
    of_pia = "/permissions/of/?holder=user:pia&toolkit=Calculator"
    assert client.post(of_pia, {"change": "give review"}).status_code == 403
    assert "given by its owner" in client.get(of_pia).content.decode()
    assert client.post(CELL, {"change": "take call"}).status_code == 302  # to take is no gain
    assert permissions.held(kit, agent).permissions == ()
    for bad in ("steal call", "give", ""):
        assert client.post(CELL, {"change": bad}).status_code in (302, 403, 404)
    assert permissions.held(kit, agent).permissions == ()
    root = logged_in(User.objects.create_superuser("root2"))
    assert "for people" in root.post(CELL, {"change": "give publish"}, follow=True).content.decode()


def test_names_that_are_nobodys_are_said_so_and_strangers_learn_none(
    root: User, agent: Agent, person: Callable[..., User]
) -> None:
    client = logged_in(root)
    assert "nobody of this name" in client.get("/permissions/of/?holder=agent:x&toolkit=Calculator").content.decode()
    assert "no toolkit of this name" in client.get("/permissions/of/?holder=agent:caller&toolkit=X%00").content.decode()
    assert client.get("/permissions/of/").status_code == 200
    stranger = logged_in(person("sol"))
    told = [
        stranger.get(f"/permissions/of/?holder=agent:{name}&toolkit=Calculator") for name in ("caller", "no-such-bot")
    ]
    assert {answer.status_code for answer in told} == {404}
    assert all("nobody of this name" not in answer.content.decode() for answer in told)
