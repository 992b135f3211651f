"""How the time to judge an expression grows with the arguments of a call, and how much of it is too much.

The engine copies what it touches: a field that is read inside a macro copies the object it is read from, and map and
filter copy their result at every step. So time grows with a power of the size of the arguments, and the power is known
from the expression alone.
"""

from collections.abc import Mapping
from typing import Any

from policy.cel.tree import Binary, Call, Has, Index, ListOf, Logic, Macro, MapOf, Name, Node, Select, Ternary, Unary

BUDGET = 8_000_000  # steps; about half a second
_TEXT_STEP = 64  # characters that cost as much as one value


def degree(node: Node, sizes: Mapping[str, int] | None = None) -> int:
    """The power: 0 if the arguments' size does not matter, 1 if time grows with it, and so on.

    `sizes` is the power of each macro's variable: 0 for an item of the innermost one, since all items together are as
    large as their list.
    """
    return _weigh(node, {"input": 1} if sizes is None else sizes)[0]


def _weigh(node: Node, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The power of a node's time, and of its value's size."""
    match node:
        case Name():
            return 0, sizes.get(node.name, 0)
        case Macro():
            return _weigh_macro(node, sizes)
        case Select() | Index():
            weighed = [_weigh(part, sizes) for part in node.parts]
            return max(max(pair) for pair in weighed), weighed[0][1]
        case Has() | Unary() | Logic() | Call() | Binary() | Ternary() | ListOf() | MapOf():
            weighed = [_weigh(part, sizes) for part in node.parts] or [(0, 0)]
            time, size = max(pair[0] for pair in weighed), max(pair[1] for pair in weighed)
            compiles = isinstance(node, Call) and node.function == "matches"
            is_small = isinstance(node, Has | Unary | Logic) or (
                isinstance(node, Call | Binary) and not (isinstance(node, Binary) and node.operator == "+")
            )
            return max(time, size, int(compiles)), 0 if is_small else size
    return 0, 0


def _weigh_macro(node: Macro, sizes: Mapping[str, int]) -> tuple[int, int]:
    time, over = _weigh(node.range, sizes)
    inside = {name: max(size, 1) for name, size in sizes.items()} | {node.variable: 0}
    bodies = [_weigh(body, inside) for body in node.bodies]
    each = max(pair[0] for pair in bodies)
    if node.kind not in ("map", "filter"):
        return max(time, over + each), 0
    made = over + (bodies[-1][1] if node.kind == "map" else 0)
    return max(time, over + each, over + made), made


def size(value: Any) -> int:
    """How many values there are inside a value, long texts counting as several."""
    total = 0
    waiting = [value]
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
    return total


def is_affordable(power: int, loops: int, value: Any) -> bool:
    """Whether an expression of such a power, with so many macros, can be judged for this value in time."""
    return power < 2 or loops * size(value) ** power <= BUDGET
