"""The OTC draft's two translations, without a database."""

from typing import Any
from uuid import uuid4

import pytest

from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome
from execution.protocols.dialect import Refusal
from execution.protocols.otc.translate import from_outcome, from_refusal, to_request, tool_ref
from execution.protocols.otc.version import SCHEMA
from policy.caller import Caller
from registry.toolref import ToolRef

CALLER = Caller(agent_id=1, name="robot", user_id=1, credential="key:abc")


def outcome(failure: Failure | None = None, **more: Any) -> CallOutcome:
    return CallOutcome(id=uuid4(), call_id="c-1", state="x", tool_id="Calculator.Add@1.0.0", failure=failure, **more)


def refused(body: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        to_request(body, CALLER)
    return caught.value


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Calculator.Add", None),
        ("Calculator.Add@latest", None),
        ("Calculator.Add@2", (2, 0, 0)),
        ("Calculator.Add@2.1", (2, 1, 0)),
        ("Calculator.Add@2.1.3", (2, 1, 3)),
    ],
)
def test_the_drafts_versions_are_understood(text: str, version: tuple[int, int, int] | None) -> None:
    assert tool_ref(text) == ToolRef("Calculator", "Add", version)


@pytest.mark.parametrize(
    "text",
    ["Calculator.Add@", "Calculator.Add@Latest", "Calculator.Add@1.0-rc", "Add@latest", "A.B@1.", "A.B@1@latest"],
)
def test_other_versions_mean_no_tool(text: str) -> None:
    assert tool_ref(text) is None


@pytest.mark.parametrize("name", ["input", "inputs"])
def test_arguments_come_under_either_name(name: str) -> None:
    request = to_request({"request": {"tool_id": "A.B", name: {"a": 1}}}, CALLER)
    assert (request.door, request.arguments, request.call_id) == ("otc", {"a": 1}, None)


def test_both_names_may_be_given_if_they_agree() -> None:
    asked = {"tool_id": "A.B", "input": {"a": 1}, "inputs": {"a": 1}}
    assert to_request({"request": asked}, CALLER).arguments == {"a": 1}


def test_both_names_that_differ_are_refused() -> None:
    refusal = refused({"request": {"tool_id": "A.B", "input": {"a": 1}, "inputs": {"a": 2}, "call_id": "mine"}})
    assert refusal.message == "inputs and input are both given and differ"
    assert from_refusal(refusal).body["call_id"] == "mine"


@pytest.mark.parametrize("named", ["urn:oxp:2.0", "https://example.com/", "urn:otc:9"])
def test_another_version_is_refused(named: str) -> None:
    assert refused({"$schema": named, "request": {"tool_id": "A.B"}}).code == "unsupported_version"


def test_unknown_keys_are_refused_by_name() -> None:
    assert refused({"request": {"tool_id": "A.B", "run_id": 1}}).message == "request has unknown keys: 'run_id'"


def test_user_info_is_tolerated() -> None:
    asked = {"tool_id": "A.B", "context": {"user_info": {"name": "x"}, "user_id": "u"}}
    assert to_request({"request": asked}, CALLER).context.user_id == "u"


def test_a_refusal_has_the_bare_form() -> None:
    assert from_refusal(Refusal("malformed", "The body is not JSON")).body == {
        "$schema": SCHEMA,
        "success": False,
        "output": {"error": {"message": "The body is not JSON", "can_retry": False, "code": "malformed"}},
    }


@pytest.mark.parametrize("value", [3, "x", False, {"a": 1}, 0, [1]])
def test_a_value_is_told_in_a_bare_body(value: Any) -> None:
    answer = from_outcome(outcome(value=value, duration_ms=2))
    assert answer.body == {
        "$schema": SCHEMA,
        "call_id": "c-1",
        "duration": 2,
        "success": True,
        "output": {"value": value},
    }


def test_a_void_tool_has_an_empty_output() -> None:
    assert from_outcome(outcome()).body["output"] == {}


def test_content_blocks_are_the_value() -> None:
    block = {"type": "text", "text": "hi"}
    assert from_outcome(outcome(content=(block,))).body["output"] == {"value": [block]}


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_failure_of_a_well_formed_request_is_200_without_success(code: ErrorCode) -> None:
    answer = from_outcome(outcome(Failure(code=code, message="No")))
    assert answer.status == 200
    assert answer.body["success"] is False
    assert answer.body["call_id"] == "c-1"
    assert answer.body["output"]["error"]["message"] == "No"
    # A tool's own failure is told in the tool's words; every other one has its code.
    told = answer.body["output"]["error"].get("code")
    assert told == (None if code is ErrorCode.EXECUTION_FAILED else code.wire)


def test_invalid_input_names_the_parameters_for_the_developer() -> None:
    errors = {"a": "Is required", "b": "Must be a number"}
    answer = from_outcome(outcome(Failure(code=ErrorCode.INVALID_INPUT, message="Bad", parameter_errors=errors)))
    assert answer.body["output"]["error"]["developer_message"] == (
        "Parameter 'a': Is required; Parameter 'b': Must be a number"
    )


def test_a_call_that_waits_for_a_person_can_be_asked_again_and_carries_the_link() -> None:
    missing = {"authorization": [{"id": "approval", "url": "https://placet.example/a/1", "check_url": "https://c/"}]}
    answer = from_outcome(
        outcome(Failure(code=ErrorCode.APPROVAL_PENDING, message="Wait", missing_requirements=missing))
    )
    error = answer.body["output"]["error"]
    assert error["can_retry"] is True
    assert error["retry_after_ms"] == 5000
    assert "https://placet.example/a/1" in error["additional_prompt_content"]
    assert answer.headers["Retry-After"] == "5"


def test_a_deprecated_version_says_so() -> None:
    answer = from_outcome(outcome(value=1, warnings=("old",)))
    assert answer.body["warnings"] == ["old"]
    assert answer.headers["Deprecation"] == "true"
