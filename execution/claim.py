"""Claim: the right to run one attempt of one call, in one process's hands."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from audit.needles import Needles
from audit.redaction import Redactor
from audit.trail import Chain
from execution import secretsinforce
from execution.credentials import Unseen
from execution.messages import NO_TERMS, CallContext, Terms
from execution.models import State
from execution.runtimes.hosts import Cancel
from policy.sealedbox import seal, unseal
from registry.toolspec import ToolSpec

PLAIN = Redactor()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an attempt needs, and the fence that every write about it must show."""

    id: UUID
    call_id: str
    fence: int
    agent: str
    tool: ToolSpec
    arguments: Mapping[str, Any]
    context: CallContext
    trace_id: str
    where: str
    chain: Chain
    door: str = ""  # by which the call came
    actor: str = ""  # who runs it, where that is neither a worker nor the web process
    held: State = State.RUNNING  # where the call must still be when this claim's end is written
    needles: Unseen = field(default_factory=Unseen)  # what was resolved for this attempt: no text of it may be told
    cancel: Cancel = field(default_factory=Cancel)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.perf_counter)
    is_hurried: bool = False  # the caller leaves the tool less time than it may have; to overrun it is no fault then

    def __post_init__(self) -> None:
        """From here on the tool has no more time and attempts than its caller wants it to have."""
        tool = on_terms(self.tool, self.context.terms)
        object.__setattr__(self, "is_hurried", self.is_hurried or tool.runtime.timeout < self.tool.runtime.timeout)
        object.__setattr__(self, "tool", tool)

    @property
    def redactor(self) -> Redactor:
        """For what the tool told: nobody but its caller sees any secret in it, and its caller none of this call's."""
        return redactor_for(self.context, self.needles, secretsinforce.needles())

    @property
    def holds_secrets(self) -> bool:
        return bool(self.needles or self.context.secrets or self.context.authorization)

    def __repr__(self) -> str:
        return f"Claim({self.tool.tool_id} {self.id}, fence {self.fence})"

    def elapsed_ms(self) -> float:
        return round((time.perf_counter() - self.started) * 1000, 3)


def redactor_for(
    context: CallContext, resolved: Mapping[str, str] | None = None, others: Needles | None = None
) -> Redactor:
    """What the caller brought in secret and what was resolved for the tool are needles; most calls have none."""
    if not context.secrets and not context.authorization and not resolved:
        return PLAIN if others is None else Redactor(others=others)
    brought = {f"secret:{name}": value for name, value in context.secrets.items()}
    brought |= {f"authorization:{name}": token for name, token in context.authorization.items()}
    return Redactor(brought | dict(resolved or {}), others)


def seal_what_runs(call: UUID, arguments: Mapping[str, Any], context: CallContext) -> bytes:
    """Arguments and caller-brought context exactly as given, readable only with a key outside the database."""
    parts = [arguments, dict(context.authorization), dict(context.secrets), context.user_id]
    if context.terms is not NO_TERMS:
        parts.append(asdict(context.terms))
    return seal(orjson.dumps(parts), bound_to=box(call))


def unseal_what_runs(call: UUID, sealed: bytes | memoryview) -> tuple[Mapping[str, Any], CallContext]:
    arguments, authorization, secrets, user_id, *rest = orjson.loads(unseal(sealed, bound_to=box(call)))
    terms = Terms(**rest[0]) if rest else NO_TERMS
    return arguments, CallContext(authorization=authorization, secrets=secrets, user_id=user_id, terms=terms)


def on_terms(tool: ToolSpec, terms: Terms) -> ToolSpec:
    """The tool with no more time and attempts than its caller wants it to have; never with more than it declares."""
    if terms is NO_TERMS:
        return tool
    runtime = tool.runtime
    timeout = runtime.timeout if terms.timeout is None else min(runtime.timeout, terms.timeout)
    most = runtime.retry.max_attempts
    attempts = most if terms.max_attempts is None else min(most, terms.max_attempts)
    if (timeout, attempts) == (runtime.timeout, most):
        return tool
    return replace(tool, runtime=replace(runtime, timeout=timeout, retry=replace(runtime.retry, max_attempts=attempts)))


def seal_answer(call: UUID, answer: bytes) -> bytes:
    return seal(answer, bound_to=answer_box(call))


def unseal_answer(call: UUID, sealed: bytes | memoryview) -> bytes:
    return unseal(sealed, bound_to=answer_box(call))


def box(call: UUID) -> str:
    """The name of the place that what runs is sealed for."""
    return f"execution.call:{call}"


def answer_box(call: UUID) -> str:
    """The name of the place that an exact answer is sealed for."""
    return f"execution.call:{call}:answer"
