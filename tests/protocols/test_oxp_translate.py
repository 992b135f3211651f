"""OXP's two translations, without a database: what is understood, and how each outcome is told."""

from typing import Any
from uuid import uuid4

import pytest

from execution.errors import ErrorCode, Failure, Stage
from execution.messages import CallOutcome, CallRequest
from execution.protocols.dialect import Refusal, seconds
from execution.protocols.oxp.translate import from_outcome, from_refusal, to_request
from policy.caller import Caller
from tests.protocols.specification import must_be

CALLER = Caller(agent_id=1, name="robot", user_id=1, credential="key:abc")
LONG_NAMES = (
    "https://github.com/OpenToolCalling/Specification/tree/main/spec/http/1.0/openapi.json",
    "https://github.com/OpenExecProtocol/Specification/tree/main/spec/http/1.0/openapi.json",
)


def understood(request: Any, **envelope: Any) -> CallRequest:
    return to_request({"request": request, **envelope}, CALLER)


def refused(body: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        to_request(body, CALLER)
    must_be("ServerErrorResponse", from_refusal(caught.value).body)
    return caught.value


def outcome(failure: Failure | None = None, **more: Any) -> CallOutcome:
    return CallOutcome(
        id=uuid4(), call_id="c-1", state="succeeded", tool_id="Calculator.Add@1.0.0", failure=failure, **more
    )


def failure(code: ErrorCode, **more: Any) -> Failure:
    return Failure(code=code, message="No", **more)


@pytest.mark.parametrize(
    "text",
    ["Calculator.Add", "Calculator.Add@1", "Calculator.Add@1.0.0", "a_1.B_2@0.0.0", "Calculator.Add@10.20.30"],
)
def test_r17_tool_ids_of_the_grammar_are_parsed(text: str) -> None:
    request = understood({"tool_id": text})
    assert request.tool_text == text
    assert request.tool_ref is not None


@pytest.mark.parametrize(
    "text",
    [
        "Calculator",
        "Calculator.",
        ".Add",
        "Calculator.Add.More",
        "Calculator Add",
        "Calculator.Add@",
        "Calculator.Add@1.0",
        "Calculator.Add@latest",
        "Calculator.Add@1.0.0-rc1",
        "Calculator.Add@1.0.0+build",
        "Calculator.Add@v1",
        "Calculator.Add@-1",
        "Calculator.Add@1.0.0 ",
        "Calculator.Ädd",
        "Calculator.Add@١",
        "../Calculator.Add",
        "Calculator/Add",
    ],
)
def test_r17_r35_other_forms_are_no_tool(text: str) -> None:
    assert understood({"tool_id": text}).tool_ref is None


@pytest.mark.parametrize("text", ["Calculator.Add\n", "Calculator.Add@1.0.0\n", "\x00", "Calculator.Add\x7f"])
def test_r17_a_trailing_newline_does_not_slip_through(text: str) -> None:
    assert refused({"request": {"tool_id": text}}).code == "invalid_request"


def test_r18_the_request_stands_inside_an_envelope() -> None:
    assert "request is missing" in refused({}).message
    assert "request is missing" in refused({"tool_id": "Calculator.Add"}).message


@pytest.mark.parametrize("body", [None, [], "text", 1, True, [{"request": {"tool_id": "A.B"}}]])
def test_r18_the_body_is_an_object(body: Any) -> None:
    assert refused(body).message == "The body must be a JSON object"


def test_r18_keys_beside_the_request_are_left_alone() -> None:
    assert understood({"tool_id": "A.B"}, extra=1).tool_text == "A.B"


@pytest.mark.parametrize("envelope", [{}, {"$schema": "urn:oxp:1.0"}, *({"$schema": name} for name in LONG_NAMES)])
def test_r19_r56_r57_no_version_and_every_name_of_1_0_are_served(envelope: dict[str, Any]) -> None:
    assert understood({"tool_id": "A.B"}, **envelope).door == "oxp"


@pytest.mark.parametrize(
    "named",
    [
        "urn:oxp:2.0",
        "urn:oxp:1.1",
        "urn:oxp:1.0 ",
        "https://example.com/schema.json",
        "https://github.com/ArcadeAI/OpenToolCalling/tree/main/specification/http/1.0/openapi.json",
    ],
)
def test_r58_another_version_is_refused_as_a_server_error(named: str) -> None:
    refusal = refused({"$schema": named, "request": {"tool_id": "A.B"}})
    assert refusal.code == ("invalid_request" if named.endswith(" ") else "unsupported_version")
    assert from_refusal(refusal).status == 400


@pytest.mark.parametrize("named", [None, 1, [], {}, "", "no uri", "1.0", ":x", "urn:oxp:1.0\n"])
def test_r56_the_version_must_be_a_uri(named: Any) -> None:
    refusal = refused({"$schema": named, "request": {"tool_id": "A.B"}})
    assert (refusal.code, refusal.message) == ("invalid_request", "$schema must be a URI")


@pytest.mark.parametrize("request_", [None, [], "A.B", 1])
def test_r20_the_request_is_an_object(request_: Any) -> None:
    assert refused({"request": request_}).message == "request must be a JSON object"


@pytest.mark.parametrize("tool", [None, 1, [], {}, "", "A" * 201])
def test_r20_the_tool_id_is_a_string_of_sensible_length(tool: Any) -> None:
    assert "tool_id" in refused({"request": {"tool_id": tool}}).message


def test_r20_the_tool_id_is_required() -> None:
    assert refused({"request": {}}).message == "tool_id is missing"


@pytest.mark.parametrize("given", [None, [], "a=1", 1, True])
def test_r20_r26_the_input_is_an_object_if_present(given: Any) -> None:
    assert refused({"request": {"tool_id": "A.B", "input": given}}).message == "input must be a JSON object"


def test_r26_the_input_may_be_left_out() -> None:
    assert understood({"tool_id": "A.B"}).arguments == {}


def test_r20_unknown_keys_of_the_request_are_refused_by_name() -> None:
    refusal = refused({"request": {"tool_id": "A.B", "inputs": {}, "bogus": 1}})
    assert refusal.message == "request has unknown keys: 'bogus', 'inputs'"


def test_r20_very_many_unknown_keys_do_not_make_a_long_message() -> None:
    refusal = refused({"request": {f"{number}" * 500: 1 for number in range(100, 200)}})
    assert len(refusal.message) < 1000
    assert refusal.message.endswith("and 90 more")


def test_r23_r24_a_given_call_id_goes_with_the_request_and_with_refusals_after_it() -> None:
    assert understood({"tool_id": "A.B", "call_id": "my id"}).call_id == "my id"
    refusal = refused({"request": {"call_id": "mine", "tool_id": 7}})
    assert from_refusal(refusal).body["call_id"] == "mine"


@pytest.mark.parametrize("call_id", [None, 1, "", "x" * 256, "a\nb", "a\x7f", "\x85", [], {"a": 1}])
def test_r23_a_call_id_is_a_short_line_of_text(call_id: Any) -> None:
    refusal = refused({"request": {"tool_id": "A.B", "call_id": call_id}})
    assert refusal.message.startswith("call_id must")
    assert "call_id" not in from_refusal(refusal).body


@pytest.mark.parametrize("call_id", ["x" * 255, "ключ 🔑", "a\u00a0b"])
def test_r23_any_printable_text_is_a_call_id(call_id: str) -> None:
    assert understood({"tool_id": "A.B", "call_id": call_id}).call_id == call_id


def test_r22_without_a_call_id_none_is_invented_by_the_door() -> None:
    assert understood({"tool_id": "A.B"}).call_id is None


def test_r25_a_trace_id_is_optional_text() -> None:
    assert understood({"tool_id": "A.B"}).trace_id == ""
    assert understood({"tool_id": "A.B", "trace_id": "t" * 128}).trace_id == "t" * 128


@pytest.mark.parametrize("trace_id", [None, 5, "t" * 129, "a\tb"])
def test_r25_other_trace_ids_are_refused(trace_id: Any) -> None:
    assert refused({"request": {"tool_id": "A.B", "trace_id": trace_id}}).message.startswith("trace_id must")


def test_r53_r54_r55_what_the_caller_brings_is_read_by_id() -> None:
    context = understood(
        {
            "tool_id": "A.B",
            "context": {
                "authorization": [{"id": "google", "token": "t1", "note": "open"}, {"id": "x", "token": "t2"}],
                "secrets": [{"id": "KEY", "value": ""}],
                "user_id": "u@example.com",
                "anything": {"else": True},
            },
        }
    ).context
    assert context.authorization == {"google": "t1", "x": "t2"}
    assert context.secrets == {"KEY": ""}
    assert context.user_id == "u@example.com"
    assert "t1" not in repr(context)


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (None, "context must be a JSON object"),
        ([], "context must be a JSON object"),
        ({"authorization": {}}, "context.authorization must be an array"),
        ({"authorization": None}, "context.authorization must be an array"),
        ({"authorization": ["t"]}, "context.authorization[0] must be a JSON object"),
        ({"authorization": [{"token": "t"}]}, "context.authorization[0].id must be a string"),
        ({"authorization": [{"id": "a"}]}, "context.authorization[0].token must be a string"),
        ({"authorization": [{"id": "a", "token": 1}]}, "context.authorization[0].token must be a string"),
        ({"authorization": [{"id": "a", "token": "1"}] * 2}, "context.authorization names the same id twice"),
        ({"secrets": [{"id": "a", "value": "1"}, {"id": "", "value": "1"}]}, "context.secrets[1].id must have 1"),
        ({"secrets": [{"id": "a", "value": None}]}, "context.secrets[0].value must be a string"),
        ({"secrets": [{"id": "a", "value": "1"}, {"id": "a", "value": "2"}]}, "context.secrets names the same id"),
        ({"user_id": 1}, "context.user_id must be a string"),
        ({"user_id": "u" * 256}, "context.user_id must have"),
    ],
)
def test_r53_r54_r55_a_malformed_context_is_refused_with_its_place(context: Any, said: str) -> None:
    assert refused({"request": {"tool_id": "A.B", "context": context}}).message.startswith(said)


