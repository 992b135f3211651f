"""The external runtime: Tool Contract v1 both ways, and what becomes of each way to break it."""

from typing import Any

import pytest

from execution.credentials import Credentials
from execution.errors import CallError, ErrorCode
from execution.runtimes.external import ExternalRuntime
from tests.runtimes.webkit import TRACEPARENT, invocation, server
from tests.services.toolserver import ToolServer, answer, as_json

__all__ = ["server"]

ERROR = {
    "code": "execution_failed",
    "reason": "tool_backend_failure",
    "retryable": False,
    "message": "No",
    "details": {},
}


def run(server: ToolServer, **fields: Any) -> Any:
    return ExternalRuntime().run(invocation("external", f"{server.url}/", **fields))


def failed(server: ToolServer, **fields: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        run(server, **fields)
    return caught.value


def test_33_35_the_whole_request_goes_out_with_the_callers_ids_and_no_secret(server: ToolServer) -> None:
    server.answers["/"] = as_json({"status": "ok", "output": {"result": 1}})
    credentials = Credentials(
        profile="oauth2_client_credentials",
        secret_ref="search-key",
        scopes=("search.read",),
        headers={"Authorization": "Bearer top-secret-token"},
        environment={"TOOL_AUTH_BEARER": "top-secret-token"},
        needles={"search-key": "top-secret-token"},
    )
    run(server, credentials=credentials, trace_id="trace-abc", traceparent=TRACEPARENT, secrets={"s": "brought-secret"})
    (asked,) = server.asked
    assert asked.json == {
        "tool_contract_version": "v1",
        "request_id": "call-1",
        "namespace": "default",
        "agent": "demo",
        "attempt": 2,
        "tool": {
            "name": "Lab_Thing",
            "operation": "invoke",
            "capabilities": ["data.read", "network.read"],
            "risk_level": "medium",
        },
        "input": {"query": "äöü", "n": 1},
        "input_raw": "",
        "runtime": {
            "mode": "external",
            "timeout_ms": 5000,
            "max_attempts": 3,
            "backoff": "exponential",
            "max_backoff_ms": 20000,
            "jitter": True,
        },
        "auth": {"profile": "oauth2_client_credentials", "secret_ref": "search-key", "scopes": ["search.read"]},
        "trace": {"trace_id": "trace-abc", "span_id": "b7ad6b7169203331"},
    }
    assert asked.headers["X-Tool-Contract-Version"] == "v1"
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["Idempotency-Key"] == "call-1"
    assert asked.headers["Authorization"] == "Bearer top-secret-token"
    assert b"secret-token" not in asked.body
    assert b"brought" not in asked.body


def test_35_a_trace_that_is_ours_alone_is_named_too_and_absent_auth_is_absent(server: ToolServer) -> None:
    server.answers["/"] = as_json({"status": "ok", "output": {}})
    run(server, traceparent=TRACEPARENT)
    envelope = server.asked[0].json
    assert envelope["trace"] == {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}
    assert "auth" not in envelope


@pytest.mark.parametrize(
    ("response", "schema", "value"),
    [
        ({"output": {"result": "text"}}, {}, "text"),
        ({"output": {"result": {"a": 1}}}, {}, {"a": 1}),
        ({"output": {"summary": "…", "n": 1}}, {}, {"summary": "…", "n": 1}),
        ({"output": {"result": 1}}, {"type": "object", "properties": {"result": {}}}, {"result": 1}),
        ({"output": {"result": 1, "more": 2}}, {}, {"result": 1, "more": 2}),
        ({}, {}, None),
        ({"output": {}}, {}, {}),
        ({"error": None, "output": {"result": None}}, {}, None),
        ({"request_id": "call-1", "tool_contract_version": " V1 "}, {}, None),
        ({"request_id": "", "usage": {"attempt": 0}, "trace": {}}, {}, None),
    ],
)
def test_7_11_output_of_any_shape_comes_back(
    server: ToolServer, response: dict[str, Any], schema: Any, value: Any
) -> None:
    server.answers["/"] = as_json({"status": "ok", **response})
    result = run(server, output_schema=schema)
    assert result.value == value
    assert result.traffic.status == "200"


@pytest.mark.parametrize(
    "response",
    [
        {},
        {"output": {"result": 1}},
        {"status": ""},
        {"status": "OK"},
        {"status": "pending"},
        {"status": ["ok"]},
        {"status": None},
        {"status": "ok", "error": ERROR},
        {"status": "ok", "request_id": "another"},
        {"status": "ok", "request_id": 7},
        {"status": "ok", "tool_contract_version": "v2"},
        {"status": "ok", "tool_contract_version": 1},
        {"status": "error"},
        {"status": "error", "error": None},
        {"status": "denied", "error": "no"},
        [{"status": "ok"}],
        "ok",
        None,
    ],
)
def test_9_12_34_36_a_response_that_breaks_the_contract_is_a_failure_for_good(
    server: ToolServer, response: Any
) -> None:
    server.answers["/"] = as_json(response)
    error = failed(server)
    assert (error.code, error.failure.can_retry, error.is_sent) == (ErrorCode.EXECUTION_FAILED, False, True)


@pytest.mark.parametrize(
    "reply", [answer("hello"), answer("<html>"), answer(""), answer("{", kind="application/json"), answer(b"\xff")]
)
def test_33_what_is_not_json_may_be_the_next_time(server: ToolServer, reply: Any) -> None:
    server.answers["/"] = reply
    error = failed(server)
    assert (error.code, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True)


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        ("invalid_input", ErrorCode.INVALID_INPUT),
        ("unsupported_tool", ErrorCode.UNSUPPORTED_TOOL),
        ("runtime_policy_invalid", ErrorCode.RUNTIME_INVALID),
        ("isolation_unavailable", ErrorCode.ISOLATION_MISSING),
        ("permission_denied", ErrorCode.PERMISSION_DENIED),
        ("secret_resolution_failed", ErrorCode.SECRET_UNRESOLVED),
        ("timeout", ErrorCode.TIMEOUT),
        ("canceled", ErrorCode.CANCELED),
        ("execution_failed", ErrorCode.EXECUTION_FAILED),
        ("auth_invalid", ErrorCode.AUTH_INVALID),
        ("auth_forbidden", ErrorCode.AUTH_FORBIDDEN),
        ("auth_expired", ErrorCode.AUTH_EXPIRED),
    ],
)
def test_12_a_canonical_code_is_our_own(server: ToolServer, wire: str, code: ErrorCode) -> None:
    server.answers["/"] = as_json({"status": "error", "error": {**ERROR, "code": wire, "reason": code.value.reason}})
    error = failed(server)
    assert (error.code, error.failure.message, error.failure.details) == (code, "No", {})


