"""Shape: hand-written checks of what a caller sent, quick and naming the field, never its value."""

from collections.abc import Mapping
from typing import Any

from execution.messages import CallContext
from execution.protocols.dialect import Refusal

MAX_ID = 255
MAX_TRACE = 128
MAX_TOOL = 200
MAX_NAMED = 10  # unknown keys that a message lists
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)))


def invalid(message: str) -> Refusal:
    return Refusal("invalid_request", message)


def mapping(value: Any, name: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise invalid(f"{name} must be a JSON object")
    return value


def text(value: Any, name: str, *, limit: int, least: int = 1) -> str:
    """A string of bounded length without control characters."""
    if type(value) is not str:
        raise invalid(f"{name} must be a string")
    if not least <= len(value) <= limit:
        raise invalid(f"{name} must have {least} to {limit} characters")
    if not value.isprintable() and value.translate(_CONTROL) != value:
        raise invalid(f"{name} must not contain control characters")
    return value


def only(value: Mapping[str, Any], known: frozenset[str], name: str) -> None:
    """Refuses keys that the specification does not know, and names them."""
    if value.keys() <= known:
        return
    unknown = sorted(value.keys() - known)
    listed = ", ".join(repr(key[:64]) for key in unknown[:MAX_NAMED])
    rest = len(unknown) - MAX_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    raise invalid(f"{name} has unknown keys: {listed}{more}")


def call_id(asked: Mapping[str, Any]) -> str | None:
    return text(asked["call_id"], "call_id", limit=MAX_ID) if "call_id" in asked else None


def trace_id(asked: Mapping[str, Any]) -> str:
    return text(asked["trace_id"], "trace_id", limit=MAX_TRACE, least=0) if "trace_id" in asked else ""


def tool_id(asked: Mapping[str, Any]) -> str:
    if "tool_id" not in asked:
        raise invalid("tool_id is missing")
    return text(asked["tool_id"], "tool_id", limit=MAX_TOOL)


def context(asked: Mapping[str, Any]) -> CallContext:
    """What the caller brings for the tool; keys that we do not know are left alone, the object is open."""
    if "context" not in asked:
        return CallContext()
    given = mapping(asked["context"], "context")
    return CallContext(
        authorization=_by_id(given, "authorization", "token"),
        secrets=_by_id(given, "secrets", "value"),
        user_id=text(given["user_id"], "context.user_id", limit=MAX_ID, least=0) if "user_id" in given else "",
    )


def _by_id(given: Mapping[str, Any], list_name: str, value_name: str) -> dict[str, str]:
    entries = given.get(list_name, [])
    if type(entries) is not list:
        raise invalid(f"context.{list_name} must be an array")
    found: dict[str, str] = {}
    for index, entry in enumerate(entries):
        where = f"context.{list_name}[{index}]"
        entry = mapping(entry, where)
        key = text(entry.get("id"), f"{where}.id", limit=MAX_ID)
        if type(entry.get(value_name)) is not str:
            raise invalid(f"{where}.{value_name} must be a string")
        if key in found:
            raise invalid(f"context.{list_name} names the same id twice")
        found[key] = entry[value_name]
    return found