def test_a_refusal_never_echoes_what_a_secret_was() -> None:
    refusal = refused({"request": {"tool_id": "A.B", "context": {"secrets": [{"id": "a", "value": ["hunter2"]}]}}})
    assert "hunter2" not in str(from_refusal(refusal).body)


@pytest.mark.parametrize("value", [15, 0, "", False, [1, 2], {"a": None}, 1.5, "text"])
def test_r21_r27_r28_a_value_is_told_in_a_wrapped_result(value: Any) -> None:
    answer = from_outcome(outcome(value=value, duration_ms=2))
    must_be("CallToolResult", answer.body)
    assert answer.status == 200
    assert answer.body == {
        "$schema": "urn:oxp:1.0",
        "result": {"call_id": "c-1", "success": True, "duration": 2, "value": value},
    }


def test_r27_an_unknown_duration_is_left_out() -> None:
    assert "duration" not in from_outcome(outcome(value=1)).body["result"]


def test_r30_a_void_tool_answers_null() -> None:
    answer = from_outcome(outcome())
    must_be("CallToolResult", answer.body)
    assert answer.body["result"]["value"] is None


def test_r28_content_blocks_are_the_value() -> None:
    block = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    answer = from_outcome(outcome(content=(block,)))
    must_be("CallToolResult", answer.body)
    assert answer.body["result"]["value"] == [block]


