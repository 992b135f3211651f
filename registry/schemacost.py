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

from audit.references import followed
from registry.schemaparts import NOTES, in_place, pattern_cost

MAX_BAG = 2_000  # schemas that judge one place
MAX_CHAIN = 64  # schemas that lead to one another at one place
MAX_UNEVALUATED = 3  # schemas at one place that ask what others evaluated
MAX_WORK = 150_000  # schemas looked at to find all states
BUDGET = 60_000_000.0  # nanoseconds for one look at one value

_PER_SCHEMA = 60.0  # nanoseconds, with a margin over what was measured
_PER_KEYWORD = 30.0
_PER_CHOICE = 15.0  # each name, and each plain value of an enum, may have to be compared
_PER_LARGE_CHOICE = 500.0  # an array or object of an enum
_FRACTION = 30_000.0  # multipleOf 0.01 is exact arithmetic on fractions
_FORMAT = 20.0  # per byte of a text

_ABOUT_MEMBERS = {"properties", "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames"}
_ABOUT_ITEMS = {"prefixItems", "items", "contains", "unevaluatedItems"}
_REFERRING = NOTES | {"$ref"}
_HOP: dict[str, Any] = {"$ref": "#"}  # stands for each schema that only refers to another one

Bag = Counter[int]  # schemas by their identity, and how often each of them judges
Schemas = list[tuple[dict[str, Any], int]]  # the same, themselves


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
    """What judging a value by one schema costs; TooComplex if that has no end."""

    def __init__(self, root: Any) -> None:
        machine = _Machine(root)
        self._start = machine.start
        self._per_value = max((state.cost for state in machine.states.values()), default=0.0)
        self._per_byte = max((state.text_cost for state in machine.states.values()), default=0.0)

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


