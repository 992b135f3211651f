"""Tool Contract v1 through the real door; the numbers are those of the contract's checks."""

from datetime import date
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.models import Event
from execution.errors import CallError, ErrorCode
from execution.models import Call
from execution.runtimes.base import Invocation, RunResult
from policy.agents import NewAgent
from registry import publishing
from tests.protocols.toolkits import Hands, Publish, manifest
from tests.protocols.wire import get, post, written

pytestmark = pytest.mark.django_db

PATH = "/contract/v1/execute"
TRACE = {"trace_id": "trace-abc", "span_id": "span-xyz"}


def envelope(tool: Any = "Calculator_Add", arguments: Any = None, **more: Any) -> dict[str, Any]:
    named = tool if isinstance(tool, dict) else {"name": tool}
    given = {"a": 1, "b": 2} if arguments is None else arguments
    return {"tool_contract_version": "v1", "request_id": "req-1", "tool": named, "input": given, **more}


def execute(client: Client, agent: NewAgent | None, body: Any, **headers: str) -> Any:
    response = post(client, PATH, body, agent, **headers)
    assert response["X-Tool-Contract-Version"] == "v1"
    told = response.json()
    must_be_an_envelope(told)
    return response


def must_be_an_envelope(told: dict[str, Any]) -> None:
    """Checks 9 and 10, of every answer."""
    assert told["tool_contract_version"] == "v1"
    assert told["status"] in ("ok", "error", "denied")
    assert told["usage"]["attempt"] > 0
    assert type(told["usage"]["duration_ms"]) is int
    assert ("error" in told) == (told["status"] != "ok")
    assert ("output" in told) == (told["status"] == "ok")
    if "error" in told:
        error = told["error"]
        assert error.keys() == {"code", "reason", "retryable", "message", "details"}
        assert error["code"]
        assert error["reason"]
        assert error["message"]
        assert type(error["retryable"]) is bool
        assert type(error["details"]) is dict


def test_a_call_is_answered_in_an_envelope_with_its_own_ids(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = execute(client, robot, envelope(trace=TRACE))
    told = response.json()
    assert response.status_code == 200
    assert told["status"] == "ok"
    assert told["request_id"] == "req-1"
    assert told["output"] == {"result": 3}
    assert told["trace"] == TRACE
    assert told["usage"]["attempt"] == 1
    call = Call.objects.get()
    assert (call.door, call.call_id, call.trace_id) == ("contract", "req-1", "trace-abc")


@pytest.mark.parametrize("version", [None, "", "  ", "v1", " V1 "])
def test_check_1_a_request_may_leave_the_version_out(
    client: Client, robot: NewAgent, hands: Hands, version: Any
) -> None:
    assert execute(client, robot, envelope(tool_contract_version=version)).status_code == 200


@pytest.mark.parametrize("version", ["v2", "v1.1", "1", 1, ["v1"], {}])
def test_check_1_another_version_is_refused_before_anything_runs(
    client: Client, robot: NewAgent, hands: Hands, version: Any
) -> None:
    response = execute(client, robot, envelope(tool_contract_version=version, trace=TRACE))
    told, error = response.json(), response.json()["error"]
    assert response.status_code == 400
    assert (told["status"], told["request_id"], told["trace"]) == ("error", "req-1", TRACE)
    assert (error["code"], error["reason"], error["retryable"]) == ("invalid_input", "tool_invalid_input", False)
    assert error["details"] == {"field": "tool_contract_version", "expected": "v1"}
    assert hands.runs == []
    assert Call.objects.count() == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "request_id"),
        ({"request_id": "  "}, "request_id"),
        ({"request_id": 7}, "request_id"),
        ({"request_id": "x" * 256}, "request_id"),
        ({"request_id": "a\nb"}, "request_id"),
        ({"request_id": "r"}, "tool.name"),
        ({"request_id": "r", "tool": {"name": " "}}, "tool.name"),
        ({"request_id": "r", "tool": {"name": None}}, "tool.name"),
        ({"request_id": "r", "tool": "Calculator_Add"}, "tool"),
        ({"tool_contract_version": "v9", "tool": {}}, "tool_contract_version"),
        ({"tool": {}, "input": 5}, "request_id"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "input": []}, "input"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "input": "{}"}, "input"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "input_raw": {}}, "input_raw"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "input_raw": "[1]"}, "input_raw"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "input_raw": '{"a":1,"a":2}'}, "input_raw"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "trace": "t"}, "trace"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "trace": {"trace_id": 5}}, "trace.trace_id"),
        ({"request_id": "r", "tool": {"name": "A_B"}, "trace": {"span_id": []}}, "trace.span_id"),
        ({"request_id": "r", "tool": {"name": "A_B", "capabilities": "x"}}, "tool.capabilities"),
        ({"request_id": "r", "tool": {"name": "A_B", "capabilities": [1]}}, "tool.capabilities"),
        ({"request_id": "r", "tool": {"name": "A_B", "risk_level": 1}}, "tool.risk_level"),
        ({"request_id": "r", "tool": {"name": "A_B", "operation": {}}}, "tool.operation"),
        ([], ""),
        ("text", ""),
    ],
)
def test_checks_2_to_4_the_first_wrong_field_is_named(client: Client, robot: NewAgent, body: Any, field: str) -> None:
    response = execute(client, robot, body)
    error = response.json()["error"]
    assert response.status_code == 400
    assert (error["code"], error["retryable"], error["details"]["field"]) == ("invalid_input", False, field)
    assert Call.objects.count() == 0
    assert Event.objects.filter(event="request.refused", subject_id="robot").count() == 1