def test_r29_r43_a_tools_failure_is_200_with_an_error_and_no_value() -> None:
    answer = from_outcome(
        outcome(
            failure(
                ErrorCode.EXECUTION_FAILED,
                developer_message="why",
                can_retry=True,
                retry_after_ms=500,
                additional_prompt_content="try 42",
            ),
            duration_ms=60.5,
        )
    )
    must_be("CallToolResult", answer.body)
    assert answer.status == 200
    assert answer.body["result"] == {
        "call_id": "c-1",
        "success": False,
        "duration": 60.5,
        "error": {
            "message": "No",
            "developer_message": "why",
            "can_retry": True,
            "additional_prompt_content": "try 42",
            "retry_after_ms": 500,
        },
    }


def test_r44_can_retry_is_always_said() -> None:
    assert from_outcome(outcome(failure(ErrorCode.TIMEOUT))).body["result"]["error"]["can_retry"] is False


@pytest.mark.parametrize("code", list(ErrorCode))
def test_r36_r37_r41_r43_every_failure_is_one_of_the_three_kinds(code: ErrorCode) -> None:
    answer = from_outcome(outcome(failure(code, parameter_errors={"a": "Must be a number"})))
    expected = {Stage.BEFORE: 400, Stage.INPUT: 422, Stage.TOOL: 200}[code.stage]
    if code is ErrorCode.INTERNAL:
        expected = 500
    if code is ErrorCode.UNAUTHENTICATED:
        expected = 401
    assert answer.status == expected
    if code.stage is Stage.TOOL:
        must_be("CallToolResult", answer.body)
        return
    must_be("ValidationErrorResponse" if code.stage is Stage.INPUT else "ServerErrorResponse", answer.body)
    assert answer.body["code"] == code.wire
    assert answer.body["call_id"] == "c-1"
    assert "result" not in answer.body


