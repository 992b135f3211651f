"""How much time an expression may take, as a polynomial in the size of the call's arguments.

The engine copies what it touches: reading a field copies the object it is read from, and map and filter copy their
result at every step. Nothing stops it once it runs, so what it will cost is reckoned before. One step is about a tenth
of a microsecond.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from policy.cel.patterns import slope
from policy.cel.tree import (
    Binary,
    Call,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Name,
    Node,
    Select,
    free_names,
    walk,
)

BUDGET = 8_000_000  # steps of one judgement
MAX_FIXED = 1_000_000  # steps that do not depend on the arguments
LEAST = 20  # values that the arguments of any call may have
_MOST = 205_000  # more values than a body that we accept can hold
_TEXT_STEP = 64  # characters that cost as much as one value
_ROUND = 4  # steps of a macro for each item, besides its body
_PATTERN = 3_000  # steps to compile a pattern
_BYTES_A_STEP = 2 * _TEXT_STEP / 100  # of a text, for each nanosecond that a byte takes
_SMALL = 4  # values of a variable that is not of the caller's making

Polynomial = tuple[float, ...]  # the coefficients, of the constant first
_ONE: Polynomial = (1,)
_SIZE: Polynomial = (0, 1)


@dataclass(frozen=True, slots=True)
class _Value:
    """How many items a value has, and how large each is on average."""

    items: Polynomial = _ONE
    each: Polynomial = _ONE

    @property
    def size(self) -> Polynomial:
        return _times(self.items, self.each)

    @property
    def item(self) -> "_Value":
        """One item: all of them together are as large as the value."""
        return _Value(self.each)

    @property
    def largest_item(self) -> "_Value":
        """One item if it is as large as the whole."""
        return _Value(self.size)


def largest_input(tree: Node) -> int | None:
    """The size of arguments up to which the budget suffices; None if it suffices for all that we accept."""
    if not any(isinstance(node, Macro) or _is_match(node) for node in walk(tree)):
        return None  # linear, and not steeply
    steps, _ = _weigh(tree, {"input": _Value(_SIZE)}, {})
    if _at(steps, 0) > MAX_FIXED:
        return 0
    if _at(steps, _MOST) <= BUDGET:
        return None
    enough, too_much = 0, _MOST
    while too_much - enough > 1:
        middle = (enough + too_much) // 2
        enough, too_much = (middle, too_much) if _at(steps, middle) <= BUDGET else (enough, middle)
    return enough


def is_larger(value: Any, limit: int) -> bool:
    """Whether a value holds more than so many values, keys and long texts included."""
    waiting, total = [value], 0
    while waiting:
        here = waiting.pop()
        total += 1
        if isinstance(here, str):
            total += len(here) // _TEXT_STEP
        elif isinstance(here, Mapping):
            total += len(here)
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)
        if total + len(waiting) > limit:
            return True
    return False


def _weigh(node: Node, values: Mapping[str, _Value], largest: Mapping[str, _Value]) -> tuple[Polynomial, _Value]:
    """The steps to evaluate a node, and what is known of its value; `largest`: the items of outer macros at worst."""
    match node:
        case Literal():
            return _ONE, _Value((1 + len(node.value) // _TEXT_STEP if isinstance(node.value, str) else 1,))
        case Name():
            return _ONE, values.get(node.name, _Value((_SMALL,)))
        case Macro():
            return _weigh_macro(node, values, largest)
    weighed = [_weigh(part, values, largest) for part in node.parts]
    size = _plus(*(value.size for _, value in weighed))
    steps = _plus(_ONE, size, *(step for step, _ in weighed))
    match node:
        case Select() | Index():
            return steps, _Value(weighed[0][1].size)
        case ListOf() | MapOf():
            count = max(len(node.parts), 1)
            return steps, _Value((count,), tuple(part / count for part in _plus(size, (count,))))
        case Call() if _is_match(node):
            searched = _times(size, (_slope(node.arguments) * _BYTES_A_STEP,))
            return _plus(steps, (_PATTERN,), searched), _Value()
        case Has() | Call() | Logic():
            return steps, _Value()
        case Binary() if node.operator != "+":
            return steps, _Value()
    return steps, _Value(size)


def _weigh_macro(node: Macro, values: Mapping[str, _Value], largest: Mapping[str, _Value]) -> tuple[Polynomial, _Value]:
    steps, over = _weigh(node.range, values, largest)
    # All items of an outer macro are as large as its list, also if each meets a whole list here; but one that meets
    # its own parts may be the largest of all.
    met = {name: largest[name] for name in free_names(node.range) if name in largest}
    inside = {**values, **met, node.variable: over.item}
    bodies = [_weigh(body, inside, {**largest, node.variable: over.largest_item}) for body in node.bodies]
    rounds = _times(over.items, _plus((_ROUND,), *(step for step, _ in bodies)))
    if node.kind not in ("map", "filter"):
        return _plus(steps, over.size, rounds), _Value()
    made = _Value(over.items, bodies[-1][1].size if node.kind == "map" else over.each)
    return _plus(steps, over.size, rounds, _times(over.items, made.size)), made


def _is_match(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "matches"


def _slope(arguments: tuple[Node, ...]) -> float:
    """What a pattern costs for each byte; more than there is if it is none or is not known yet."""
    found = [slope(each.value) for each in arguments if isinstance(each, Literal) and isinstance(each.value, str)]
    return found[0] if len(found) == 1 and found[0] is not None else float(BUDGET)


def _plus(*polynomials: Polynomial) -> Polynomial:
    return tuple(sum(column) for column in zip_longest(*polynomials, fillvalue=0))


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    product = [0.0] * (len(one) + len(other) - 1)
    for power, factor in enumerate(one):
        for more, by in enumerate(other):
            product[power + more] += factor * by
    return tuple(product)


def _at(polynomial: Polynomial, size: int) -> float:
    return sum(factor * float(size) ** power for power, factor in enumerate(polynomial))