@pytest.mark.parametrize(
    "name", ["Calculator_Add", "calculator_add", " CALCULATOR_ADD ", "Calculator.Add", "calculator.ADD@1.1.0"]
)
def test_a_tool_goes_by_its_flat_name_or_its_full_one(client: Client, robot: NewAgent, hands: Hands, name: str) -> None:
    assert execute(client, robot, envelope(name)).status_code == 200
    assert hands.runs[0].tool.tool_id == "Calculator.Add@1.1.0"


def test_a_flat_name_says_which_toolkit_although_both_names_have_underscores(
    client: Client, robot: NewAgent, hands: Hands, publish: Publish
) -> None:
    publish(manifest("My_Mail", "1.0.0", {"name": "Send_Now", "output": {"type": "string"}}))
    hands.overrides["My_Mail_Send_Now"] = lambda invocation: RunResult(value="sent")
    told = execute(client, robot, envelope("my_mail_send_now", {})).json()
    assert told["output"] == {"result": "sent"}


@pytest.mark.parametrize("name", ["Nobody_Knows", "Calculator.Nothing", "Calculator.Add@7.0.0", "not a name", "_"])
def test_an_unknown_tool_is_unsupported(client: Client, robot: NewAgent, hands: Hands, name: str) -> None:
    response = execute(client, robot, envelope(name))
    error = response.json()["error"]
    assert response.status_code == 404
    assert (error["code"], error["reason"], error["retryable"]) == ("unsupported_tool", "tool_unsupported", False)


def test_check_6_raw_input_wins_over_input(client: Client, robot: NewAgent, hands: Hands) -> None:
    told = execute(client, robot, envelope(arguments={"a": 9, "b": 9}, input_raw=' {"a": 1, "b": 1} ')).json()
    assert told["output"] == {"result": 2}


def test_check_6_blank_raw_input_does_not(client: Client, robot: NewAgent, hands: Hands) -> None:
    assert execute(client, robot, envelope(input_raw="  ")).json()["output"] == {"result": 3}


