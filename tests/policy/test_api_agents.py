"""Agents over REST and in the admin: secrets are shown once, and only to those who may have them."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from audit.models import Event
from policy import agents, keyuse
from policy.authentication import NotAuthenticated, authenticate
from policy.models import Agent
from registry.models import Toolkit
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import published


@pytest.fixture
def cast(db: None) -> Cast:
    """The publisher may also make agents."""
    published("Calculator", "1.0.0")
    published("Mail", "1.0.0")
    cast = cast_of(Toolkit.objects.get(name="Calculator"))
    cast.publisher.user_permissions.add(Permission.objects.get(codename="add_agent"))
    return cast


@pytest.fixture
def api(cast: Cast) -> APIClient:
    return cast.api("publisher")


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def opens(key: str) -> bool:
    try:
        authenticate({"OXP-API-Key": key})
    except NotAuthenticated:
        return False
    return True


def test_an_agent_is_made_with_a_key_that_works_and_is_never_shown_again(api: APIClient) -> None:
    response = api.post("/api/agents/", {"name": "bot", "call": ["calculator"]}, format="json")
    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    made = response.json()
    assert opens(made["key"])
    assert made["owner"] == "publisher"
    for path in ("/api/agents/", "/api/agents/bot/"):
        shown = api.get(path).content.decode()
        assert made["key"] not in shown
        assert made["jwt_secret"] not in shown
        assert agents.hash_of(made["key"]) not in shown


def test_a_key_is_made_revoked_and_closed_at_once(api: APIClient) -> None:
    api.post("/api/agents/", {"name": "bot"}, format="json")
    made = api.post("/api/agents/bot/keys/", {"label": "staging"}, format="json").json()
    assert opens(made["key"])
    shown = api.post(f"/api/agents/bot/keys/{made['prefix']}/revoke/").json()
    assert [key["label"] for key in shown["keys"] if key["revoked_at"]] == ["staging"]
    assert not opens(made["key"])
    assert api.post("/api/agents/bot/keys/nothing/revoke/").status_code == 404


def test_a_key_is_rotated_and_the_old_one_goes_on_as_long_as_it_is_told(api: APIClient) -> None:
    first = api.post("/api/agents/", {"name": "bot"}, format="json").json()["key"]
    path = f"/api/agents/bot/keys/{agents.prefix_of(first)}/rotate/"
    answer = api.post(path, {"keep_hours": 1}, format="json")
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    second = answer.json()["key"]
    assert opens(first)
    assert opens(second)
    old, new = sorted(api.get("/api/agents/bot/").json()["keys"], key=lambda key: key["created_at"])
    assert (old["expires_at"] is None, new["expires_at"], new["last_used_at"]) == (False, None, None)
    path = f"/api/agents/bot/keys/{answer.json()['prefix']}/rotate/"
    third = api.post(path, {"keep_hours": 0}, format="json").json()["key"]
    assert (opens(second), opens(third)) == (False, True)
    assert api.post(path, {}, format="json").status_code == 422  # it has ended
    for body in ({"keep_hours": -1}, {"keep_hours": 10_000}, {"keep": 1}):
        assert api.post(path, body, format="json").status_code == 422
    keyuse.write_down()
    assert all(key["last_used_at"] for key in api.get("/api/agents/bot/").json()["keys"])
    assert Event.objects.filter(subject_id="bot", event="agent.key_rotated").count() == 2


def test_an_agent_is_shut_out_and_let_in_again(api: APIClient) -> None:
    key = api.post("/api/agents/", {"name": "bot"}, format="json").json()["key"]
    assert api.post("/api/agents/bot/disable/").json()["is_active"] is False
    assert not opens(key)
    assert api.post("/api/agents/bot/enable/").json()["is_active"] is True
    assert opens(key)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "a b"}, 422),
        ({"name": ""}, 422),
        ({"name": "x" * 65}, 422),
        ({"name": None}, 422),
        ({}, 422),
        ({"name": "demo"}, 422),
        ({"name": "bot", "call": "Calculator"}, 422),
        ({"name": "bot", "call": [1, {}]}, 422),
        ({"name": "bot", "call": ["Nope"]}, 403),
        ({"name": "bot", "call": ["Mail"]}, 403),
        ({"name": "bot", "serve": ["Mail"]}, 403),
        ({"name": "bot", "call_all": True}, 403),
        ({"name": "bot", "owner": "nobody"}, 422),
        ({"name": "bot", "owner": "agent:demo"}, 422),
    ],
    ids=str,
)
def test_an_agent_that_cannot_be_made_leaves_nothing_behind(api: APIClient, body: dict[str, Any], status: int) -> None:
    before = Agent.objects.count(), User.objects.count(), Event.objects.count()
    response = api.post("/api/agents/", body, format="json")
    assert response.status_code == status, response.content
    assert (Agent.objects.count(), User.objects.count(), Event.objects.count()) == before


def test_a_key_cannot_expire_in_the_past_or_at_no_time(api: APIClient) -> None:
    api.post("/api/agents/", {"name": "bot"}, format="json")
    for moment in ("2020-01-01T00:00:00Z", "soon", 7, "9999-99-99"):
        assert api.post("/api/agents/bot/keys/", {"expires_at": moment}, format="json").status_code == 422
    assert Agent.objects.get(name="bot").credentials.count() == 1


def test_one_sees_and_changes_only_ones_own_agents(cast: Cast, api: APIClient) -> None:
    api.post("/api/agents/", {"name": "mine"}, format="json")
    assert [agent["name"] for agent in api.get("/api/agents/").json()["results"]] == ["mine"]
    assert api.get("/api/agents/demo/").status_code == 404
    assert api.post("/api/agents/demo/keys/").status_code == 404
    cast.publisher.user_permissions.add(Permission.objects.get(codename="view_agent"))
    fresh = cast.api("publisher")
    assert fresh.get("/api/agents/demo/").status_code == 200
    assert fresh.post("/api/agents/demo/keys/").status_code == 403
    assert fresh.post("/api/agents/demo/disable/").status_code == 403


def test_an_agents_key_does_not_open_the_agents_page(cast: Cast) -> None:
    api = cast.api("agent")
    for path in ("/api/agents/", "/api/agents/demo/"):
        response = api.get(path)
        assert response.status_code == 403
        assert "Only a person" in response.json()["message"]


# In the admin


def test_the_admin_shows_a_new_key_in_the_answer_and_keeps_it_nowhere(cast: Cast) -> None:
    client = browser(cast.publisher)
    form = {"name": "bot", "owner": "publisher", "call": ["Calculator"]}
    response = client.post(reverse("admin:policy_agent_add"), form)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    key = response.context["key"]
    assert opens(key)
    assert key in response.content.decode()
    assert key not in str(client.session.items())
    page = client.get(reverse("admin:policy_agent_change", args=[Agent.objects.get(name="bot").pk])).content.decode()
    assert key not in page


def test_the_admin_refuses_what_the_person_does_not_have(cast: Cast) -> None:
    client, before = browser(cast.publisher), Agent.objects.count()
    for form in (
        {"name": "bot", "owner": "publisher", "call": ["Mail"]},
        {"name": "a b", "owner": "publisher"},
        {"name": "demo", "owner": "publisher"},
        {"name": "bot", "owner": "agent:demo"},
        {"name": "bot", "owner": ""},
    ):
        assert client.post(reverse("admin:policy_agent_add"), form).context["form"].errors
    assert Agent.objects.count() == before
    client.post(reverse("admin:policy_agent_add"), {"name": "bot", "owner": "publisher", "call_all": "on"})
    assert not Agent.objects.get(name="bot").user.has_perm("registry.call_toolkit")
    assert browser(cast.viewer).get(reverse("admin:policy_agent_add")).status_code == 403


def test_keys_are_handled_in_the_admin_by_post_alone(cast: Cast) -> None:
    made = agents.create("bot", actor="shell", owner="publisher")
    client, prefix = browser(cast.publisher), made.agent.credentials.get().prefix

    def url(step: str) -> str:
        return reverse(f"admin:policy_agent_{step}", args=[made.agent.pk])

    for step in ("new_key", "revoke_key", "disable", "enable"):
        assert client.get(url(step), {"prefix": prefix}).status_code == 405
    assert opens(made.key)
    second = client.post(url("new_key"), {"label": "<script>x</script>"}).context["key"]
    assert opens(second)
    assert "<script>x" not in client.get(url("change")).content.decode()
    client.post(url("revoke_key"), {"prefix": prefix})
    assert not opens(made.key)
    client.post(url("disable"))
    assert not opens(second)
    client.post(url("enable"))
    assert opens(second)
    assert client.post(url("revoke_key"), {"prefix": "nothing"}).status_code == 404
    assert client.post(url("change"), {"name": "other"}).status_code == 405
    assert client.post(url("delete"), {"post": "yes"}).status_code == 403


def test_a_stranger_finds_no_agents(cast: Cast) -> None:
    client, demo = browser(cast.stranger), cast.agent.agent
    assert not client.get(reverse("admin:policy_agent_changelist")).context["cl"].result_list
    for step in ("change", "new_key", "disable"):
        assert client.post(reverse(f"admin:policy_agent_{step}", args=[demo.pk])).status_code in (404, 405)
    assert opens(cast.agent.key)
