"""What one JSON Schema accepts and another no longer does; in doubt it is told."""

from collections.abc import Callable, Container, Iterator
from functools import cached_property
from math import inf
from typing import Any

from jsonschema_rs import Draft202012Validator

from audit.canonical import canonical
from registry.schemaconjuncts import (
    AT_LEAST,
    AT_MOST,
    BESIDE,
    apart,
    conjuncts,
    joined,
    references_in,
    same_references,
    settled,
)
from registry.schemaparts import validator
from registry.schemareach import ANYTHING, Reach, reach

MAX_WORK = 2_000_000  # looks at members, patterns and schemas, weighed by how long they take
MAX_NESTED = 100  # comparisons in comparisons
MAX_AGAIN = 200  # changes that are told of more than one place

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
# No attempt is made to prove that one of these accepts what another did: a change of it counts.
_OPAQUE = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "patternProperties",
    "propertyNames",
    "contains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "multipleOf",
    "pattern",
    "format",
    "uniqueItems",
)

Change = tuple[str, str]  # the path of a parameter such as "address.street", and what happened to it


class Comparison:
    """An old and a new schema, walked side by side."""

    def __init__(self, old: Any, new: Any, *, is_promise: bool = False) -> None:
        """A promise binds in what it says of members that nobody asked about: the output of a tool is one."""
        self._old, self._new, self._is_promise = old, new, is_promise
        # A pair of schemas is compared once, however many references lead to it. The pairs are kept so that no
        # other object gets the identity of one of them.
        self._met: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._told: dict[tuple[int, int], list[Change]] = {}  # of pairs that were walked to their end, from there on
        self._again = 0
        self._kept: dict[tuple[int, int], tuple[bool, Any, Any]] = {}
        self._single: dict[bytes, dict[str, Any]] = {}
        self._patterns: dict[str, Draft202012Validator] = {}
        self._work = self._nested = 0

    def narrowings(self) -> Iterator[Change]:
        """Every way in which the new schema accepts less than the old one; it is told if there was no end to it."""
        if canonical(self._old) == canonical(self._new):
            return
        for change in self._compare(self._old, self._new, ""):
            if self._work > MAX_WORK:
                break
            yield change
        if self._work > MAX_WORK:
            yield "", "is too large to be compared in full"

    def _compare(self, old: Any, new: Any, path: str) -> Iterator[Change]:
        old, new = settled(self._old, old), settled(self._new, new)  # else each place that refers were a pair
        pair = (id(old), id(new))
        if pair in self._met:
            yield from self._of_this_place_too(pair, path)
            return
        self._met[pair] = (old, new)
        self._work += 30 if self._nested < MAX_NESTED else MAX_WORK
        if self._work > MAX_WORK:
            yield path, "is too large to be compared"  # and so nothing is taken for kept that was not looked at
            return
        told: list[Change] = []
        self._nested += 1
        try:
            for place, change in self._compare_parts(old, new, path):
                told.append((place[len(path) :].removeprefix("."), change))
                yield place, change
        finally:  # who only asks whether there is a change looks at no second one
            self._nested -= 1
        self._told[pair] = told

    def _of_this_place_too(self, pair: tuple[int, int], path: str) -> Iterator[Change]:
        """What was found elsewhere is so wherever the same schema is referred to; no more of it than people read."""
        for rest, change in self._told.get(pair, ()):  # none yet, if it leads to itself
            self._again += 1
            if self._again > MAX_AGAIN:
                return
            yield (_join(path, rest) if rest and not rest.startswith("[") else f"{path}{rest}"), change

    def _compare_parts(self, old: Any, new: Any, path: str) -> Iterator[Change]:
        parts = apart(conjuncts(self._new, new))
        if len(parts) > 1 and self._is_same(old, new):
            return  # a joined old one would be taken for wider than it is
        before = joined(conjuncts(self._old, old))
        if before is None:
            return
        aside = reach(self._old, before)
        self._work += 3 * (aside.size + sum(map(_size, (before, *parts))))
        for part in parts:
            if part is None:
                yield path, "is no longer accepted"
            else:
                yield from self._narrowed(before, aside, part, path)

    def _narrowed(self, old: dict[str, Any], aside: Reach, new: dict[str, Any], path: str) -> Iterator[Change]:
        yield from _types(old, new, path)
        yield from _values(old, new, path)
        yield from _bounds(old, new, path)
        yield from self._members(old, aside, new, path)
        yield from self._items(old, aside, new, path)
        yield from self._choices(old, new, path)
        for keyword in _OPAQUE:
            if keyword in new and not (keyword in old and self._is_same(old[keyword], new[keyword])):
                yield path, f"has another {keyword}" if keyword in old else f"has a new {keyword}"
        if "unevaluatedItems" in new or "unevaluatedProperties" in new:
            # What these refuse depends on what the schemas beside them look at, also on those that are gone.
            for keyword in (*BESIDE, "patternProperties"):
                if keyword in old and not (keyword in new and self._is_same(old[keyword], new[keyword])):
                    yield path, f"has another {keyword}" if keyword in new else f"has lost its {keyword}"

    def _is_same(self, old: Any, new: Any) -> bool:
        """Whether two parts are the same to the letter, and so is all that they refer to."""
        before, after = canonical(old), canonical(new)
        self._work += (len(before) + len(after)) // 100
        return before == after and references_in(new) <= self._unchanged

    @cached_property
    def _unchanged(self) -> frozenset[str]:
        return same_references(self._old, self._new)

    def _members(self, old: dict[str, Any], aside: Reach, new: dict[str, Any], path: str) -> Iterator[Change]:
        if "additionalProperties" in old:
            aside = Reach()  # it speaks of every member that has no name beside it
        own, after = old.get("properties", {}), new.get("properties", {})
        before = aside.names | own
        patterns = aside.patterns | old.get("patternProperties", {})
        others, rest = _other_members(old) if aside.others is False else aside.others, _other_members(new)
        for name in new.get("required", ()):
            if name not in old.get("required", ()):
                yield _join(path, name), "is now required" if name in before else "was added and is required"
        for name in after:
            if name not in before:
                self._work += 5 * len(patterns)
                yield from self._named(patterns, others, name, after[name], _join(path, name))
        if "unevaluatedProperties" in new and "additionalProperties" not in new:
            # The new rest leaves out what is evaluated in place as the old one did, or else that change is told.
            before, patterns, others = own | _only(before, after), old.get("patternProperties", {}), _other_members(old)
        for name, schema in before.items():
            if name in after:
                yield from self._compare(schema, after[name], _join(path, name))
            elif rest is False:
                yield _join(path, name), "was removed"
            else:
                yield from self._compare(schema, rest, _join(path, name))
        for pattern, schema in patterns.items():
            if pattern not in new.get("patternProperties", {}):
                yield from self._compare(schema, rest, _join(path, pattern))
        if others is not False and rest is False:
            yield path, "no longer accepts other parameters"
        elif others is not False:
            yield from self._compare(others, rest, _join(path, "*"))

    def _named(self, patterns: dict[str, Any], others: Any, name: str, schema: Any, path: str) -> Iterator[Change]:
        """A member that only the new schema speaks of, against what the old one accepted under any such name."""
        matching = [former for pattern, former in patterns.items() if self._fits(pattern, name)]
        for former in matching or [others]:
            # Who calls had no reason to send a member that nothing was said about, and it did nothing: a new optional
            # parameter is safe. Where any name had a meaning (a map of texts), callers use names of their own. And
            # who reads an output does count on what was said of its members.
            if self._is_promise or isinstance(former, dict):
                yield from self._compare(former, schema, path)

    def _fits(self, pattern: str, name: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = validator({"pattern": pattern})
        return bool(self._patterns[pattern].is_valid(name))

    def _items(self, old: dict[str, Any], aside: Reach, new: dict[str, Any], path: str) -> Iterator[Change]:
        before, after = old.get("prefixItems", []), new.get("prefixItems", [])
        others, rest = _other_items(old), _other_items(new)
        reached = 0 if "items" in old else aside.items
        is_rest_the_same = "unevaluatedItems" in new and "items" not in new  # or else that is told, as with members
        last = max(len(before), len(after), 0 if reached == inf else int(reached))
        for index in range(last):
            is_aside = index < reached and not (is_rest_the_same and index >= len(after))
            one = before[index] if index < len(before) else ANYTHING if is_aside else others
            other = after[index] if index < len(after) else rest
            yield from self._compare(one, other, f"{path}[{index}]")
        yield from self._compare(ANYTHING if reached > last and not is_rest_the_same else others, rest, f"{path}[]")

    def _choices(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
        """Each form that was accepted must still fit one of the new forms."""
        if "anyOf" not in new:
            return
        # A joined schema is a new object each time; only the first one like it is ever recognised as met before.
        former = old["anyOf"] if "anyOf" in old else [self._single.setdefault(canonical(old), old)]
        self._work += len(former) * len(new["anyOf"])
        for option in former:
            if not any(self._is_kept(option, other) for other in new["anyOf"]):
                yield path, "no longer accepts one of its forms"

    def _is_kept(self, old: Any, new: Any) -> bool:
        """Whether one form accepts all that another did; a form that holds itself is taken to."""
        pair = (id(old), id(new))
        if pair not in self._kept:
            self._kept[pair] = (True, old, new)
            met, told, self._met, self._told = self._met, self._told, {}, {}  # what was told elsewhere counts again
            self._kept[pair] = (next(self._compare(old, new, ""), None) is None, old, new)
            self._met, self._told = met, told
        return self._kept[pair][0]


def _size(schema: dict[str, Any] | None) -> int:
    """How much there is to look at in one schema, the schemas inside it left aside."""
    return sum(len(value) for value in (schema or {}).values() if isinstance(value, dict | list))


def _types(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
    before, after = _type_set(old), _type_set(new)
    lost = before - after - ({"integer"} if "number" in after else set())
    if lost:
        was, now = ", ".join(sorted(before)), ", ".join(sorted(after))
        yield path, f"must now be of type {now}" + ("" if before == _TYPES else f", was {was}")


def _type_set(schema: dict[str, Any]) -> frozenset[str]:
    said = schema.get("type")
    if said is None:
        return _TYPES
    return frozenset([said] if isinstance(said, str) else said)


def _values(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
    before, after = _value_set(old), _value_set(new)
    if after is None:
        return
    if before is None:
        yield path, "accepts only certain values now"
    elif lost := [value for key, value in before.items() if key not in after]:
        shown = ", ".join(map(str, lost[:3])) + (", …" if len(lost) > 3 else "")
        yield path, f"no longer accepts {shown}"


def _value_set(schema: dict[str, Any]) -> dict[bytes, Any] | None:
    listed = {canonical(value): value for value in schema["enum"]} if "enum" in schema else None
    if "const" not in schema:
        return listed
    key = canonical(schema["const"])
    return {key: schema["const"]} if listed is None or key in listed else {}


def _bounds(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
    checks: list[tuple[tuple[str, ...], Callable[[Any, Any], bool]]] = [
        (AT_LEAST, lambda before, after: bool(after > before)),
        (AT_MOST, lambda before, after: bool(after < before)),
    ]
    for keywords, is_tighter in checks:
        for keyword in keywords:
            if keyword not in new or (keyword.endswith("Contains") and "contains" not in old):
                continue
            if keyword not in old:
                if not (keyword.startswith("min") and keyword != "minimum" and new[keyword] == 0):
                    yield path, f"has a new {keyword} of {new[keyword]}"
            elif is_tighter(old[keyword], new[keyword]):
                yield path, f"has a {keyword} of {new[keyword]}, was {old[keyword]}"


def _other_members(schema: dict[str, Any]) -> Any:
    return schema.get("additionalProperties", schema.get("unevaluatedProperties", True))


def _other_items(schema: dict[str, Any]) -> Any:
    return schema.get("items", schema.get("unevaluatedItems", True))


def _only(members: dict[str, Any], names: Container[str]) -> dict[str, Any]:
    return {name: schema for name, schema in members.items() if name in names}


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