def test_check_7_input_that_does_not_fit_the_schema_is_invalid(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = execute(client, robot, envelope(arguments={"a": 1, "b": "two"}))
    error = response.json()["error"]
    assert response.status_code == 400
    assert (error["code"], error["details"]["field"]) == ("invalid_input", "input")
    assert error["details"]["parameters"] == {"b": "Must be a number"}


POWERFUL = manifest(
    "Power",
    "1.0.0",
    {
        "name": "Use",
        "risk": "medium",
        "capabilities": ["data.read", "network.read"],
        "output": {"type": "object"},
    },
)


@pytest.mark.parametrize(
    "claim",
    [
        {},
        {"capabilities": []},
        {"capabilities": None, "risk_level": "", "operation": ""},
        {"capabilities": ["data.read"]},
        {"capabilities": [" Network.READ ", "data.read", "data.read", ""], "risk_level": "Medium"},
        {"operation": " INVOKE "},
    ],
)
def test_to_claim_less_of_a_tool_than_it_is_or_all_of_it_is_fine(
    client: Client, robot: NewAgent, hands: Hands, publish: Publish, claim: dict[str, Any]
) -> None:
    publish(POWERFUL)
    hands.overrides["Power_Use"] = lambda invocation: RunResult(value={"used": True})
    response = execute(client, robot, envelope({"name": "Power_Use", **claim}, {}))
    assert response.json()["output"] == {"used": True}


@pytest.mark.parametrize(
    ("claim", "field"),
    [
        ({"capabilities": ["data.read", "data.write"]}, "tool.capabilities"),
        ({"risk_level": "low"}, "tool.risk_level"),
        ({"risk_level": "critical"}, "tool.risk_level"),
        ({"operation": "delete"}, "tool.operation"),
    ],
)
def test_to_claim_other_than_the_registry_knows_is_invalid(
    client: Client, robot: NewAgent, hands: Hands, publish: Publish, claim: dict[str, Any], field: str
) -> None:
    publish(POWERFUL)
    hands.overrides["Power_Use"] = lambda invocation: RunResult(value={})
    response = execute(client, robot, envelope({"name": "Power_Use", **claim}, {}))
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["details"]["field"]) == (400, "invalid_input", field)
    assert hands.runs == []
    right = execute(client, robot, envelope({"name": "Power_Use"}, {}, request_id="req-2"))
    assert right.status_code == 200


def test_the_same_request_id_gets_the_same_answer_and_runs_once(client: Client, robot: NewAgent, hands: Hands) -> None:
    first = execute(client, robot, envelope(trace=TRACE)).json()
    again = execute(client, robot, envelope(trace={"trace_id": "other", "span_id": "s2"})).json()
    assert again.pop("trace") == {"trace_id": "other", "span_id": "s2"}
    first.pop("trace")
    assert again == first
    assert len(hands.runs) == 1


@pytest.mark.parametrize(
    "other", [envelope(arguments={"a": 5, "b": 5}), envelope("Calculator.Add@1.0.0"), envelope("Nobody_Knows")]
)
def test_another_request_under_the_same_id_is_invalid_or_unknown(
    client: Client, robot: NewAgent, hands: Hands, other: dict[str, Any]
) -> None:
    execute(client, robot, envelope())
    response = execute(client, robot, other)
    assert response.status_code in (400, 404)
    if response.status_code == 400:
        error = response.json()["error"]
        assert (error["code"], error["details"]["field"]) == ("invalid_input", "request_id")
    assert len(hands.runs) == 1


def fails(code: ErrorCode, **more: Any) -> Any:
    def run(invocation: Invocation) -> RunResult:
        raise CallError(code, "It went wrong", **more)

    return run


@pytest.mark.parametrize(
    ("code", "more", "http", "retryable"),
    [
        (ErrorCode.EXECUTION_FAILED, {}, 502, False),
        (ErrorCode.EXECUTION_FAILED, {"can_retry": True}, 502, True),
        (ErrorCode.TIMEOUT, {}, 504, True),
        (ErrorCode.CANCELED, {}, 499, False),
        (ErrorCode.RUNTIME_INVALID, {}, 422, False),
        (ErrorCode.ISOLATION_MISSING, {}, 503, False),
        (ErrorCode.SECRET_UNRESOLVED, {}, 424, False),
        (ErrorCode.AUTH_INVALID, {}, 502, False),
        (ErrorCode.AUTH_FORBIDDEN, {}, 502, False),
        (ErrorCode.AUTH_EXPIRED, {}, 502, True),
        (ErrorCode.INVALID_INPUT, {}, 400, False),
        (ErrorCode.PERMISSION_DENIED, {}, 403, False),
    ],
)
def test_every_failure_has_the_status_and_reason_of_the_contracts_table(
    client: Client, robot: NewAgent, hands: Hands, code: ErrorCode, more: dict[str, Any], http: int, retryable: bool
) -> None:
    hands.overrides["Calculator_Add"] = fails(code, details={"timeout_ms": 15_000}, **more)
    response = execute(client, robot, envelope())
    told, error = response.json(), response.json()["error"]
    assert response.status_code == http
    assert told["status"] == ("denied" if code is ErrorCode.PERMISSION_DENIED else "error")
    assert (error["code"], error["reason"], error["retryable"]) == (code.wire, code.value.reason, retryable)
    assert error["details"]["timeout_ms"] == 15_000
    alone = execute(client, robot, envelope(), Prefer="respond-async, envelope")
    assert alone.status_code == 200
    assert alone["Preference-Applied"] == "envelope"
    assert alone.json() == told


