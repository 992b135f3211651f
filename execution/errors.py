"""The one table of failures: every way a call can end badly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from execution.traffic import NO_TRAFFIC, Traffic


class Stage(Enum):
    """How far a call had come when it failed; the doors tell these three apart."""

    BEFORE = "before"  # refused before the tool was called
    INPUT = "input"  # the input does not fit the tool's schema
    TOOL = "tool"  # the tool was called, and this is what came of it


class Row(NamedTuple):
    """One line of the table; each door reads the column it needs."""

    wire: str
    reason: str
    stage: Stage
    http: int
    retryable: bool


class ErrorCode(Enum):
    """Every way a call can end badly. Doors read the column they need."""

    # fmt: off                wire name                   contract reason                   stage         http retryable
    INVALID_REQUEST = Row("invalid_request", "tool_invalid_request", Stage.BEFORE, 400, False)
    UNAUTHENTICATED = Row("unauthenticated", "tool_unauthenticated", Stage.BEFORE, 401, False)
    UNSUPPORTED_VERSION = Row("unsupported_version", "tool_unsupported_version", Stage.BEFORE, 400, False)
    UNSUPPORTED_TOOL = Row("unsupported_tool", "tool_unsupported", Stage.BEFORE, 404, False)
    INVALID_INPUT = Row("invalid_input", "tool_invalid_input", Stage.INPUT, 422, False)
    CALL_ID_REUSED = Row("call_id_reused", "tool_call_id_reused", Stage.INPUT, 422, False)
    MISSING_REQUIREMENT = Row("missing_requirements", "tool_missing_requirements", Stage.BEFORE, 400, False)
    PERMISSION_DENIED = Row("permission_denied", "tool_permission_denied", Stage.BEFORE, 403, False)
    APPROVAL_PENDING = Row("approval_pending", "tool_approval_pending", Stage.BEFORE, 202, False)
    APPROVAL_DENIED = Row("approval_denied", "tool_approval_denied", Stage.BEFORE, 403, False)
    APPROVAL_TIMEOUT = Row("approval_timeout", "tool_approval_timeout", Stage.BEFORE, 408, False)
    RATE_LIMITED = Row("rate_limited", "tool_rate_limited", Stage.BEFORE, 429, True)
    STILL_RUNNING = Row("still_running", "tool_still_running", Stage.BEFORE, 202, True)
    EXPIRED = Row("expired", "tool_call_expired", Stage.BEFORE, 504, True)
    UNAVAILABLE = Row("unavailable", "tool_unavailable", Stage.BEFORE, 503, True)
    RUNTIME_INVALID = Row("runtime_policy_invalid", "tool_runtime_policy_invalid", Stage.TOOL, 422, False)
    ISOLATION_MISSING = Row("isolation_unavailable", "tool_isolation_unavailable", Stage.TOOL, 503, False)
    SECRET_UNRESOLVED = Row("secret_resolution_failed", "tool_secret_resolution_failed", Stage.TOOL, 424, False)
    EXECUTION_FAILED = Row("execution_failed", "tool_backend_failure", Stage.TOOL, 502, False)
    AUTH_INVALID = Row("auth_invalid", "tool_auth_invalid", Stage.TOOL, 502, False)
    AUTH_FORBIDDEN = Row("auth_forbidden", "tool_auth_forbidden", Stage.TOOL, 502, False)
    AUTH_EXPIRED = Row("auth_expired", "tool_auth_expired", Stage.TOOL, 502, True)
    TIMEOUT = Row("timeout", "tool_execution_timeout", Stage.TOOL, 504, True)
    CANCELED = Row("canceled", "tool_execution_canceled", Stage.TOOL, 499, False)
    OUTCOME_UNKNOWN = Row("outcome_unknown", "tool_outcome_unknown", Stage.TOOL, 502, False)
    INTERNAL = Row("internal", "tool_internal_error", Stage.BEFORE, 500, True)
    # fmt: on

    @property
    def wire(self) -> str:
        return self.value.wire

    @property
    def stage(self) -> Stage:
        return self.value.stage

    @property
    def http(self) -> int:
        return self.value.http

    @classmethod
    def from_wire(cls, wire: str) -> "ErrorCode":
        return _BY_WIRE[wire]


_BY_WIRE = {code.value.wire: code for code in ErrorCode}
_DENIALS = frozenset({ErrorCode.PERMISSION_DENIED, ErrorCode.APPROVAL_DENIED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a caller is told about a call that did not succeed. Holds redacted text only."""

    code: ErrorCode
    message: str
    developer_message: str = ""
    can_retry: bool = False
    is_final: bool = False  # another attempt is of no use, although one usually is after this code
    retry_after_ms: int | None = None
    additional_prompt_content: str = ""
    parameter_errors: Mapping[str, str] = field(default_factory=dict)  # what is wrong with the whole has no name
    missing_requirements: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_denial(self) -> bool:
        """Whether someone said no: policy, a person, or the tool itself, in its own words."""
        return self.code in _DENIALS or self.details.get("status") == "denied"

    def by_parameter(self, whole: str = "input") -> dict[str, str]:
        """What is wrong with which parameter, all of them under a name; a parameter may have the name of the whole."""
        told = {name: why for name, why in self.parameter_errors.items() if name}
        if (why := self.parameter_errors.get("")) is not None:
            told[whole] = f"{why}; {told[whole]}" if whole in told else why
        return told

    def as_json(self) -> dict[str, Any]:
        """The stored form; empty fields are left out, `from_json` reads it back."""
        told: dict[str, Any] = {"code": self.code.wire, "message": self.message, "can_retry": self.can_retry}
        if self.is_final:
            told["is_final"] = True
        for name in _OPTIONAL:
            value = getattr(self, name)
            if value is not None and value != "" and value != {}:
                told[name] = value
        return told

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Failure":
        known = {name: stored[name] for name in _OPTIONAL if name in stored}
        return cls(
            code=ErrorCode.from_wire(stored["code"]),
            message=stored["message"],
            can_retry=stored.get("can_retry", False),
            is_final=stored.get("is_final", False),
            **known,
        )


_OPTIONAL = (
    "developer_message",
    "retry_after_ms",
    "additional_prompt_content",
    "parameter_errors",
    "missing_requirements",
    "details",
)


class CallError(Exception):
    """Raised inside the pipeline and by runtimes; the pipeline turns it into the call's end."""

    def __init__(
        self, code: ErrorCode, message: str, *, is_sent: bool = True, traffic: Traffic = NO_TRAFFIC, **more: Any
    ) -> None:
        """`is_sent` is False only if the tool provably never got the call."""
        super().__init__(message)
        self.is_sent = is_sent
        self.traffic = traffic
        self.failure = Failure(code=code, message=message, **more)

    @property
    def code(self) -> ErrorCode:
        return self.failure.code
