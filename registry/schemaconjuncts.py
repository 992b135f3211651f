"""Conjuncts: a schema and what its `$ref` leads to hold together; neither takes the place of the other."""

from typing import Any

from audit.canonical import canonical
from audit.references import find, pointer_of
from registry.schemaparts import IN_PLACE_LISTS, IN_PLACE_MAPS, IN_PLACE_ONE, NOTES

AT_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
AT_MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")

# What these evaluate depends on the value.
BESIDE = (*IN_PLACE_ONE, *IN_PLACE_LISTS, *IN_PLACE_MAPS, "contains")

_REFERRING = NOTES | {"$ref"}

Conjunct = dict[str, Any] | None  # None accepts nothing

# Keywords that mean something only with one another stay in one conjunct.
_TOGETHER = (
    frozenset({"properties", "patternProperties", "additionalProperties"}),
    frozenset({"prefixItems", "items"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_EVALUATING = frozenset({*BESIDE, *_TOGETHER[0], *_TOGETHER[1]})


def conjuncts(root: Any, schema: Any) -> list[Conjunct]:
    """Schemas without a `$ref` that together accept what this one does; as few as can say it."""
    made: list[Conjunct] = [{}]
    seen: set[str] = set()
    while True:
        own = _own(schema)
        last = made[-1]
        if own is not None and last is not None and _fit(last, own):
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


def settled(root: Any, schema: Any) -> Any:
    """The schema that one leads to which says nothing but a `$ref`; any other one itself."""
    seen: set[str] = set()
    while isinstance(schema, dict) and "$ref" in schema and schema.keys() <= _REFERRING:
        pointer = pointer_of(schema["$ref"])
        if pointer in seen:
            break
        seen.add(pointer)
        schema = find(root, pointer)
    return schema


def apart(parts: list[Conjunct]) -> list[Conjunct]:
    """The same conjuncts, made so that each can be judged alone: what inner ones evaluate is not left to outer ones."""
    made: list[Conjunct] = []
    inner: dict[str, Any] = {}
    for part in reversed(parts):
        made.insert(0, None if part is None else _alone(part, inner))
        inner = joined([part or {}, inner]) or {}
    return made


def joined(parts: list[Conjunct]) -> Conjunct:
    """One schema that accepts at least what all parts together accept."""
    whole: dict[str, Any] = {}
    is_rest_known = True
    for part in parts:
        if part is None:
            return None
        taken = _words(whole)
        layered = {**_members(whole, part), **_items(whole, part)}
        for keyword, value in part.items():
            if keyword == "required":
                whole[keyword] = list(dict.fromkeys([*whole.get(keyword, ()), *value]))
            elif keyword in _UNEVALUATED or _word(keyword) not in taken:
                # The innermost rest counts: once it was looked at, the schemas around find nothing unevaluated.
                whole[keyword] = value
            elif keyword in AT_LEAST and keyword == _word(keyword):
                whole[keyword] = max(whole[keyword], value)
            elif keyword in AT_MOST and keyword == _word(keyword):
                whole[keyword] = min(whole[keyword], value)
            elif keyword in BESIDE:
                is_rest_known = False
        whole |= layered
    if is_rest_known:
        return whole
    # A schema that is left out here evaluated something, so the rest is smaller than it would seem.
    return {keyword: value for keyword, value in whole.items() if keyword not in _UNEVALUATED}


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
    own = {keyword: value for keyword, value in schema.items() if keyword not in NOTES and keyword != "$ref"}
    if "contains" in own:
        return {"minContains": 1, **own}
    return {keyword: value for keyword, value in own.items() if not keyword.endswith("Contains")}


def _fit(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    """Whether two schemas mean in one what they mean apart; an inner one does not see what an outer one evaluates."""
    if _UNEVALUATED & inner.keys() and _EVALUATING & outer.keys():
        return False
    return not (_words(outer) & _words(inner))


def _members(outer: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """The inner words on members, under the outer ones; no members are left if the outer ones speak of all."""
    if "additionalProperties" in outer:
        return {}
    named = {word: inner[word] | outer.get(word, {}) for word in ("properties", "patternProperties") if word in inner}
    return named | {word: inner[word] for word in ("additionalProperties",) if word in inner}


def _items(outer: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """The same for items."""
    if "items" in outer:
        return {}
    first = outer.get("prefixItems", [])
    placed = {word: [*first, *inner[word][len(first) :]] for word in ("prefixItems",) if word in inner}
    return placed | {word: inner[word] for word in ("items",) if word in inner}


def _alone(part: dict[str, Any], inner: dict[str, Any]) -> dict[str, Any]:
    """A conjunct that says itself what inner ones evaluate; what they ask of it they say themselves."""
    whole = dict(part)
    if "unevaluatedProperties" in part:
        if "additionalProperties" in inner or "unevaluatedProperties" in inner:
            del whole["unevaluatedProperties"]
        elif "properties" in inner and "additionalProperties" not in part:
            whole["properties"] = dict.fromkeys(inner["properties"], True) | part.get("properties", {})
    if "unevaluatedItems" in part:
        first = part.get("prefixItems", [])
        if "items" in inner or "unevaluatedItems" in inner:
            del whole["unevaluatedItems"]
        elif "prefixItems" in inner and "items" not in part:
            whole["prefixItems"] = [*first, *[True] * (len(inner["prefixItems"]) - len(first))]
    return whole


def _words(schema: dict[str, Any]) -> set[str]:
    return {_word(keyword) for keyword in schema}


def _word(keyword: str) -> str:
    """The name of the group of keywords that this one belongs to, mostly itself."""
    return next((min(group) for group in _TOGETHER if keyword in group), keyword)
