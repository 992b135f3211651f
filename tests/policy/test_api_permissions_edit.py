"""Permissions on a toolkit over REST: given by those who may, to others than themselves, and told to the trail."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from guardian.shortcuts import assign_perm, get_perms
from rest_framework.test import APIClient

from audit.models import Event
from policy import agents, engine, granting, permissions
from policy.authentication import authenticate
from policy.decision import Effect
from policy.question import Question
from registry import access
from registry.models import Toolkit
from registry.resolution import resolve
from registry.toolref import ToolRef
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import published


@pytest.fixture
def owner(toolkit: Toolkit) -> User:
    owner = User.objects.create_user("olga", email="olga@example.org", is_staff=True)
    Toolkit.objects.filter(pk=toolkit.pk).update(owner=owner)
    toolkit.refresh_from_db()
    return owner


@pytest.fixture
def cast(toolkit: Toolkit, owner: User) -> Cast:
    return cast_of(toolkit)


def client(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def give(user: User, holder: str, permission: str, name: str = "Calculator") -> Any:
    return client(user).post(f"/api/toolkits/{name}/permissions/", {"holder": holder, "permission": permission}, "json")


def take(user: User, holder: str, permission: str, name: str = "Calculator") -> Any:
    body = {"holder": holder, "permission": permission}
    return client(user).delete(f"/api/toolkits/{name}/permissions/", body, "json")


def told() -> list[tuple[str, str, str]]:
    events = Event.objects.filter(subject_kind="toolkit", event__startswith="permission.").order_by("id")
    return [(event.event, event.actor, str(event.detail)) for event in events]


# Giving and taking


def test_the_owner_gives_and_takes_and_the_trail_tells_who_and_to_whom(cast: Cast, owner: User) -> None:
    before = len(told())
    given = give(owner, "user:stranger", "approve")
    assert (given.status_code, given.json()) == (201, {"holder": "user:stranger", "permissions": ["approve"]})
    assert access.may(cast.stranger, "approve", Toolkit.objects.get())
    taken = take(owner, "user:stranger", "approve")
    assert (taken.status_code, taken.json()) == (200, {"holder": "user:stranger", "permissions": []})
    assert get_perms(cast.stranger, Toolkit.objects.get()) == []
    new = told()[before:]
    assert [(event, actor) for event, actor, _ in new] == [
        ("permission.given", "user:olga"),
        ("permission.taken", "user:olga"),
    ]
    assert all("approve" in detail and "user:stranger" in detail for *_, detail in new)


def test_giving_twice_and_taking_twice_changes_and_tells_nothing_more(cast: Cast, owner: User) -> None:
    assert give(owner, "group:none", "view").status_code == 422
    Group.objects.create(name="payments")
    assert [give(owner, "group:payments", "audit").status_code for _ in range(2)] == [201, 200]
    count = len(told())
    assert [take(owner, "group:payments", "audit").status_code for _ in range(2)] == [200, 200]
    assert len(told()) == count + 1


def test_the_list_names_every_holder_with_what_was_given_on_this_toolkit(cast: Cast, owner: User) -> None:
    group = Group.objects.create(name="payments")
    permissions.put(Toolkit.objects.get(), "approve", group, actor="shell")
    answer = client(owner).get("/api/toolkits/calculator/permissions/").json()
    assert set(answer) == {"count", "next", "previous", "results"}
    assert answer["results"] == [
        {"holder": "group:payments", "permissions": ["approve"]},
        {"holder": "user:publisher", "permissions": ["view", "publish"]},
        {"holder": "user:reviewer", "permissions": ["review"]},
        {"holder": "user:viewer", "permissions": ["view"]},
        {"holder": "agent:demo", "permissions": ["call"]},
        {"holder": "agent:release-bot", "permissions": ["publish"]},
    ]
    short = client(owner).get("/api/toolkits/Calculator/permissions/?page_size=2").json()
    assert (short["count"], len(short["results"])) == (6, 2)
    assert client(owner).get("/api/toolkits/Calculator/permissions/?holder=x").status_code == 400


def test_what_is_given_counts_at_once(cast: Cast, owner: User) -> None:
    other = agents.create("late", actor="shell").agent
    assert not access.may(other.user, "call", Toolkit.objects.get())
    assert give(owner, "agent:late", "call").status_code == 201
    assert access.may(User.objects.get(pk=other.user_id), "call", Toolkit.objects.get())


# Who may


@pytest.mark.parametrize("permission", ["publish", "review", "approve", "audit"])
def test_who_publishes_gives_what_agents_need_and_nothing_that_is_a_persons_word(cast: Cast, permission: str) -> None:
    assert give(cast.publisher, "user:stranger", permission).status_code == 403
    assert give(cast.publisher, "agent:release-bot", "call").status_code == 201
    assert take(cast.publisher, "user:reviewer", "review").status_code == 403
    assert take(cast.publisher, "agent:release-bot", "call").status_code == 200


@pytest.mark.parametrize(
    ("role", "status"),
    [("viewer", 403), ("reviewer", 403), ("with_model_permissions", 403), ("stranger", 404)],
)
def test_others_give_take_and_list_nothing(cast: Cast, role: str, status: int) -> None:
    user = getattr(cast, role)
    before = set(get_perms(user, Toolkit.objects.get()))
    for permission in granting.VERBS:
        assert give(user, f"user:{role}", permission).status_code == status
        assert give(user, "user:publisher", permission).status_code == status
    assert take(user, "user:publisher", "publish").status_code == status
    assert client(user).get("/api/toolkits/Calculator/permissions/").status_code == status
    assert set(get_perms(user, Toolkit.objects.get())) == before


def test_a_toolkit_one_cannot_see_reads_like_one_that_is_not_there(cast: Cast) -> None:
    hidden, missing = (give(cast.stranger, "user:stranger", "view", name) for name in ("Calculator", "Nothing"))
    assert (hidden.status_code, hidden.json()) == (missing.status_code, missing.json()) == (404, missing.json())


@pytest.mark.parametrize("role", ["agent", "publishing_agent"])
def test_an_agents_key_neither_reads_nor_gives_permissions(cast: Cast, role: str) -> None:
    api, url = cast.api(role), "/api/toolkits/Calculator/permissions/"
    assert api.get(url).status_code == 403
    assert api.post(url, {"holder": "agent:demo", "permission": "view"}, "json").status_code == 403
    assert api.delete(url, {"holder": "agent:demo", "permission": "call"}, "json").status_code == 403
    assert cast.api("anonymous").get(url).status_code == 401


def test_an_auditor_of_the_toolkit_reads_the_list_and_changes_nothing(cast: Cast) -> None:
    assign_perm("registry.audit_toolkit", cast.stranger, Toolkit.objects.get())
    assert client(cast.stranger).get("/api/toolkits/Calculator/permissions/").status_code == 200
    assert give(cast.stranger, "user:viewer", "call").status_code == 403


# Never to oneself


def test_nobody_gives_a_permission_to_themselves_to_their_group_or_to_their_agent(cast: Cast, owner: User) -> None:
    group = Group.objects.create(name="mine")
    owner.groups.add(group)
    agents.create("pet", actor="shell", owner="olga")
    for holder, permission in (("user:olga", "approve"), ("group:mine", "approve"), ("agent:pet", "call")):
        answer = give(owner, holder, permission)
        assert answer.status_code == 403
        assert "Nobody gives a permission to" in answer.json()["message"]
    assert get_perms(owner, Toolkit.objects.get()) == []


def test_a_second_account_of_the_same_address_is_the_same_person(cast: Cast, owner: User) -> None:
    second = User.objects.create_user("olga2", email="OLGA@example.org")
    Group.objects.create(name="others").user_set.add(second)
    assert give(owner, "user:olga2", "approve").status_code == 403
    assert give(owner, "group:others", "approve").status_code == 403


def test_a_superuser_may_and_the_trail_says_that_it_was_to_himself(cast: Cast) -> None:
    assert give(cast.superuser, "user:root", "approve").status_code == 201
    event, actor, detail = told()[-1]
    assert (event, actor) == ("permission.given", "user:root")
    assert "to_oneself" in detail


def test_an_owner_may_take_from_himself(cast: Cast, owner: User) -> None:
    assert give(cast.superuser, "user:olga", "approve").status_code == 201
    assert take(owner, "user:olga", "approve").json()["permissions"] == []


# What cannot be


@pytest.mark.parametrize("permission", ["publish", "review", "approve", "audit"])
def test_an_agent_never_gets_what_is_a_persons_not_even_through_a_group(cast: Cast, permission: str) -> None:
    group = Group.objects.create(name="bots")
    group.user_set.add(cast.agent.agent.user)
    for holder in ("agent:demo", "group:bots"):
        answer = give(cast.superuser, holder, permission)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert give(cast.superuser, "group:bots", "serve").status_code == 201
    with pytest.raises(permissions.ImpossiblePermission):
        permissions.put(Toolkit.objects.get(), permission, cast.agent.agent, actor="shell")


@pytest.mark.parametrize(
    "body",
    [
        {"holder": "user:viewer"},
        {"permission": "view"},
        {"holder": "user:viewer", "permission": "delete"},
        {"holder": "user:viewer", "permission": "view_toolkit"},
        {"holder": "viewer", "permission": "view"},
        {"holder": "user:agent:demo", "permission": "approve"},
        {"holder": "user:nobody", "permission": "view"},
        {"holder": "agent:nobody", "permission": "view"},
        {"holder": "user:viewer", "permission": "call", "by": "root"},
        {"holder": "user:viewer", "permission": "call", "is_superuser": True},
        {"holder": ["user:viewer"], "permission": "call"},
        [],
    ],
)
def test_a_body_that_makes_no_sense_is_refused_and_changes_nothing(cast: Cast, body: Any) -> None:
    before = permissions.all_held(Toolkit.objects.get())
    for method in ("post", "delete"):
        answer = getattr(client(cast.superuser), method)("/api/toolkits/Calculator/permissions/", body, "json")
        assert answer.status_code == 422
        assert answer.json()["message"]
    assert permissions.all_held(Toolkit.objects.get()) == before


def test_a_permission_on_all_toolkits_is_not_one_on_this_toolkit(cast: Cast) -> None:
    general, toolkit = cast.with_model_permissions, Toolkit.objects.get()
    assert general.has_perm("registry.approve_toolkit")
    assert not any(access.may(general, verb, toolkit) for verb in ("approve", "publish", "review"))
    with pytest.raises(PermissionDenied):
        permissions.give(toolkit, "call", cast.stranger, by=general)
    assert not [held for held in permissions.all_held(toolkit) if held.holder == "user:with_model_permissions"]


def test_what_a_new_agent_is_given_is_on_the_toolkits_trail(cast: Cast) -> None:
    agents.create("fresh", actor="user:root", call=["Calculator"], serve=["Calculator"])
    new = told()[-2:]
    assert [(event, actor) for event, actor, _ in new] == [("permission.given", "user:root")] * 2
    assert all("agent:fresh" in detail for *_, detail in new)


def test_a_denial_says_where_to_ask_and_what_was_asked_for_lifts_it(cast: Cast, owner: User) -> None:
    published("Calculator", "1.0.0")
    spec = resolve(ToolRef.parse("Calculator.Add@1.0.0"))  # type: ignore[arg-type]
    assert spec is not None
    bot = agents.create("bot", actor="shell")
    permissions.put(Toolkit.objects.get(), "view", bot.agent, actor="shell")
    question = Question(caller=authenticate({"OXP-API-Key": bot.key}), tool=spec, arguments={"a": 1, "b": 2})
    denied = engine.decide(question)
    assert (denied.effect, denied.rule) == (Effect.DENY, "permission")
    method, address = denied.help.split()[-2:]
    assert method == "POST"
    agent = APIClient()
    agent.credentials(HTTP_OXP_API_KEY=bot.key)
    asked = agent.post(address, {"toolkit": "Calculator", "reason": "I was denied"}, "json").json()
    assert client(owner).post(f"{address}{asked['id']}/grant/", {}, "json").status_code == 200
    assert engine.decide(question).effect == Effect.ALLOW
    assert take(owner, "agent:bot", "call").status_code == 200
    assert engine.decide(question).effect == Effect.DENY
