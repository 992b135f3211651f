"""What one JSON Schema accepts and another no longer does; in doubt it is told."""

from collections.abc import Callable, Iterator
from typing import Any

from audit.canonical import canonical
from audit.references import followed

MAX_REFERENCES = 32  # one after the other

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_AT_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_AT_MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
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

    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new
        # A pair of schemas is compared once, however many references lead to it. The pairs are kept so that no
        # other object gets the identity of one of them.
        self._met: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._kept: dict[tuple[int, int], tuple[bool, Any, Any]] = {}

    def narrowings(self) -> Iterator[Change]:
        """Every way in which the new schema accepts less than the old one."""
        return self._compare(self._old, self._new, "")

    def _compare(self, old: Any, new: Any, path: str) -> Iterator[Change]:
        pair = (id(old), id(new))
        if isinstance(old, dict) and isinstance(new, dict):
            if pair in self._met:
                return
            self._met[pair] = (old, new)
        old, new = _resolved(self._old, old), _resolved(self._new, new)
        if new is False and old is not False:
            yield path, "is no longer accepted"
        if isinstance(new, bool) or old is False:
            return
        old = {} if old is True else old
        yield from _types(old, new, path)
        yield from _values(old, new, path)
        yield from _bounds(old, new, path)
        yield from self._members(old, new, path)
        yield from self._items(old, new, path)
        yield from self._choices(old, new, path)
        for keyword in _OPAQUE:
            if keyword in new and (keyword not in old or canonical(new[keyword]) != canonical(old[keyword])):
                yield path, f"has another {keyword}" if keyword in old else f"has a new {keyword}"

    def _members(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
        before, after = old.get("properties", {}), new.get("properties", {})
        for name in new.get("required", ()):
            if name not in old.get("required", ()):
                yield _join(path, name), "is now required" if name in before else "was added and is required"
        rest = new.get("additionalProperties", True)
        for name, schema in before.items():
            if name in after:
                yield from self._compare(schema, after[name], _join(path, name))
            elif rest is False:
                yield _join(path, name), "was removed"
            else:
                yield from self._compare(schema, rest, _join(path, name))
        others = old.get("additionalProperties", True)
        if others is not False and rest is False:
            yield path, "no longer accepts other parameters"
        elif others is not False:
            yield from self._compare(others, rest, _join(path, "*"))

    def _items(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
        before, after = old.get("prefixItems", []), new.get("prefixItems", [])
        for index in range(max(len(before), len(after))):
            one = before[index] if index < len(before) else old.get("items", True)
            other = after[index] if index < len(after) else new.get("items", True)
            yield from self._compare(one, other, f"{path}[{index}]")
        if "items" in new:
            yield from self._compare(old.get("items", True), new["items"], f"{path}[]")

    def _choices(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
        """Each form that was accepted must still fit one of the new forms."""
        if "anyOf" not in new:
            return
        former = old.get("anyOf", [{name: value for name, value in old.items() if name != "anyOf"}])
        for option in former:
            if not any(self._is_kept(option, other) for other in new["anyOf"]):
                yield path, "no longer accepts one of its forms"

    def _is_kept(self, old: Any, new: Any) -> bool:
        """Whether one form accepts all that another did; a form that holds itself is taken to."""
        pair = (id(old), id(new))
        if pair not in self._kept:
            self._kept[pair] = (True, old, new)
            inner = Comparison(self._old, self._new)
            inner._kept = self._kept
            self._kept[pair] = (next(inner._compare(old, new, ""), None) is None, old, new)
        return self._kept[pair][0]


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
    if "const" in schema:
        return {canonical(schema["const"]): schema["const"]}
    return {canonical(value): value for value in schema["enum"]} if "enum" in schema else None


def _bounds(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Change]:
    checks: list[tuple[tuple[str, ...], Callable[[Any, Any], bool]]] = [
        (_AT_LEAST, lambda before, after: bool(after > before)),
        (_AT_MOST, lambda before, after: bool(after < before)),
    ]
    for keywords, is_tighter in checks:
        for keyword in keywords:
            if keyword not in new:
                continue
            if keyword not in old:
                if not (keyword.startswith("min") and keyword != "minimum" and new[keyword] == 0):
                    yield path, f"has a new {keyword} of {new[keyword]}"
            elif is_tighter(old[keyword], new[keyword]):
                yield path, f"has a {keyword} of {new[keyword]}, was {old[keyword]}"


def _resolved(root: Any, schema: Any) -> Any:
    """Where a `$ref` leads; what stands beside it is kept."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        target = followed(root, schema["$ref"])
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        schema = {**target, **beside} if isinstance(target, dict) else target
    return schema


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
