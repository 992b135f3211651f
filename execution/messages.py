"""The frozen shapes every door and the pipeline speak: what was asked, what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from execution.errors import Failure
from policy.caller import Caller
from registry.toolref import ToolRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On which terms a caller asks: less time and fewer attempts than the tool may have, and its own names for it."""

    timeout: float | None = None  # seconds for each attempt
    max_attempts: int | None = None
    task_id: str = ""
    namespace: str = ""


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What the caller brought for the tool: tokens and secrets by id, on whose behalf it asks, and on which terms."""

    authorization: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    user_id: str = ""
    terms: Terms = NO_TERMS

    def __repr__(self) -> str:
        return f"CallContext(authorization={sorted(self.authorization)}, secrets={sorted(self.secrets)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What the caller says of the tool it asks for; the registry must agree, and what is empty was not said."""

    operation: str = ""
    risk: str = ""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorship:
    """Which arguments a model wrote and which the program around it; a door that cannot tell says nothing."""

    model: frozenset[str]
    program: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """One call as a door understood it."""

    caller: Caller
    door: str  # "oxp", "otc", "native", ...
    tool_text: str  # the tool as the caller wrote it
    tool_ref: ToolRef | None  # None: it did not parse
    arguments: Mapping[str, Any]
    context: CallContext = CallContext()
    call_id: str | None = None  # None: one is made
    trace_id: str = ""
    span_id: str = ""  # the caller's own span; told back, never stored
    belief: Belief | None = None
    authorship: Authorship | None = None
    id: UUID | None = None  # for a door that listens to the call before it is there; None: one is made
    wait: float = 55.0  # seconds the door holds the caller before it answers "still running"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What a door tells the caller: a result, a failure, or that the call goes on."""

    id: UUID
    call_id: str
    state: str
    tool_id: str  # "Calculator.Add@1.1.0", or what the caller wrote if no tool was found
    value: Any = None
    content: tuple[Mapping[str, Any], ...] = ()  # MCP content blocks, when the tool returned content
    failure: Failure | None = None
    duration_ms: float | None = None
    warnings: tuple[str, ...] = ()  # e.g. that the version is deprecated
    attempt: int = 0  # which run ended the call, or is under way; 0: it never ran
    trace_id: str = ""
    span_id: str = ""

    @property
    def is_success(self) -> bool:
        return self.failure is None
