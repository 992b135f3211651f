"""ToolSpec: all that is known about one published tool, frozen, without a query."""

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from registry import durations
from registry.models import Tool, ToolkitVersion
from registry.risk import RiskLevel
from registry.schemaparts import as_object
from registry.schemas import CompiledSchema, compiled

_BINDING = ("type", "dispatch", "timeout", "retry")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySpec:
    """How often and how patiently a failed attempt is repeated; times in seconds."""

    max_attempts: int = 1
    backoff: float = 0.0
    max_backoff: float = 30.0
    jitter: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSpec:
    """Where and how a tool runs; the options are those of its type, spelled as in the manifest."""

    type: str
    dispatch: str
    timeout: float
    retry: RetrySpec
    options: dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolSpec:
    """One callable tool of one published version."""

    id: int
    toolkit_id: int
    toolkit: str
    toolkit_title: str
    toolkit_description: str
    name: str
    version: str
    state: str
    tool_id: str
    flat_name: str
    title: str
    description: str
    digest: str
    version_digest: str
    risk: RiskLevel
    capabilities: tuple[str, ...]
    idempotency: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    non_inferrable: tuple[str, ...]
    annotations: dict[str, Any]
    requirements: dict[str, Any]
    runtime: RuntimeSpec
    auth: dict[str, Any]
    edited_by_id: int | None
    icons: tuple[dict[str, Any], ...] = ()
    sunset_on: date | None = None  # from this day on a deprecated version may be withdrawn

    @property
    def is_deprecated(self) -> bool:
        return self.state == ToolkitVersion.State.DEPRECATED

    @cached_property
    def input(self) -> CompiledSchema:
        """The input schema, compiled when it is first needed."""
        return compiled(self.input_schema)

    @cached_property
    def output(self) -> CompiledSchema | None:
        """The output schema, compiled when it is first needed; None if the tool has no output."""
        return None if self.output_schema is None else compiled(self.output_schema)


def spec_of(tool: Tool) -> ToolSpec:
    """The spec of a row whose version, toolkit and capabilities are at hand."""
    version = tool.version
    return ToolSpec(
        id=tool.pk,
        toolkit_id=version.toolkit_id,
        toolkit=version.toolkit.name,
        toolkit_title=version.title,
        toolkit_description=version.description,
        name=tool.name,
        version=version.version,
        state=version.state,
        tool_id=tool.tool_id,
        flat_name=tool.flat_name,
        title=tool.title,
        description=tool.description,
        digest=tool.digest,
        version_digest=version.digest,
        risk=RiskLevel(tool.risk),
        capabilities=tuple(sorted(capability.name for capability in tool.capabilities.all())),
        idempotency=tool.idempotency,
        input_schema=tool.input_schema,
        output_schema=as_object(tool.output_schema),
        non_inferrable=tuple(tool.non_inferrable),
        annotations=tool.annotations,
        requirements=tool.requirements,
        runtime=runtime_of(tool.runtime),
        auth=tool.auth,
        edited_by_id=version.edited_by_id,
        icons=tuple(tool.icons or ()),
        sunset_on=version.sunset_on,
    )


def runtime_of(stored: dict[str, Any]) -> RuntimeSpec:
    """A stored runtime binding, its durations in seconds."""
    retry = stored["retry"]
    return RuntimeSpec(
        type=stored["type"],
        dispatch=stored["dispatch"],
        timeout=durations.seconds(stored["timeout"]),
        retry=RetrySpec(
            max_attempts=retry["maxAttempts"],
            backoff=durations.seconds(retry["backoff"]),
            max_backoff=durations.seconds(retry["maxBackoff"]),
            jitter=retry["jitter"],
        ),
        options={name: value for name, value in stored.items() if name not in _BINDING},
    )
