"""The command that makes an agent, the check before serving, and the agent that stands for nobody."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from policy.agents import NewAgent
from policy.authentication import authenticate
from policy.models import Agent
from policy.startup_checks import anonymous_agent_needs_a_loopback_listener
from registry.loopback import is_loopback
from registry.models import Toolkit


def test_the_command_prints_secrets_that_work(toolkit: Toolkit) -> None:
    out = StringIO()
    call_command("create_agent", "bot", "--call", "Calculator", "--json", stdout=out)
    made = json.loads(out.getvalue())
    assert set(made) == {"name", "key", "jwt_secret"}
    assert authenticate({"OXP-API-Key": made["key"]}).name == "bot"


def test_the_command_says_why_it_made_nothing(toolkit: Toolkit) -> None:
    for arguments in (["a b"], ["bot", "--call", "Nope"], ["bot", "--owner", "nobody"]):
        with pytest.raises(CommandError):
            call_command("create_agent", *arguments, stdout=StringIO())
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("::1", True), ("[::1]", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.1", False)],
)
def test_the_anonymous_agent_needs_a_loopback_listener(settings: Any, host: str, is_local: bool) -> None:
    settings.PLACET_HOST, settings.PLACET_ANONYMOUS_AGENT = host, "demo"
    assert is_loopback(host) is is_local
    assert bool(anonymous_agent_needs_a_loopback_listener()) is not is_local
    settings.PLACET_ANONYMOUS_AGENT = ""
    assert anonymous_agent_needs_a_loopback_listener() == []


def test_over_rest_nobody_is_the_anonymous_agent_and_a_person_stays_a_person(
    made: NewAgent, person: Any, settings: Any
) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    names = [row["name"] for row in Client().get("/api/toolkits/").json()["results"]]
    assert names == ["Calculator"]
    logged_in = Client()
    logged_in.force_login(person)
    assert logged_in.get("/api/toolkits/").json()["results"] == []
    assert Client().get("/api/toolkits/", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert Client().get("/api/agents/").status_code == 403
