"""The steps that answer with an error of their own; the pipeline calls them, they never call each other."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from execution.errors import CallError, ErrorCode
from execution.messages import Authorship, Belief, CallContext, CallRequest
from execution.runtimes.base import RunResult
from execution.suggestions import nearest
from policy import engine
from policy.caller import Caller
from policy.visibility import callable_toolkits, visible_toolkits
from registry import revision
from registry.resolution import callable_tools, resolve
from registry.schemawords import lowered
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec

MAX_ERRORS = 50
OPERATION = "invoke"


def find_tool(request: CallRequest) -> ToolSpec:
    """The tool that was asked for, if it exists and the caller may know that it does."""
    ref = request.tool_ref
    if ref is None:
        raise CallError(
            ErrorCode.UNSUPPORTED_TOOL,
            "The tool ID is not valid",
            developer_message="A tool ID reads Toolkit.Tool, Toolkit.Tool@1 or Toolkit.Tool@1.2.3",
        )
    tool = resolve(ref)
    if tool is None or tool.toolkit_id not in visible_toolkits(request.caller):
        revision.certain()  # before near names are looked for, which is more work than a call
        version = ".".join(map(str, ref.version)) if ref.version else ""
        wanted = f"version {version} is not available" if version else "has no version that this agent may call"
        raise CallError(
            ErrorCode.UNSUPPORTED_TOOL,
            f"Tool '{ref.flat_name}' was not found",
            developer_message=f"{ref.name} {wanted}{_did_you_mean(ref, request.caller)}",
        )
    return tool


def _did_you_mean(ref: ToolRef, caller: Caller) -> str:
    """Tools that the caller may call and whose names are nearly the one it sent; none if one of them has that name."""
    tools = {tool.flat_name: tool for tool in callable_tools(callable_toolkits(caller))}
    near = [tools[name] for name in nearest(ref.flat_name, tools)]
    if any(tool.flat_name.lower() == ref.flat_name.lower() for tool in near):
        return ""
    told = [_named_like(ref, tool) for tool in near if not engine.is_barred(caller, tool)]
    return f"; did you mean {' or '.join(told)}?" if told else ""


def _named_like(ref: ToolRef, tool: ToolSpec) -> str:
    return f"{tool.toolkit}.{tool.name}" if ref.toolkit else tool.flat_name


def check_belief(tool: ToolSpec, belief: Belief | None) -> None:
    """Whoever takes the tool for another one must not run it; to know less of it than the registry does is fine."""
    if belief is None:
        return
    known = {name.lower() for name in tool.capabilities}
    if belief.operation not in ("", OPERATION):
        raise _mistaken("tool.operation", f"The tool knows one operation, {OPERATION}")
    if other := [name for name in belief.capabilities if name not in known]:
        raise _mistaken("tool.capabilities", "The tool does not have all of these capabilities", unknown=other)
    if belief.risk not in ("", tool.risk.word):
        raise _mistaken("tool.risk_level", f"The tool's risk is {tool.risk.word}")


def _mistaken(field: str, message: str, **more: Any) -> CallError:
    return CallError(
        ErrorCode.INVALID_INPUT, message, parameter_errors={field: message}, details={"field": field, **more}
    )


def check_authorship(tool: ToolSpec, authorship: Authorship | None) -> None:
    """What a model must not infer comes from the program around it, and no argument from both."""
    if authorship is None:
        return
    errors = dict.fromkeys(sorted(authorship.model & authorship.program), "Was given twice, by model and by program")
    for name in sorted(authorship.model.intersection(tool.non_inferrable) - authorship.program):
        errors[name] = "Is not for a model to fill in; the program that calls must bring it"
    if errors:
        raise CallError(ErrorCode.INVALID_INPUT, "Some input parameters are invalid", parameter_errors=errors)


def check_input(tool: ToolSpec, arguments: Mapping[str, Any]) -> None:
    violations = tool.input.violations(arguments)
    if not violations:
        return
    found: dict[str, dict[str, None]] = {}  # in the order in which they were found, each once
    for violation in violations[:MAX_ERRORS]:
        found.setdefault(violation.parameter, {})[violation.told] = None
    errors = {name: "; ".join([first, *map(lowered, others)]) for name, (first, *others) in found.items()}
    raise CallError(ErrorCode.INVALID_INPUT, "Some input parameters are invalid", parameter_errors=errors)


def check_requirements(tool: ToolSpec, context: CallContext) -> None:
    """What the tool needs from the caller besides its input."""
    needs = tool.requirements
    if not needs:
        return
    tokens = [need["id"] for need in needs.get("authorization", ()) if not context.authorization.get(need["id"])]
    secrets = [need["id"] for need in needs.get("secrets", ()) if not context.secrets.get(need["id"])]
    missing: dict[str, Any] = {}
    if tokens:
        page = f"{settings.PLACET_URL}/catalogue/{tool.toolkit}/{tool.name}/"
        missing["authorization"] = [{"id": name, "url": page} for name in tokens]
    if secrets:
        missing["secrets"] = [{"id": name} for name in secrets]
    if needs.get("user_id") and not context.user_id:
        missing["user_id"] = True
    if missing:
        wanted = [f"context.authorization '{name}'" for name in tokens]
        wanted += [f"context.secrets '{name}'" for name in secrets]
        wanted += ["context.user_id"] if "user_id" in missing else []
        raise CallError(
            ErrorCode.MISSING_REQUIREMENT,
            "The tool needs more than its input",
            developer_message=f"Send {', '.join(wanted)}",
            missing_requirements=missing,
        )


def check_output(tool: ToolSpec, result: RunResult) -> None:
    """A tool keeps its own promise, or the call failed."""
    if result.content:
        return
    if tool.output is None:
        if result.value is not None:
            message = "The tool returned output although it declares none"
            raise CallError(ErrorCode.EXECUTION_FAILED, message, traffic=result.traffic)
        return
    violations = tool.output.violations(result.value)
    if violations:
        told = "; ".join(f"{violation.path or 'the value'}: {violation.message}" for violation in violations[:5])
        raise CallError(
            ErrorCode.EXECUTION_FAILED,
            "The tool returned something other than it declares",
            developer_message=f"The output does not fit the tool's output schema: {told}",
            traffic=result.traffic,
        )
