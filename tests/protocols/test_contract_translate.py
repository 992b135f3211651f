"""The contract's two translations, without a door: what we say is what our own client of the contract understands."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from execution import envelope
from execution.cancel import Cancel
from execution.errors import CallError, ErrorCode, Failure
from execution.messages import CallOutcome
from execution.protocols.dialect import Refusal
from execution.protocols.tool_contract.translate import from_outcome, from_refusal, to_request
from execution.runtimes.base import Invocation
from policy.caller import Caller
from registry.risk import RiskLevel
from registry.toolref import ToolRef
from registry.toolspec import RetrySpec, RuntimeSpec, ToolSpec

CALLER = Caller(agent_id=1, name="robot", user_id=1, credential="key:1")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("tool_contract_version", "request_id", "tool", "input", "input_raw", "trace")


def tool(output: dict[str, Any] | None) -> ToolSpec:
    runtime = RuntimeSpec(type="external", dispatch="queue", timeout=5.0, retry=RetrySpec(max_attempts=3), options={})
    return ToolSpec(
        id=1,
        toolkit_id=1,
        toolkit="Mail",
        toolkit_title="",
        toolkit_description="",
        name="Send",
        version="1.0.0",
        state="published",
        tool_id="Mail.Send@1.0.0",
        flat_name="Mail_Send",
        title="",
        description="",
        digest="",
        version_digest="",
        risk=RiskLevel.MEDIUM,
        capabilities=("mail.send",),
        idempotency="keyed",
        input_schema={},
        output_schema=output,
        non_inferrable=(),
        annotations={},
        requirements={},
        runtime=runtime,
        auth={},
        edited_by_id=None,
    )


def invocation(output: dict[str, Any] | None = None) -> Invocation:
    return Invocation(
        tool=tool(output if output is not None else {}),
        arguments={"to": "ana", "n": [1, {"deep": None}]},
        call_id="req-1",
        attempt=2,
        agent="robot",
        trace_id="t-1",
        cancel=Cancel(),
        on_news=lambda news: None,
    )


def outcome(**told: Any) -> CallOutcome:
    known = {"id": uuid4(), "call_id": "req-1", "state": "succeeded", "tool_id": "Mail.Send@1.0.0"}
    return CallOutcome(**{**known, **told})


def test_what_our_own_client_sends_is_understood() -> None:
    asked = invocation()
    request = to_request(envelope.request_envelope(asked), CALLER)
    assert request.tool_ref == ToolRef("", "Mail_Send")
    assert (request.call_id, request.trace_id) == ("req-1", "t-1")
    assert request.arguments == asked.arguments
    assert request.belief is not None
    assert (request.belief.operation, request.belief.risk) == ("invoke", "medium")
    assert request.belief.capabilities == ("mail.send",)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (5, {"type": "integer"}),
        ("text", {"type": "string"}),
        ([1, 2], {"type": "array"}),
        ({"sent": True}, {"type": "object"}),
        ({"result": 1}, {"type": "object", "properties": {"result": {}}}),
        (False, {"type": "boolean"}),
    ],
)
def test_what_we_answer_is_understood_by_our_own_client(value: Any, schema: dict[str, Any]) -> None:
    told = from_outcome(outcome(value=value, attempt=3, duration_ms=0.2, trace_id="t", span_id="s"))
    assert envelope.result_of(told, invocation(schema)).value == value
    assert told["usage"] == {"duration_ms": 1, "attempt": 3}
    assert told["trace"] == {"trace_id": "t", "span_id": "s"}


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_failure_is_a_whole_envelope(code: ErrorCode) -> None:
    failure = Failure(code=code, message="It failed", details={"a": 1}, retry_after_ms=1500)
    told = from_outcome(outcome(failure=failure))
    assert told["status"] == ("denied" if code.http == 403 else "error")
    assert told["error"].keys() == {"code", "reason", "retryable", "message", "details"}
    assert "output" not in told
    with pytest.raises(CallError) as raised:
        envelope.result_of(told, invocation())
    assert raised.value.failure.can_retry == told["error"]["retryable"]
    assert raised.value.failure.retry_after_ms == 1500


@given(body=JSON | st.dictionaries(st.sampled_from(FIELDS), JSON | st.just({"name": "A_B"}), max_size=6))
def test_any_json_at_all_is_a_request_or_a_refusal_in_an_envelope(body: Any) -> None:
    try:
        request = to_request(body, CALLER)
    except Refusal as refusal:
        told = from_refusal(refusal)
        assert told["status"] == "error"
        assert told["error"]["code"] == "invalid_input"
        assert told["error"]["retryable"] is False
    else:
        assert request.call_id