def test_a_tool_that_is_busy_says_when_to_come_again(client: Client, robot: NewAgent, hands: Hands) -> None:
    hands.overrides["Calculator_Add"] = fails(ErrorCode.EXECUTION_FAILED, can_retry=True, retry_after_ms=1500)
    response = execute(client, robot, envelope())
    assert response["Retry-After"] == "2"
    assert response.json()["error"]["details"]["retry_after_ms"] == 1500


def test_an_object_is_the_output_itself_and_nothing_is_an_empty_one(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    ring = execute(client, robot, envelope("Doorbell_Ring", {"doorbell_id": "doorbell42"})).json()
    assert ring["output"] == {}


def test_content_blocks_are_told_whole_with_their_text_beside(client: Client, robot: NewAgent, hands: Hands) -> None:
    blocks = ({"type": "text", "text": "a"}, {"type": "image", "data": "AA=="}, {"type": "text", "text": "b"})
    hands.overrides["Calculator_Add"] = lambda invocation: RunResult(content=blocks)
    told = execute(client, robot, envelope()).json()
    assert told["output"] == {"result": "a\nb", "content": list(blocks)}


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b'{"request_id":"a","request_id":"b"}', 400, "duplicate_key"),
        (b'{"request_id":"\xff"}', 400, "bad_utf8"),
        (b"[" * 100_000, 400, "too_deep"),
        (b'"' + b"x" * 1_000_001 + b'"', 413, "too_large"),
    ],
)
def test_what_is_not_json_is_refused_in_an_envelope(
    client: Client, robot: NewAgent, body: bytes, status: int, problem: str
) -> None:
    response = execute(client, robot, body)
    assert response.status_code == status
    assert response.json()["error"]["details"]["problem"] == problem
    assert response.json()["error"]["code"] == "invalid_input"


def test_without_a_key_the_refusal_is_an_envelope_too(client: Client, db: None) -> None:
    before = written()
    response = execute(client, None, envelope())
    assert response.status_code == 401
    assert response["WWW-Authenticate"]
    assert response.json()["error"]["code"] == "unauthenticated"
    assert execute(client, None, envelope(), Prefer="envelope").status_code == 200
    assert written() == before


def test_other_methods_and_media_types_are_refused_in_an_envelope(client: Client, robot: NewAgent) -> None:
    response = get(client, PATH, robot)
    assert response.status_code == 405
    must_be_an_envelope(response.json())
    assert execute(client, robot, envelope(), Content_Type="text/plain").status_code == 415


def test_a_tool_that_the_caller_may_not_see_is_unknown_to_it(client: Client, stranger: NewAgent, hands: Hands) -> None:
    assert execute(client, stranger, envelope()).status_code == 404


def test_a_version_that_is_deprecated_is_answered_with_a_warning(
    client: Client, robot: NewAgent, hands: Hands, toolkits: dict[str, Any]
) -> None:
    author, day = User.objects.get(username="author"), date(2099, 1, 31)
    publishing.deprecate(toolkits["Calculator@1.0.0"], by=author, sunset_on=day)
    response = execute(client, robot, envelope("Calculator.Add@1.0.0"))
    assert response["Deprecation"] == "true"
    (warning,) = response.json()["warnings"]
    assert "may be withdrawn from 2099-01-31 on" in warning