@pytest.mark.parametrize("wire", ["rate_limited", "unauthenticated", "approval_pending", "internal", "quota", ""])
def test_12_any_other_code_is_kept_but_says_nothing_in_our_name(server: ToolServer, wire: str) -> None:
    told = {**ERROR, "code": wire, "reason": "theirs", "retryable": True, "details": {"timeout_ms": 15000}}
    server.answers["/"] = as_json({"status": "error", "error": told})
    error = failed(server)
    kept = {"code": wire} if wire else {}
    assert (error.code, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True)
    assert error.failure.details == {"timeout_ms": 15000, "reason": "theirs", **kept}


def test_16_a_denial_says_so(server: ToolServer) -> None:
    told = {**ERROR, "code": "permission_denied", "reason": "tool_permission_denied", "details": {"rule": "r1"}}
    server.answers["/"] = as_json({"status": "denied", "error": told})
    error = failed(server)
    assert (error.code, error.failure.can_retry) == (ErrorCode.PERMISSION_DENIED, False)
    assert error.failure.details == {"rule": "r1", "status": "denied"}


@pytest.mark.parametrize(
    ("told", "can_retry", "after"),
    [
        ({}, False, None),
        ({"retryable": "true"}, False, None),
        ({"retryable": True, "details": {"retry_after_ms": 5}}, True, 5),
        ({"retryable": True, "details": {"retry_after_ms": -5}}, True, None),
        ({"retryable": True, "details": {"retry_after_ms": True}}, True, None),
        ({"details": "none", "code": 7, "message": None}, False, None),
        ({"details": {"x": "y" * 20_000}}, False, None),
    ],
)
def test_12_what_an_error_leaves_out_or_spoils_has_a_default(
    server: ToolServer, told: dict[str, Any], can_retry: bool, after: int | None
) -> None:
    server.answers["/"] = as_json({"status": "error", "error": told})
    failure = failed(server).failure
    assert (failure.code, failure.can_retry, failure.retry_after_ms) == (ErrorCode.EXECUTION_FAILED, can_retry, after)
    assert failure.message == "The tool failed without saying why"
    assert len(repr(failure.details)) < 200


@pytest.mark.parametrize(("status", "code"), [(401, ErrorCode.AUTH_INVALID), (503, ErrorCode.EXECUTION_FAILED)])
def test_33_a_status_that_says_no_is_believed_before_the_body(server: ToolServer, status: int, code: ErrorCode) -> None:
    server.answers["/"] = as_json({"status": "ok", "output": {"result": 1}}, status)
    error = failed(server)
    assert (error.code, error.failure.details["http_status"]) == (code, str(status))


def test_a34_placet_does_not_call_itself(server: ToolServer, settings: Any) -> None:
    settings.PLACET_URL = server.url
    error = failed(server)
    assert (error.code, error.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert server.asked == []
