"""@tool: a function becomes a tool, and stays the function it was."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from placet import docstrings
from placet.errors import ToolkitError

RISKS = ("low", "medium", "high", "critical")
IDEMPOTENCIES = ("read", "idempotent", "keyed", "non_idempotent")
DISPATCHES = ("queue", "inline")
JITTERS = ("none", "full", "equal")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_CAPABILITY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*", re.ASCII)
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MARK = "__placet_tool__"

Function = TypeVar("Function", bound=Callable[..., Any])
Requirement = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """What an author said about one tool, checked."""

    function: Callable[..., Any]
    name: str
    title: str
    description: str
    risk: str
    capabilities: tuple[str, ...]
    idempotency: str
    dispatch: str
    timeout: str
    retry: dict[str, Any]
    requirements: dict[str, Any]
    non_inferrable: tuple[str, ...]
    annotations: dict[str, Any]
    icons: list[dict[str, Any]]


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    risk: str = "low",
    capabilities: Iterable[str] = (),
    idempotency: str = "non_idempotent",
    dispatch: str = "queue",
    timeout: str | None = None,
    retry: Mapping[str, Any] | None = None,
    requires_secrets: Iterable[Requirement] = (),
    requires_authorization: Iterable[Requirement] = (),
    requires_user_id: bool = False,
    non_inferrable: Iterable[str] = (),
    annotations: Mapping[str, Any] | None = None,
    icons: Iterable[Mapping[str, Any]] = (),
) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, **said: Any) -> Any:
    """Marks a function as a tool; used as `@tool` or `@tool(risk="high", ...)`. The words are the manifest's.

    Without `timeout` a queued tool has 30 s and an inline one 5 s, the most that inline allows.
    """

    def mark(function: Function) -> Function:
        if not callable(function) or not hasattr(function, "__code__"):
            raise ToolkitError(f"@tool marks functions, not {type(function).__name__} objects")
        try:
            setattr(function, _MARK, define(function, **said))
        except ToolkitError as error:
            raise ToolkitError(f"{place(function)}: {error}") from None
        return function

    return mark if function is None else mark(function)


def definition_of(candidate: Any) -> ToolDefinition | None:
    """What @tool said about a function, or None if it is none of ours."""
    found = getattr(candidate, _MARK, None) if callable(candidate) else None
    return found if isinstance(found, ToolDefinition) else None


def place(function: Callable[..., Any]) -> str:
    """Where a function stands: file, line and name."""
    code = function.__code__
    return f"{code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno}: {function.__name__}"


def define(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    risk: str = "low",
    capabilities: Iterable[str] = (),
    idempotency: str = "non_idempotent",
    dispatch: str = "queue",
    timeout: str | None = None,
    retry: Mapping[str, Any] | None = None,
    requires_secrets: Iterable[Requirement] = (),
    requires_authorization: Iterable[Requirement] = (),
    requires_user_id: bool = False,
    non_inferrable: Iterable[str] = (),
    annotations: Mapping[str, Any] | None = None,
    icons: Iterable[Mapping[str, Any]] = (),
) -> ToolDefinition:
    """Checks what the author said and fills in what the function itself tells."""
    if function.__code__.co_flags & 0x220:  # CO_GENERATOR, CO_ASYNC_GENERATOR
        raise ToolkitError("a generator cannot be a tool; return a list, or tell the progress through the context")
    name = _pascal(function.__name__) if name is None else name
    if not NAME.fullmatch(name):
        raise ToolkitError(f"the name {name!r} must be a letter, then letters, digits and underscores")
    description = docstrings.read(function.__doc__)[0] if description is None else description
    if not description.strip():
        raise ToolkitError("a tool needs a docstring or a description, callers choose by it")
    timeout = timeout or ("5s" if dispatch == "inline" else "30s")
    return ToolDefinition(
        function=function,
        name=name,
        title=_title(function.__name__) if title is None else title,
        description=description,
        risk=_one_of("risk", risk, RISKS),
        capabilities=tuple(sorted(set(_capabilities(capabilities)))),
        idempotency=_one_of("idempotency", idempotency, IDEMPOTENCIES),
        dispatch=_dispatch(dispatch, risk, duration("timeout", timeout)),
        timeout=timeout,
        retry=_retry(retry or {}),
        requirements={
            "authorization": _requirements("requires_authorization", requires_authorization),
            "secrets": _requirements("requires_secrets", requires_secrets),
            "userId": bool(requires_user_id),
        },
        non_inferrable=tuple(_texts("non_inferrable", non_inferrable)),
        annotations=dict(annotations or {}),
        icons=_icons(icons),
    )


def duration(what: str, text: str) -> float:
    """The seconds of a duration such as 500ms, 30s, 1.5m or 2h."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ToolkitError(f"{what} must be a duration such as 500ms, 30s or 2m, not {text!r}")
    return float(match[1]) * _SECONDS[match[2]]


def _pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _title(name: str) -> str:
    words = " ".join(part for part in name.split("_") if part)
    return words[:1].upper() + words[1:]


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ToolkitError(f"{what} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def _dispatch(dispatch: str, risk: str, seconds: float) -> str:
    _one_of("dispatch", dispatch, DISPATCHES)
    if seconds <= 0:
        raise ToolkitError("timeout must be longer than nothing")
    if dispatch == "inline" and (risk not in ("low", "medium") or seconds > 5):
        raise ToolkitError("inline tools are of low or medium risk and take at most 5s")
    return dispatch


def _texts(what: str, values: Iterable[str]) -> list[str]:
    if isinstance(values, str | Mapping):
        raise ToolkitError(f"{what} must be a list, not a single {type(values).__name__}")
    found = list(values)
    if not all(isinstance(value, str) and value for value in found):
        raise ToolkitError(f"{what} must be a list of texts")
    return found


def _capabilities(values: Iterable[str]) -> list[str]:
    found = _texts("capabilities", values)
    for value in found:
        if not _CAPABILITY.fullmatch(value):
            raise ToolkitError(f"the capability {value!r} must be dotted lower-case words, such as data.read")
    return found


def _requirements(what: str, values: Iterable[Requirement]) -> list[dict[str, Any]]:
    if isinstance(values, str | Mapping):
        raise ToolkitError(f"{what} must be a list, not a single {type(values).__name__}")
    found = [{"id": value} if isinstance(value, str) else dict(value) for value in values]
    for value in found:
        if not isinstance(value.get("id"), str) or not value["id"]:
            raise ToolkitError(f"{what} must name each requirement by its id")
    return found


def _icons(values: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(values, str | Mapping):
        raise ToolkitError(f"icons must be a list, not a single {type(values).__name__}")
    found = list(values)
    if not all(isinstance(value, Mapping) and isinstance(value.get("src"), str) for value in found):
        raise ToolkitError("icons must name the address of each icon as its src")
    return [dict(value) for value in found]


def _retry(said: Mapping[str, Any]) -> dict[str, Any]:
    retry = {"maxAttempts": 1, "backoff": "0s", "maxBackoff": "30s", "jitter": "none"}
    if unknown := sorted(said.keys() - retry.keys()):
        raise ToolkitError(f"retry has no field {unknown[0]!r}, only {', '.join(retry)}")
    retry.update(said)
    if type(retry["maxAttempts"]) is not int or retry["maxAttempts"] < 1:
        raise ToolkitError("retry.maxAttempts must be a whole number of at least 1")
    duration("retry.backoff", str(retry["backoff"]))
    duration("retry.maxBackoff", str(retry["maxBackoff"]))
    _one_of("retry.jitter", str(retry["jitter"]), JITTERS)
    return retry
