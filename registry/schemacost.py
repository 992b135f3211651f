"""Cost: how much work a value can make of a schema, known before the work is done.

A schema is walked as a machine. A state is the bag of schemas that judge one place of a value at the same time; a step
leads to a property or an item. `$ref`s that multiply what judges one place make bags that grow, and are refused when
the schema is saved. For a value, the bags it visits are added up, and what would take too long is not begun.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from audit.references import find, pointer_of
from registry.schemaparts import escaped, in_place, pattern_cost

MAX_BAG = 2_000  # schemas that judge one place
MAX_STATES = 4_000
MAX_STEPS = 20_000
BUDGET = 60_000_000.0  # nanoseconds for one look at one value

_PER_SCHEMA = 60.0  # nanoseconds, with a margin over what was measured
_PER_KEYWORD = 30.0
_PER_CHOICE = 15.0  # each name, and each plain value of an enum, may have to be compared
_PER_LARGE_CHOICE = 500.0  # an array or object of an enum
_FRACTION = 30_000.0  # multipleOf 0.01 is exact arithmetic on fractions
_FORMAT = 20.0  # per byte of a text


class TooComplex(ValueError):
    """Judging a value by this schema cannot be bounded."""


@dataclass(slots=True, eq=False)
class State:
    """What one place of a value costs, and where its parts lead; None leads nowhere: nothing judges there."""

    cost: float
    text_cost: float
    names: dict[str, "State | None"] = field(default_factory=dict)
    other_name: "State | None" = None
    prefix: list["State | None"] = field(default_factory=list)
    rest: "State | None" = None


_FREE = State(cost=0.0, text_cost=0.0)  # where nothing judges


class Cost:
    """The machine of one schema; TooComplex if it has no end."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._states: dict[frozenset[tuple[str, int]], State] = {}
        self._steps = 0
        self._unexplored: list[tuple[State, Counter[str]]] = []
        self._start = self._state(Counter({"": 1}))
        while self._unexplored:
            self._explore(*self._unexplored.pop())
        self._per_value = max((state.cost for state in self._states.values()), default=0.0)
        self._per_byte = max((state.text_cost for state in self._states.values()), default=0.0)

    def is_affordable(self, value: Any) -> bool:
        """Whether judging this value stays within the budget."""
        try:
            size = orjson.dumps(value)
        except TypeError:  # an integer beyond 64 bits, or no JSON at all
            return False
        # Every value inside another one follows a bracket or a comma, so this counts at least all of them.
        values = 1 + size.count(b",") + size.count(b"[") + size.count(b"{")
        if values * self._per_value + len(size) * self._per_byte <= BUDGET:
            return True
        return self._exact(value) <= BUDGET

    def _exact(self, value: Any) -> float:
        """The cost of the places this value really has, or as much of it as breaks the budget."""
        total = 0.0
        waiting: list[tuple[State, Any]] = [] if self._start is None else [(self._start, value)]
        while waiting and total <= BUDGET:
            state, part = waiting.pop()
            total += state.cost
            if isinstance(part, str):
                total += state.text_cost * len(part)
            for below, name, child in _parts(state, part):
                # The name of a member may be matched by the schema around it and by the one for it.
                total += (state.cost if name else 0.0) + (state.text_cost + below.text_cost) * len(name)
                if isinstance(child, dict | list | str):
                    waiting.append((below, child))
                else:
                    total += below.cost
                if total > BUDGET:
                    break
        return total

    def _state(self, seeds: Counter[str]) -> State | None:
        """The state in which all of these schemas judge; the same bag is the same state."""
        self._steps += 1
        bag: Counter[str] = Counter()
        for pointer, count in seeds.items():
            for _ in range(count):
                self._gather(pointer, bag, ())
        if not bag:
            return None
        key = frozenset(bag.items())
        if key not in self._states:
            if len(self._states) >= MAX_STATES or self._steps > MAX_STEPS:
                raise TooComplex("has too many combinations")
            self._states[key] = state = self._priced(bag)
            self._unexplored.append((state, bag))
        return self._states[key]

    def _gather(self, pointer: str, bag: Counter[str], trail: tuple[str, ...]) -> None:
        """Adds a schema and all that judges the same place with it."""
        if pointer in trail:
            raise TooComplex("refers to itself without an end")
        schema = find(self._root, pointer)
        if not isinstance(schema, dict):
            return
        bag[pointer] += 1
        if bag.total() > MAX_BAG:
            raise TooComplex("applies too many schemas to one value")
        trail = (*trail, pointer)
        if "$ref" in schema:
            self._gather(pointer_of(schema["$ref"]), bag, trail)
        for below in in_place(schema):
            self._gather(pointer + below, bag, trail)

    def _priced(self, bag: Counter[str]) -> State:
        cost, text_cost, factor = 0.0, 0.0, 1.0
        for pointer, count in bag.items():
            schema = find(self._root, pointer)
            patterns = schema.get("patternProperties", {})
            cost += count * (_own_cost(schema) + _PER_KEYWORD * len(patterns))
            for pattern in (*patterns, *([schema["pattern"]] if "pattern" in schema else ())):
                text_cost += count * (pattern_cost(pattern) or 0.0)
            if "format" in schema:
                text_cost += count * _FORMAT
            # What is "unevaluated" is found by judging everything beside it again.
            factor *= 10 ** (count * (("unevaluatedItems" in schema) + ("unevaluatedProperties" in schema)))
        if factor > 1000:
            raise TooComplex("nests unevaluatedItems or unevaluatedProperties")
        return State(cost=cost * factor, text_cost=text_cost * factor)

    def _explore(self, state: State, bag: Counter[str]) -> None:
        """Finds where the parts of a value in this state lead."""
        schemas = [(pointer, find(self._root, pointer), count) for pointer, count in bag.items()]
        names = dict.fromkeys(name for _, schema, _ in schemas for name in schema.get("properties", ()))
        state.names = {name: self._state(self._below_name(schemas, name)) for name in names}
        state.other_name = self._state(self._below_name(schemas, None))
        longest = max((len(schema.get("prefixItems", ())) for _, schema, _ in schemas), default=0)
        state.prefix = [self._state(self._below_item(schemas, index)) for index in range(longest)]
        state.rest = self._state(self._below_item(schemas, longest))

    def _below_name(self, schemas: list[tuple[str, dict[str, Any], int]], name: str | None) -> Counter[str]:
        seeds: Counter[str] = Counter()
        for pointer, schema, count in schemas:
            if name is not None and name in schema.get("properties", ()):
                seeds[f"{pointer}/properties/{escaped(name)}"] += count
            elif "additionalProperties" in schema:
                seeds[f"{pointer}/additionalProperties"] += count
            for pattern in schema.get("patternProperties", ()):  # any name may match any pattern
                seeds[f"{pointer}/patternProperties/{escaped(pattern)}"] += count
            for keyword in ("unevaluatedProperties", "propertyNames"):
                if keyword in schema:
                    seeds[f"{pointer}/{keyword}"] += count
        return seeds

    def _below_item(self, schemas: list[tuple[str, dict[str, Any], int]], index: int) -> Counter[str]:
        seeds: Counter[str] = Counter()
        for pointer, schema, count in schemas:
            if index < len(schema.get("prefixItems", ())):
                seeds[f"{pointer}/prefixItems/{index}"] += count
            elif "items" in schema:
                seeds[f"{pointer}/items"] += count
            for keyword in ("contains", "unevaluatedItems"):
                if keyword in schema:
                    seeds[f"{pointer}/{keyword}"] += count
        return seeds


def _parts(state: State, value: Any) -> Iterator[tuple[State, str, Any]]:
    """The parts of a value that something judges, each with its state and, in an object, its name."""
    if isinstance(value, Mapping):
        for name, child in value.items():
            yield state.names.get(name, state.other_name) or _FREE, name, child
    elif isinstance(value, list):
        for index, child in enumerate(value):
            below = state.prefix[index] if index < len(state.prefix) else state.rest
            if below is not None:
                yield below, "", child


def _own_cost(schema: dict[str, Any]) -> float:
    """What the keywords of one schema cost at one place, the schemas inside it left aside."""
    cost = _PER_SCHEMA + _PER_KEYWORD * len(schema)
    cost += _PER_CHOICE * (len(schema.get("properties", ())) + len(schema.get("required", ())))
    for choice in (*schema.get("enum", ()), schema.get("const")):
        cost += _PER_LARGE_CHOICE if isinstance(choice, dict | list) else _PER_CHOICE
    if isinstance(schema.get("multipleOf"), float):
        cost += _FRACTION
    return cost
