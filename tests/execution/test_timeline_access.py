"""Which events belong to whom: agents and people see what is theirs, and no trace of the rest."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from guardian.shortcuts import assign_perm

from audit import trail
from audit.models import Event
from execution.models import Call
from policy import agents
from policy.models import Agent
from registry.models import ToolkitVersion
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db

EVENTS = "/api/audit/events/"


def seen(client: Client, **headers: str) -> set[tuple[str, str]]:
    """The subjects of all events a client is shown."""
    answer = client.get(EVENTS, {"page_size": 200}, headers=headers)
    assert answer.status_code == 200
    assert answer.json()["count"] == len(answer.json()["results"])
    return {(event["subject_kind"], event["subject_id"]) for event in answer.json()["results"]}


def person(name: str) -> tuple[User, Client]:
    user = User.objects.create_user(name)
    client = Client()
    client.force_login(user)
    return user, client


@pytest.fixture
def called(call: MakeCall, unsent: list[Any]) -> str:
    trail.record("policy", "revision-1", "policy.activated", actor="shell")
    return str(Call.objects.get(pk=call("Ring", ledger="/nowhere").id).pk)


def test_an_agent_sees_its_own_calls_and_itself(called: str) -> None:
    mine = agents.new_key(Agent.objects.get(name="tester"), actor="shell")
    others = agents.create("other", actor="shell", call=["Lab"]).key
    assert seen(Client(), Authorization=f"Bearer {mine}") == {("call", called), ("agent", "tester")}
    assert seen(Client(), Authorization=f"Bearer {others}") == {("agent", "other")}


def test_an_agent_that_may_view_events_carries_them_all_elsewhere(called: str) -> None:
    from django.contrib.auth.models import Permission

    new = agents.create("exporter", actor="shell")
    new.agent.user.user_permissions.add(Permission.objects.get(codename="view_event"))
    assert ("policy", "revision-1") in seen(Client(), Authorization=f"Bearer {new.key}")


def test_an_owner_sees_their_agents_and_the_calls_of_these(called: str) -> None:
    owner, client = person("owner")
    assert seen(client) == set()
    Agent.objects.filter(name="tester").update(owner=owner)
    assert seen(client) == {("call", called), ("agent", "tester")}


def test_who_audits_a_toolkit_sees_its_calls_and_its_versions(called: str, lab: ToolkitVersion) -> None:
    auditor, client = person("auditor")
    assign_perm("registry.audit_toolkit", auditor, lab.toolkit)
    assert {kind for kind, _ in seen(client)} == {"call", "version"} | (
        {"toolkit"} if Event.objects.filter(subject_kind="toolkit").exists() else set()
    )
    assert ("call", called) in seen(client)
    assert ("version", "Lab@1.0.0") in seen(client)


def test_who_may_call_publish_or_see_a_toolkit_does_not_audit_it(called: str, lab: ToolkitVersion) -> None:
    user, client = person("publisher")
    for verb in ("view", "call", "publish", "review", "approve", "serve"):
        assign_perm(f"registry.{verb}_toolkit", user, lab.toolkit)
    assert seen(client) == set()


def test_who_may_approve_follows_only_what_people_were_asked_about(
    called: str, call: MakeCall, lab: ToolkitVersion, unsent: list[Any]
) -> None:
    approver, client = person("approver")
    assign_perm("registry.approve_toolkit", approver, lab.toolkit)
    asked = Call.objects.get(pk=call("Fire", ledger="/nowhere").id)
    assert asked.state == "awaiting_approval"
    assert {subject for subject in seen(client) if subject[0] == "call"} == {("call", str(asked.pk))}
    assert client.get(f"/calls/{asked.pk}/").status_code == 200
    assert client.get(f"/calls/{called}/").status_code == 404


def test_who_may_break_the_glass_sees_what_others_ran_that_way(called: str) -> None:
    from django.contrib.auth.models import Permission

    from policy.models import BreakGlass

    breaker, client = person("breaker")
    breaker.user_permissions.add(Permission.objects.get(codename="break_glass"))
    assert client.get(f"/calls/{called}/").status_code == 404
    row = Call.objects.get(pk=called)
    assert row.tool is not None
    other = User.objects.create_user("other")
    BreakGlass.objects.create(
        call=row.pk, agent=row.agent, tool=row.tool, tool_ref=row.tool_ref, person=other, reason="Nobody answered"
    )
    assert client.get(f"/calls/{called}/").status_code == 200


def test_one_event_of_another_agent_is_not_found(called: str) -> None:
    event = Event.objects.filter(subject_kind="call").first()
    assert event is not None
    key = agents.create("other", actor="shell").key
    answers = [
        Client().get(f"{EVENTS}{id}/", headers={"Authorization": f"Bearer {key}"})
        for id in (event.pk, event.pk + 10_000)
    ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
