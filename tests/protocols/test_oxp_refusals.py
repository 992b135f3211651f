"""Methods that are not there, and what a refusal leaves behind."""

import orjson
import pytest
from django.test import Client

from audit.models import Event
from policy import agents
from policy.agents import NewAgent
from registry.models import ToolkitVersion
from tests.protocols.toolkits import Hands
from tests.protocols.wire import OXP, bearer, call, post, written

pytestmark = pytest.mark.django_db

Toolkits = dict[str, ToolkitVersion]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/tools/call", "POST"),
        ("PUT", "/tools/call", "POST"),
        ("OPTIONS", "/tools/call", "POST"),
        ("TRACE", "/tools/call", "POST"),
        ("DISPATCH", "/tools/call", "POST"),
        ("POST", "/tools", "GET, HEAD"),
        ("DELETE", "/health", "GET, HEAD"),
        ("GET", "/call", "POST"),
    ],
)
def test_r18_another_method_is_405_and_says_which_are_there(
    client: Client, robot: NewAgent, method: str, path: str, allowed: str
) -> None:
    response = client.generic(method, path, headers=bearer(robot.key))
    assert (response.status_code, response["Allow"]) == (405, allowed)
    assert response["Content-Type"] == "application/json"


def test_a_refusal_of_a_known_caller_leaves_one_event(client: Client, robot: NewAgent) -> None:
    before = written()
    post(client, OXP, {"request": {"tool_id": "A.B", "bogus": 1}}, robot)
    assert written() == {**before, "events": before["events"] + 1}
    event = Event.objects.order_by("-pk")[0]
    assert (event.event, event.actor, event.outcome) == ("request.refused", "agent:robot", "refused")
    assert orjson.loads(event.detail) == {"door": "oxp", "code": "invalid_request"}


def test_a_refusal_of_a_stranger_leaves_nothing(client: Client, robot: NewAgent) -> None:
    before = written()
    post(client, OXP, b"{", OXP_API_Key="plc_unknown_key")
    assert written() == before


def test_a51_a_call_id_belongs_to_its_agent_alone(client: Client, robot: NewAgent, hands: Hands) -> None:
    other = agents.create("other", actor="shell", call_all=True)
    call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="same")
    answer = call(client, other, "Calculator.Add@1.0.0", {"a": 5, "b": 5}, call_id="same")
    assert answer.json()["result"]["value"] == 10
