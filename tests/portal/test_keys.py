"""Keys: shown once, rotated without a gap, ended at once, and their last use known without slowing a call."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.models import Event
from policy import agents, keyuse
from policy.agents import AgentError, NewAgent
from policy.authentication import NotAuthenticated, authenticate
from policy.models import Credential, KeyUse
from registry import revision

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _nothing_noted_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyuse, "_written", {})
    monkeypatch.setattr(keyuse, "_waiting", {})


@pytest.fixture
def olga(db: None) -> User:
    return User.objects.create_user("olga", is_staff=True)


@pytest.fixture
def made(olga: User) -> NewAgent:
    return agents.create("caller", actor="shell", owner="olga")


@pytest.fixture
def client(olga: User) -> Client:
    client = Client()
    client.force_login(olga)
    return client


def proof(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def shown_key(answer: Any) -> str:
    return re.search(r'id="key"[^>]*>([^<]+)<', answer.content.decode())[1]  # type: ignore[index]


def address(key: str, step: str) -> str:
    return f"/agents/caller/keys/{agents.prefix_of(key)}/{step}/"


# Rotation


def test_rotating_shows_a_new_key_once_while_the_old_one_goes_on_for_a_day(client: Client, made: NewAgent) -> None:
    answer = client.post(address(made.key, "rotate"))
    new = shown_key(answer)
    assert "no-store" in answer.headers["Cache-Control"]
    assert authenticate(proof(new)).name == authenticate(proof(made.key)).name == "caller"
    old = Credential.objects.get(prefix=agents.prefix_of(made.key))
    assert old.expires_at is not None
    assert abs(old.expires_at - timezone.now() - DAY) < timedelta(minutes=1)
    assert new not in client.get("/agents/caller/").content.decode()
    Credential.objects.filter(pk=old.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotAuthenticated):
        authenticate(proof(made.key))


def test_a_key_can_end_in_the_moment_it_is_rotated(client: Client, made: NewAgent) -> None:
    new = shown_key(client.post(address(made.key, "rotate"), {"hours": "0"}))
    assert authenticate(proof(new)).name == "caller"
    with pytest.raises(NotAuthenticated):
        authenticate(proof(made.key))


def test_a_rotation_is_on_the_trail_with_both_keys_and_without_their_secrets(client: Client, made: NewAgent) -> None:
    new = shown_key(client.post(address(made.key, "rotate")))
    event = Event.objects.get(event="agent.key_rotated")
    told = json.loads(event.detail)
    assert (event.actor, event.subject_id) == ("user:olga", "caller")
    assert (told["key"], told["new_key"]) == (agents.prefix_of(made.key), agents.prefix_of(new))
    assert all(key.split("_", 2)[2] not in each.detail for key in (new, made.key) for each in Event.objects.all())


def test_the_new_key_lives_as_long_as_the_old_one_was_to_and_a_rotation_never_prolongs_one(made: NewAgent) -> None:
    short = agents.new_key(made.agent, actor="shell", label="ci", expires_at=timezone.now() + timedelta(hours=2))
    old = Credential.objects.get(prefix=agents.prefix_of(short))
    new = agents.rotate_key(old, actor="shell", keep=DAY)
    fresh = Credential.objects.get(prefix=agents.prefix_of(new))
    assert fresh.label == "ci"
    assert fresh.expires_at is not None
    assert abs(fresh.expires_at - timezone.now() - timedelta(hours=2)) < timedelta(minutes=1)
    before = old.expires_at
    old.refresh_from_db()
    assert old.expires_at == before


@pytest.mark.parametrize("keep", [timedelta(seconds=-1), timedelta(days=91)])
def test_a_time_that_makes_no_sense_is_refused_and_leaves_nothing(made: NewAgent, keep: timedelta) -> None:
    with pytest.raises(AgentError, match="90 days"):
        agents.rotate_key(made.agent.credentials.get(), actor="shell", keep=keep)
    assert made.agent.credentials.count() == 1


def test_a_key_that_has_ended_is_not_rotated(client: Client, made: NewAgent) -> None:
    client.post(address(made.key, "revoke"))
    answer = client.post(address(made.key, "rotate"), follow=True)
    assert "has ended already" in answer.content.decode()
    assert made.agent.credentials.count() == 1


def test_choices_that_were_not_offered_are_not_taken(client: Client, made: NewAgent) -> None:
    client.post(address(made.key, "rotate"), {"hours": "99999"})
    old = Credential.objects.get(prefix=agents.prefix_of(made.key))
    assert old.expires_at is not None
    assert old.expires_at < timezone.now() + timedelta(hours=25)


# Making and ending


def test_a_further_key_has_its_label_and_its_end(client: Client, made: NewAgent) -> None:
    new = shown_key(client.post("/agents/caller/keys/", {"label": "staging", "days": "30"}))
    fresh = Credential.objects.get(prefix=agents.prefix_of(new))
    assert fresh.label == "staging"
    assert fresh.expires_at is not None
    client.post("/agents/caller/keys/", {"label": "x" * 101})
    assert made.agent.credentials.count() == 2


def test_a_persons_own_agent_is_offered_no_key_and_gets_none(client: Client, olga: User) -> None:
    own = agents.for_person(olga)
    assert "it never has a key" in client.get(f"/agents/{own.name}/").content.decode()
    answer = client.post(f"/agents/{own.name}/keys/", {}, follow=True)
    assert (answer.status_code, "No key was made" in answer.content.decode()) == (200, True)
    assert not own.credentials.exists()


def test_a_revoked_key_and_a_shut_out_agent_open_no_door(client: Client, made: NewAgent) -> None:
    second = agents.new_key(made.agent, actor="shell")
    client.post(address(made.key, "revoke"))
    with pytest.raises(NotAuthenticated):
        authenticate(proof(made.key))
    client.post("/agents/caller/admission/", {"admit": "no"})
    with pytest.raises(NotAuthenticated):
        authenticate(proof(second))
    client.post("/agents/caller/admission/", {"admit": "yes"})
    assert authenticate(proof(second)).name == "caller"


@pytest.mark.parametrize("step", ["keys/", "keys/PREFIX/rotate/", "keys/PREFIX/revoke/", "admission/"])
def test_keys_are_for_owners_and_those_who_change_agents(made: NewAgent, step: str, client: Client) -> None:
    path = f"/agents/caller/{step.replace('PREFIX', agents.prefix_of(made.key))}"
    stranger = Client()
    stranger.force_login(User.objects.create_user("sol", is_staff=True))
    assert stranger.post(path).status_code == 404
    assert client.get(path).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="olga"))
    assert strict.post(path).status_code == 403
    assert made.agent.credentials.filter(revoked_at=None).count() == 1
    assert not Event.objects.filter(event__in=["agent.key_rotated", "agent.key_revoked", "agent.disabled"]).exists()


def test_a_key_of_another_agent_is_not_reached_through_ones_own(client: Client, made: NewAgent) -> None:
    other = agents.create("other", actor="shell")
    assert client.post(address(other.key, "revoke")).status_code == 404
    assert authenticate(proof(other.key)).name == "other"


# Last use


def test_a_use_costs_the_call_no_query_and_is_written_by_who_has_time(made: NewAgent) -> None:
    authenticate(proof(made.key))
    with CaptureQueriesContext(connection) as queries:
        authenticate(proof(made.key))
    assert len(queries) <= 1  # the revision that caches hang on
    assert not KeyUse.objects.exists()
    seen = revision.current()
    assert keyuse.write_down() == 1
    assert abs(KeyUse.objects.get().used_at - timezone.now()) < timedelta(minutes=1)
    assert revision.current() == seen  # no cache is thrown away because a key was used


def test_a_use_is_written_once_in_five_minutes(made: NewAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    authenticate(proof(made.key))
    assert keyuse.write_down() == 1
    authenticate(proof(made.key))
    assert keyuse.write_down() == 0
    monkeypatch.setattr(keyuse, "EVERY", 0.0)
    authenticate(proof(made.key))
    assert keyuse.write_down() == 1
    assert KeyUse.objects.count() == 1


def test_a_refused_key_and_a_deleted_one_leave_no_use(made: NewAgent) -> None:
    with pytest.raises(NotAuthenticated):
        authenticate(proof(made.key + "x"))
    assert keyuse.write_down() == 0
    authenticate(proof(made.key))
    Credential.objects.all().delete()
    assert keyuse.write_down() == 0


def test_a_database_that_was_away_loses_no_later_use(made: NewAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> int:
        raise DatabaseError

    authenticate(proof(made.key))
    with monkeypatch.context() as patch:
        patch.setattr(keyuse, "_write", away)
        with pytest.raises(DatabaseError):
            keyuse.write_down()
    authenticate(proof(made.key))
    assert keyuse.write_down() == 1
