"""Agents are made with a key that is shown once; every step is on the trail."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from audit.models import Event
from policy import agents
from policy.agents import AgentError, NewAgent
from policy.models import Agent, Credential
from registry import revision
from registry.models import Toolkit


def events(name: str) -> list[str]:
    return list(
        Event.objects.filter(subject_kind="agent", subject_id=name).order_by("seq").values_list("event", flat=True)
    )


def test_a_new_agent_gets_a_key_and_a_jwt_secret_that_are_nowhere_in_the_database(made: NewAgent) -> None:
    credential = made.agent.credentials.get()
    assert made.key.startswith(f"plc_{credential.prefix}_")
    assert made.key not in str(list(Credential.objects.values()))
    agent = Agent.objects.get(name="demo")
    assert agent.sealed_jwt_secret is not None
    assert made.jwt_secret.encode() not in bytes(agent.sealed_jwt_secret)
    assert agents.jwt_secret_of(agent) == made.jwt_secret


def test_the_secrets_of_a_new_agent_are_not_in_its_repr(made: NewAgent) -> None:
    assert made.key not in repr(made)
    assert made.jwt_secret not in repr(made)


def test_the_secrets_of_a_new_agent_are_not_on_the_trail(made: NewAgent) -> None:
    told = str(list(Event.objects.values_list("detail", flat=True)))
    assert made.key.split("_", 2)[2] not in told
    assert made.jwt_secret not in told
    assert events("demo") == ["agent.created", "agent.key_created"]


def test_the_user_behind_an_agent_cannot_log_in(made: NewAgent) -> None:
    assert not made.agent.user.has_usable_password()
    assert not made.agent.user.is_staff


def test_an_agent_may_call_the_named_toolkits_and_no_other(made: NewAgent, other_toolkit: Toolkit) -> None:
    assert made.agent.user.has_perm("registry.call_toolkit", Toolkit.objects.get(name="Calculator"))
    assert not made.agent.user.has_perm("registry.call_toolkit", other_toolkit)


def test_toolkits_are_named_without_regard_to_case_and_generators_are_welcome(toolkit: Toolkit) -> None:
    agents.create("g", actor="shell", call=(name for name in ["CALCULATOR"]))
    created = Event.objects.get(subject_kind="agent", subject_id="g", event="agent.created")
    assert "CALCULATOR" in str(created.detail)


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "a/b", "é", "x" * 65, "a\n", "a\0b", "<script>"])
def test_a_bad_name_is_refused_and_nothing_is_left_behind(db: None, name: str) -> None:
    with pytest.raises(AgentError):
        agents.create(name, actor="shell")
    assert not User.objects.filter(username__startswith="agent:").exists()
    assert not Event.objects.exists()


def test_an_unknown_toolkit_or_owner_leaves_nothing_behind(db: None) -> None:
    with pytest.raises(AgentError, match="no toolkit named 'Nope'"):
        agents.create("a", actor="shell", call=["Nope"])
    with pytest.raises(AgentError, match="no user named 'nobody'"):
        agents.create("a", actor="shell", owner="nobody")
    assert not Agent.objects.exists()
    assert not User.objects.exists()


def test_a_name_is_given_once(made: NewAgent) -> None:
    with pytest.raises(AgentError, match="already an agent named 'demo'"):
        agents.create("demo", actor="shell")


def test_an_agent_cannot_own_an_agent(made: NewAgent) -> None:
    with pytest.raises(AgentError, match="no user named 'agent:demo'"):
        agents.create("child", actor="shell", owner="agent:demo")


def test_revoking_a_key_twice_is_told_once(made: NewAgent) -> None:
    credential = made.agent.credentials.get()
    assert agents.revoke_key(credential, actor="user:petra")
    assert not agents.revoke_key(credential, actor="user:petra")
    assert events("demo").count("agent.key_revoked") == 1


def test_disabling_and_enabling_are_told_once_each(made: NewAgent) -> None:
    assert agents.set_active(made.agent, False, actor="user:petra")
    assert not agents.set_active(made.agent, False, actor="user:petra")
    assert agents.set_active(made.agent, True, actor="user:petra")
    assert events("demo")[-2:] == ["agent.disabled", "agent.enabled"]


def test_a_key_cannot_expire_in_the_past(made: NewAgent) -> None:
    with pytest.raises(AgentError, match="past"):
        agents.new_key(made.agent, actor="shell", expires_at=timezone.now() - timedelta(seconds=1))


def test_the_database_refuses_a_key_in_clear(made: NewAgent) -> None:
    with pytest.raises(IntegrityError, match="credential_keeps_a_sha256_not_a_key"), transaction.atomic():
        Credential.objects.create(agent=made.agent, prefix="x", hash=made.key)


def test_every_change_of_an_agent_or_key_moves_the_revision(made: NewAgent) -> None:
    seen = [revision.current()]
    agents.new_key(made.agent, actor="shell")
    seen.append(revision.current())
    agents.revoke_key(made.agent.credentials.all()[0], actor="shell")
    seen.append(revision.current())
    agents.set_active(made.agent, False, actor="shell")
    seen.append(revision.current())
    assert len(set(seen)) == 4
