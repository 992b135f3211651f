"""Reach: what the schemas applied in place speak of, and so may take away from the unevaluated rest."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from audit.references import followed
from registry.schemaparts import in_place

ANYTHING: dict[str, Any] = {}  # one object, because schemas are recognised by their identity


@dataclass(slots=True, kw_only=True)
class Reach:
    """Members and items that may have been evaluated in place, each with a schema for what was accepted there."""

    names: dict[str, Any] = field(default_factory=dict)
    patterns: dict[str, Any] = field(default_factory=dict)
    others: Any = False  # under any other name
    items: float = 0  # so many, from the first on
    size: int = 0  # how many schemas and members were looked at


def reach(root: Any, schema: dict[str, Any]) -> Reach:
    """What everything in place within a schema reaches together, its own words left aside."""
    whole = Reach(items=inf if "contains" in schema else 0)
    for part, is_sure in _within(root, schema):
        whole.size += 1 + len(part.get("properties", ())) + len(part.get("patternProperties", ()))
        for found, keyword in ((whole.names, "properties"), (whole.patterns, "patternProperties")):
            for name, value in part.get(keyword, {}).items():
                # Nobody knows here which form a value took, so a schema that holds in some forms bounds nothing.
                found.setdefault(name, value if is_sure else ANYTHING)
        rest = [part.get(keyword, False) for keyword in ("additionalProperties", "unevaluatedProperties")]
        if any(isinstance(value, dict) for value in rest):
            whole.others = ANYTHING
        elif True in rest and whole.others is False:
            whole.others = True  # accepted, but nothing was said about it
        has_all_items = any(part.get(word, False) is not False for word in ("items", "contains", "unevaluatedItems"))
        whole.items = max(whole.items, inf if has_all_items else len(part.get("prefixItems", ())))
    return whole


def _within(root: Any, schema: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every schema that judges the same value, and whether it surely does; the sure ones come first."""
    sure: list[Any] = [schema]
    perhaps: list[Any] = []
    seen: set[int] = set()
    while sure or perhaps:
        is_sure = bool(sure)
        here = (sure or perhaps).pop()
        if not isinstance(here, dict) or id(here) in seen:
            continue
        seen.add(id(here))
        if here is not schema:
            yield here, is_sure
        for keyword, part in in_place(here):
            (sure if is_sure and keyword == "allOf" else perhaps).append(part)
        if "$ref" in here:
            (sure if is_sure else perhaps).append(followed(root, here["$ref"]))
