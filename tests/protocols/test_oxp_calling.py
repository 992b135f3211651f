"""POST /tools/call: values, versions, and the three kinds of error."""

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError
from django.test import Client

from execution.models import Call
from execution.protocols import base
from execution.runtimes.base import RunResult
from policy.agents import NewAgent
from registry import publishing
from registry.models import ToolkitVersion
from tests.protocols.specification import must_be
from tests.protocols.toolkits import Hands, Publish, calculator
from tests.protocols.wire import OXP, call, post

pytestmark = pytest.mark.django_db
NONE = "has no version that this agent may call"

Toolkits = dict[str, ToolkitVersion]


def test_r18_r21_r22_r27_a_call_is_answered_with_an_id_of_its_own(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 10, "b": 5})
    assert response.status_code == 200
    must_be("CallToolResult", response.json())
    result = response.json()["result"]
    assert (result["success"], result["value"]) == (True, 15)
    assert result["duration"] >= 0
    assert Call.objects.get().call_id == result["call_id"]
    assert len(hands.runs) == 1


def test_r19_the_version_of_the_protocol_may_be_left_out(client: Client, robot: NewAgent, hands: Hands) -> None:
    asked = {"request": {"tool_id": "Calculator.Add@1.0.0", "input": {"a": 1, "b": 1}}}
    body = post(client, OXP, asked, robot).json()
    assert body["$schema"] == "urn:oxp:1.0"
    assert body["result"]["value"] == 2


def test_r23_r24_a_repeated_call_id_gives_the_same_answer_and_runs_once(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    first = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="mine")
    again = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="mine")
    assert first.json()["result"]["call_id"] == "mine"
    assert again.json()["result"]["value"] == first.json()["result"]["value"] == 3
    assert len(hands.runs) == 1


def test_r24_a_call_id_of_another_request_is_refused_and_the_first_untouched(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="mine")
    other = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 3}, call_id="mine")
    assert (other.status_code, other.json()["code"]) == (422, "call_id_reused")
    must_be("ValidationErrorResponse", other.json())
    assert Call.objects.get().result == "3"


def test_r25_the_trace_id_is_kept_with_the_call(client: Client, robot: NewAgent, hands: Hands) -> None:
    call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, trace_id="trace-7")
    assert Call.objects.get().trace_id == "trace-7"


def test_r28_a_value_that_breaks_the_tools_promise_is_not_passed_on(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    hands.overrides["Calculator_Add"] = lambda invocation: RunResult(value="fifteen")
    result = call(client, robot, "Calculator.Add@1.0.0", {"a": 10, "b": 5}).json()["result"]
    assert result["success"] is False
    assert "value" not in result


def test_r30_a_void_tool_answers_without_a_value(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = call(client, robot, "Doorbell.Ring@0.1.0", {"doorbell_id": "doorbell42"})
    must_be("CallToolResult", response.json())
    assert response.json()["result"].get("value") is None


@pytest.mark.parametrize(
    ("tool", "ran"),
    [
        ("Calculator.Add@1.0.0", "1.0.0"),
        ("Calculator.Add@1.1.0", "1.1.0"),
        ("Calculator.Add@1", "1.0.0"),
        ("Calculator.Add", "1.1.0"),
        ("calculator.add", "1.1.0"),
    ],
)
def test_r31_r32_r33_a_version_is_resolved_exactly(
    client: Client, robot: NewAgent, hands: Hands, tool: str, ran: str
) -> None:
    assert call(client, robot, tool, {"a": 1, "b": 2}).status_code == 200
    assert hands.runs[0].tool.version == ran
    with_c = call(client, robot, tool, {"a": 1, "b": 2, "c": 3})
    assert with_c.status_code == (200 if ran == "1.1.0" else 422)


def test_r34_the_latest_version_is_the_numerically_highest(
    client: Client, robot: NewAgent, hands: Hands, publish: Publish
) -> None:
    publish(calculator("1.10.0"))
    publish(calculator("1.9.0"))
    call(client, robot, "Calculator.Add", {"a": 1, "b": 2})
    assert hands.runs[0].tool.version == "1.10.0"


@pytest.mark.parametrize(
    "tool", ["Calculator.Add@1.0", "Calculator.Add@latest", "Calculator.Add@1.0.0-rc", "Calculator", "Calculator.Add@"]
)
def test_r35_r37_other_forms_are_an_invalid_tool_id(client: Client, robot: NewAgent, hands: Hands, tool: str) -> None:
    response = call(client, robot, tool, {"a": 1, "b": 2})
    must_be("ServerErrorResponse", response.json())
    assert response.status_code == 400
    assert not hands.runs


@pytest.mark.parametrize(
    ("tool", "said", "to_developers"),
    [
        ("Calculator.Add@2.0.0", "Calculator_Add", "Calculator.Add version 2.0.0 is not available"),
        ("Calculator.Add@2", "Calculator_Add", "Calculator.Add version 2.0.0 is not available"),
        ("Nowhere.Nothing@1.0.0", "Nowhere_Nothing", "Nowhere.Nothing version 1.0.0 is not available"),
        ("Calculator.Ad", "Calculator_Ad", f"Calculator.Ad {NONE}; did you mean Calculator.Add?"),
        ("calculater.add", "calculater_add", f"calculater.add {NONE}; did you mean Calculator.Add?"),
    ],
)
def test_r36_r37_r38_a_tool_that_is_not_there_is_a_server_error(
    client: Client, robot: NewAgent, hands: Hands, tool: str, said: str, to_developers: str
) -> None:
    response = call(client, robot, tool)
    must_be("ServerErrorResponse", response.json())
    assert response.status_code == 400
    assert response.json()["message"] == f"Tool '{said}' was not found"
    assert response.json()["developer_message"] == to_developers


def test_r37_a_tool_the_caller_may_not_know_looks_like_none(
    client: Client, stranger: NewAgent, robot: NewAgent, toolkits: Toolkits
) -> None:
    assert "mean" not in str(call(client, stranger, "Calculator.Ad").json())
    hidden = call(client, stranger, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="x").json()
    absent = call(client, stranger, "Nowhere.Add@1.0.0", {"a": 1, "b": 2}, call_id="y").json()
    plain = [str(body).replace("Nowhere", "Calculator").replace("'y'", "'x'") for body in (hidden, absent)]
    assert plain[0] == plain[1]


def test_r37_a_version_that_was_withdrawn_is_not_available(client: Client, robot: NewAgent, toolkits: Toolkits) -> None:
    author = get_user_model().objects.get(username="author")
    publishing.withdraw(toolkits["Calculator@1.0.0"], by=author, reason="wrong sums")
    assert call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}).status_code == 400


