"""What operators make of the kinds of their operands, as the engine does."""

from policy.cel.alternatives import NUMBERS
from policy.cel.shapes import ANYTHING, Shape, list_of, of_kinds, union

RELATIONS = ("==", "!=", "<", "<=", ">", ">=")
_SUMS = {
    ("+", "text", "text"): "text",
    ("+", "list", "list"): "list",
    ("+", "timestamp", "duration"): "timestamp",
    ("-", "timestamp", "duration"): "timestamp",
    ("-", "timestamp", "timestamp"): "duration",
    ("+", "duration", "duration"): "duration",
    ("-", "duration", "duration"): "duration",
    ("%", "int", "int"): "int",
} | {(operator, kind, kind): kind for operator in "+-*/" for kind in NUMBERS}
_UNORDERED = frozenset({"null", "list", "map"})


def computed(operator: str, left: Shape, right: Shape) -> Shape | None:
    """What an arithmetic operator gives; None if no kinds of these operands go together."""
    if left.is_anything and right.is_anything:
        return ANYTHING
    found = {kind for one in left.kinds for other in right.kinds if (kind := _SUMS.get((operator, one, other)))}
    if not found:
        return None
    return list_of(union(left.items, right.items)) if found == {"list"} else of_kinds(*found)


def mixes_numbers(left: Shape, right: Shape) -> bool:
    """Whether a sum would depend on how a number was written: the engine never adds 1 and 1.5."""
    if left.is_anything or right.is_anything:
        return False
    return left.kinds | right.kinds >= NUMBERS and left.may_be(*NUMBERS) and right.may_be(*NUMBERS)


def can_be_equal(left: Shape, right: Shape) -> bool:
    return not _families(left).isdisjoint(_families(right))


def can_be_ordered(left: Shape, right: Shape) -> bool:
    return bool((_families(left) & _families(right)) - _UNORDERED)


def _families(shape: Shape) -> frozenset[str]:
    """Kinds as comparisons see them: a whole and a decimal number are alike."""
    return frozenset("number" if kind in NUMBERS else kind for kind in shape.kinds)
