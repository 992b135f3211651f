"""Parts of an expression that speak of no variable, computed once by the engine itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from policy.cel.engine import program, run
from policy.cel.tree import Literal, Node, free_names


class Incomputable(Exception):
    """A constant part has no value: it divides by zero, or reads a date that is none."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


def constant(text: str, node: Node) -> Constant | None:
    """The value of a node that is the same for every call; None if it depends on one."""
    if isinstance(node, Literal):
        return Constant(node.value)
    if free_names(node):
        return None
    try:
        return Constant(run(program(text[node.at : node.end]), {}))
    except Exception:
        raise Incomputable from None


def constant_parts(node: Node) -> Iterator[Node]:
    """The largest parts that are constant, plain literals left out."""
    if isinstance(node, Literal):
        return
    if not free_names(node):
        yield node
        return
    for part in node.parts:
        yield from constant_parts(part)