class _Machine:
    """Finds every state of a schema. Schemas are known by their identity, and all that is looked at is counted."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._work = 0
        self._schemas: dict[int, dict[str, Any]] = {id(_HOP): _HOP}
        self._led: dict[frozenset[tuple[int, int]], State | None] = {}  # by the schemas that led there
        self.states: dict[frozenset[tuple[int, int]], State] = {}  # by all the schemas that judge there
        self._prices: dict[int, tuple[float, float, int]] = {}
        self._unexplored: list[tuple[State, Bag]] = []
        seeds = Bag()
        self._add(root, 1, seeds)
        self.start = self._state(seeds)
        while self._unexplored:
            self._explore(*self._unexplored.pop())

    def _state(self, seeds: Bag) -> State | None:
        """The state in which all of these schemas judge; the same bag is the same state."""
        origin = frozenset(seeds.items())
        if origin not in self._led:
            bag = Bag()
            for identity, count in seeds.items():
                self._gather(identity, count, bag)
            self._led[origin] = self._known(bag) if bag else None
        return self._led[origin]

    def _known(self, bag: Bag) -> State:
        key = frozenset(bag.items())
        if key not in self.states:
            self.states[key] = state = self._priced(bag)
            self._unexplored.append((state, bag))
        return self.states[key]

    def _add(self, schema: Any, count: int, seeds: Bag) -> None:
        if isinstance(schema, dict):
            self._schemas[id(schema)] = schema
            seeds[id(schema)] += count

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise TooComplex("has too many combinations")

    def _gather(self, identity: int, count: int, bag: Bag) -> None:
        """Adds a schema and all that judges the same place with it."""
        size = bag.total()
        trail: dict[int, None] = {}
        waiting = [(0, self._schemas[identity])]
        while waiting:
            depth, here = waiting.pop()
            while len(trail) > depth:
                trail.popitem()
            if id(here) in trail:
                raise TooComplex("refers to itself without an end")
            trail[id(here)] = None
            if depth > MAX_CHAIN:
                raise TooComplex("leads from schema to schema too many times")
            # What only refers to another schema makes no state of its own, however many do so.
            self._add(_HOP if "$ref" in here and here.keys() <= _REFERRING else here, count, bag)
            size += count
            if size > MAX_BAG:
                raise TooComplex("applies too many schemas to one value")
            beside = [(depth + 1, part) for part in self._beside(here) if isinstance(part, dict)]
            self._spend(1 + len(beside))
            waiting += beside

    def _beside(self, schema: dict[str, Any]) -> Iterator[Any]:
        if "$ref" in schema:
            yield followed(self._root, schema["$ref"])
        yield from (part for _, part in in_place(schema))

    def _priced(self, bag: Bag) -> State:
        cost, text_cost, nested = 0.0, 0.0, 0
        for identity, count in bag.items():
            if identity not in self._prices:
                self._prices[identity] = _price(self._schemas[identity])
            own = self._prices[identity]
            cost, text_cost, nested = cost + count * own[0], text_cost + count * own[1], nested + count * own[2]
        if nested > MAX_UNEVALUATED:
            raise TooComplex("nests unevaluatedItems or unevaluatedProperties")
        factor = 10**nested  # what is "unevaluated" is found by judging everything beside it again
        return State(cost=cost * factor, text_cost=text_cost * factor)

    def _explore(self, state: State, bag: Bag) -> None:
        """Finds where the parts of a value in this state lead."""
        schemas = [(self._schemas[identity], count) for identity, count in bag.items()]
        self._spend(len(schemas))
        named = [(schema, count) for schema, count in schemas if not _ABOUT_MEMBERS.isdisjoint(schema)]
        others, owners = self._members(named)
        state.names = {name: self._state(self._below_name(others, own, name)) for name, own in owners.items()}
        state.other_name = self._state(others)
        placed = [(schema, count) for schema, count in schemas if not _ABOUT_ITEMS.isdisjoint(schema)]
        longest = max((len(schema.get("prefixItems", ())) for schema, _ in placed), default=0)
        state.prefix = [self._state(self._below_item(placed, index)) for index in range(longest)]
        state.rest = self._state(self._below_item(placed, longest))

    def _members(self, schemas: Schemas) -> tuple[Bag, dict[str, Schemas]]:
        """What judges a member that has no name of its own, and which of the schemas have one for which member."""
        others = Bag()
        owners: dict[str, Schemas] = {}
        for schema, count in schemas:
            patterns, own = schema.get("patternProperties", {}), schema.get("properties", {})
            self._spend(1 + len(patterns) + len(own))
            for part in patterns.values():  # any name may match any pattern
                self._add(part, count, others)
            for keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
                self._add(schema.get(keyword), count, others)
            for name in own:
                owners.setdefault(name, []).append((schema, count))
        return others, owners

    def _below_name(self, others: Bag, owners: Schemas, name: str) -> Bag:
        """A schema that names a member judges it by that, and no longer as one of those without a name."""
        self._spend(1 + len(others) + len(owners))
        seeds = others.copy()
        for schema, count in owners:
            self._add(schema.get("additionalProperties"), -count, seeds)
            self._add(schema["properties"][name], count, seeds)
        return +seeds

    def _below_item(self, schemas: Schemas, index: int) -> Bag:
        self._spend(1 + len(schemas))
        seeds = Bag()
        for schema, count in schemas:
            if index < len(schema.get("prefixItems", ())):
                self._add(schema["prefixItems"][index], count, seeds)
            else:
                self._add(schema.get("items"), count, seeds)
            for keyword in ("contains", "unevaluatedItems"):
                self._add(schema.get(keyword), count, seeds)
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


def _price(schema: dict[str, Any]) -> tuple[float, float, int]:
    """What the keywords of one schema cost at one place, and per byte of a text; how often it asks for the rest."""
    patterns = schema.get("patternProperties", {})
    cost = _PER_SCHEMA + _PER_KEYWORD * (len(schema) + len(patterns))
    cost += _PER_CHOICE * (len(schema.get("properties", ())) + len(schema.get("required", ())))
    for choice in (*schema.get("enum", ()), schema.get("const")):
        cost += _PER_LARGE_CHOICE if isinstance(choice, dict | list) else _PER_CHOICE
    if isinstance(schema.get("multipleOf"), float):
        cost += _FRACTION
    text_cost = _FORMAT if "format" in schema else 0.0
    for pattern in (*patterns, *([schema["pattern"]] if "pattern" in schema else ())):
        text_cost += pattern_cost(pattern) or 0.0
    return cost, text_cost, ("unevaluatedItems" in schema) + ("unevaluatedProperties" in schema)