def test_r38_a_server_error_has_both_messages_and_what_is_missing() -> None:
    missing = {"authorization": [{"id": "google", "url": "https://x/", "check_url": "https://y/"}], "user_id": True}
    told = failure(ErrorCode.MISSING_REQUIREMENT, developer_message="Send …", missing_requirements=missing)
    answer = from_outcome(outcome(told))
    must_be("ServerErrorResponse", answer.body)
    assert answer.body["developer_message"] == "Send …"
    assert answer.body["missing_requirements"] == missing


def test_r38_a_call_that_waits_for_a_person_hands_over_a_link() -> None:
    missing = {"authorization": [{"id": "approval", "url": "https://x/1", "check_url": "https://x/1/check"}]}
    told = failure(ErrorCode.APPROVAL_PENDING, missing_requirements=missing, retry_after_ms=5000)
    answer = from_outcome(outcome(told))
    must_be("ServerErrorResponse", answer.body)
    assert (answer.status, answer.body["code"]) == (400, "approval_pending")
    assert answer.body["missing_requirements"] == missing
    assert answer.headers["Retry-After"] == "5"


def test_r42_parameter_errors_are_told_by_name() -> None:
    answer = from_outcome(outcome(failure(ErrorCode.INVALID_INPUT, parameter_errors={"b": "Must be a number"})))
    must_be("ValidationErrorResponse", answer.body)
    assert answer.body["parameter_errors"] == {"b": "Must be a number"}


def test_r24_a_call_that_still_runs_asks_to_come_again_with_its_call_id() -> None:
    answer = from_outcome(outcome(failure(ErrorCode.STILL_RUNNING, retry_after_ms=1500, can_retry=True)))
    assert (answer.status, answer.body["code"], answer.body["call_id"]) == (400, "still_running", "c-1")
    assert answer.headers["Retry-After"] == "2"


def test_r37_a_server_that_is_away_says_400_and_when_to_come_back() -> None:
    answer = from_refusal(Refusal("unavailable", "Away", status=503, headers={"Retry-After": "2"}))
    must_be("ServerErrorResponse", answer.body)
    assert (answer.status, answer.body["code"], answer.headers["Retry-After"]) == (400, "unavailable", "2")


def test_a_deprecated_version_says_so_beside_the_result() -> None:
    answer = from_outcome(outcome(value=1, warnings=("A.B@1.0.0 is deprecated",)))
    must_be("CallToolResult", answer.body)
    assert answer.body["warnings"] == ["A.B@1.0.0 is deprecated"]
    assert answer.headers["Deprecation"] == "true"


@pytest.mark.parametrize(("given", "said"), [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (60_000, "60")])
def test_a_retry_is_never_announced_too_early(given: int, said: str) -> None:
    assert seconds(given) == said
