"""Conjuncts: a schema and what its `$ref` leads to hold together; neither takes the place of the other."""

from typing import Any

from audit.canonical import canonical
from audit.references import find, pointer_of

AT_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
AT_MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")

Conjunct = dict[str, Any] | None  # None accepts nothing

_NOTES = frozenset({"$schema", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default"}) | {
    *("examples", "deprecated", "readOnly", "writeOnly")
}
# Keywords that mean something only with one another stay in one conjunct.
_TOGETHER = (
    frozenset({"properties", "patternProperties", "additionalProperties"}),
    frozenset({"prefixItems", "items"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)


def conjuncts(root: Any, schema: Any) -> list[Conjunct]:
    """Schemas without a `$ref` that together accept what this one does; as few as can say it."""
    made: list[Conjunct] = [{}]
    seen: set[str] = set()
    while True:
        own = _own(schema)
        last = made[-1]
        if own is not None and last is not None and not (_words(own) & _words(last)):
            made[-1] = {**last, **own}
        else:
            made.append(own)
        if not isinstance(schema, dict) or "$ref" not in schema:
            return made
        pointer = pointer_of(schema["$ref"])
        if pointer in seen:
            return made
        seen.add(pointer)
        schema = find(root, pointer)


def joined(parts: list[Conjunct]) -> Conjunct:
    """One schema that accepts at least what all parts together accept."""
    whole: dict[str, Any] = {}
    for part in parts:
        if part is None:
            return None
        taken = _words(whole)
        for keyword, value in part.items():
            if keyword == "required":
                whole[keyword] = list(dict.fromkeys([*whole.get(keyword, ()), *value]))
            elif _word(keyword) not in taken:
                whole[keyword] = value
            elif keyword in AT_LEAST and keyword == _word(keyword):
                whole[keyword] = max(whole[keyword], value)
            elif keyword in AT_MOST and keyword == _word(keyword):
                whole[keyword] = min(whole[keyword], value)
    return whole


def references_in(value: Any) -> frozenset[str]:
    """The references inside a value, as they are written."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            if isinstance(here.get("$ref"), str) and here["$ref"].startswith("#"):
                found.add(here["$ref"])
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return frozenset(found)


def same_references(old: Any, new: Any) -> frozenset[str]:
    """Those references of two schemas that lead to the same in both, and so do the references found there."""
    inside: dict[str, frozenset[str]] = {}
    for reference in references_in(old) & references_in(new):
        try:
            pointer = pointer_of(reference)
            before, after = find(old, pointer), find(new, pointer)
        except KeyError:  # not a reference: data that looks like one
            inside[reference] = frozenset()
            continue
        if canonical(before) == canonical(after):
            inside[reference] = references_in(after)
    while changed := [reference for reference, onward in inside.items() if not onward <= inside.keys()]:
        for reference in changed:
            del inside[reference]
    return frozenset(inside)


def _own(schema: Any) -> Conjunct:
    """What a schema says itself, without notes; defaults that depend on another keyword are spelled out."""
    if not isinstance(schema, dict):
        return None if schema is False else {}
    own = {keyword: value for keyword, value in schema.items() if keyword not in _NOTES and keyword != "$ref"}
    if "contains" in own:
        return {"minContains": 1, **own}
    return {keyword: value for keyword, value in own.items() if not keyword.endswith("Contains")}


def _words(schema: dict[str, Any]) -> set[str]:
    return {_word(keyword) for keyword in schema}


def _word(keyword: str) -> str:
    """The name of the group of keywords that this one belongs to, mostly itself."""
    return next((min(group) for group in _TOGETHER if keyword in group), keyword)