def test_a_deprecated_version_still_answers_and_says_so(
    client: Client, robot: NewAgent, toolkits: Toolkits, hands: Hands
) -> None:
    publishing.deprecate(toolkits["Calculator@1.0.0"], by=get_user_model().objects.get(username="author"))
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2})
    must_be("CallToolResult", response.json())
    assert response.json()["result"]["value"] == 3
    assert response["Deprecation"] == "true"
    assert "deprecated" in response.json()["warnings"][0]


def test_r37_a_database_that_is_away_is_a_server_error_that_says_when_to_return(
    client: Client, robot: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(request: object) -> object:
        raise OperationalError("connection refused")

    monkeypatch.setattr(base, "admit", away)
    response = call(client, robot, "Calculator.Add", {"a": 1, "b": 2})
    must_be("ServerErrorResponse", response.json())
    assert (response.status_code, response.json()["code"], response["Retry-After"]) == (400, "unavailable", "2")
    assert "connection refused" not in response.content.decode()


def test_a_bug_of_ours_is_500_in_the_doors_own_form_and_tells_nothing(
    client: Client, robot: NewAgent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(request: object) -> object:
        raise ZeroDivisionError("inner workings")

    monkeypatch.setattr(base, "admit", broken)
    response = call(client, robot, "Calculator.Add", {"a": 1, "b": 2})
    must_be("ServerErrorResponse", response.json())
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "inner workings" not in response.content.decode()
    assert "inner workings" in caplog.text


def test_r40_r41_r42_invalid_input_is_told_by_parameter_before_the_tool_is_called(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 10, "b": "infinity"})
    must_be("ValidationErrorResponse", response.json())
    assert response.status_code == 422
    assert response.json()["message"] == "Some input parameters are invalid"
    assert response.json()["parameter_errors"] == {"b": "Must be a number"}
    assert not hands.runs


def test_r26_r41_input_that_was_left_out_is_an_empty_object(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0")
    assert response.status_code == 422
    assert set(response.json()["parameter_errors"]) == {"a", "b"}


def test_r29_r43_a_tool_that_fails_is_200_without_success(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = call(client, robot, "Doorbell.Ring@0.1.0", {"doorbell_id": "doorbell1"})
    assert response.status_code == 200
    must_be("CallToolResult", response.json())
    assert response.json()["result"]["error"]["message"] == "Doorbell ID not found"
