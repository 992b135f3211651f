"""The tree of an expression; two nodes are equal when they mean the same, wherever they stand."""

from collections.abc import Iterator
from dataclasses import dataclass, field

MACROS = ("all", "exists", "exists_one", "map", "filter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of an expression, from one offset of the text to another."""

    at: int = field(compare=False)
    end: int = field(compare=False)

    @property
    def parts(self) -> tuple["Node", ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Node):
    kind: str  # int | double | text | bool | null: 1, 1.0 and true are not the same
    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Node):
    """A field by its name: a.b, and a["b"] too."""

    operand: Node
    field: str

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Has(Node):
    """has(a.b): whether there is such a field."""

    operand: Select

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(Node):
    operand: Node
    key: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.operand, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """size(a), or a.size() with a target."""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.arguments if self.target is None else (self.target, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Macro(Node):
    """range.kind(variable, bodies): the last body is what is asked or made of each item, one before it chooses."""

    kind: str
    range: Node
    variable: str
    bodies: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.range, *self.bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(Node):
    operator: str  # ! | -
    operand: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Node):
    operator: str  # == != < <= > >= in + - * / %
    left: Node
    right: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic(Node):
    """Two or more parts joined by && or by ||."""

    operator: str
    operands: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.operands


@dataclass(frozen=True, slots=True, kw_only=True)
class Ternary(Node):
    test: Node
    then: Node
    otherwise: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.test, self.then, self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(Node):
    items: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.items


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf(Node):
    entries: tuple[tuple[Node, Node], ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(part for entry in self.entries for part in entry)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, outermost first."""
    yield node
    for part in node.parts:
        yield from walk(part)


def free_names(node: Node, bound: frozenset[str] = frozenset()) -> frozenset[str]:
    """The variables a node speaks of, those of its own macros left out."""
    if isinstance(node, Name):
        return frozenset({node.name}) - bound
    if isinstance(node, Macro):
        inside = (free_names(body, bound | {node.variable}) for body in node.bodies)
        return free_names(node.range, bound).union(*inside)
    return frozenset[str]().union(*(free_names(part, bound) for part in node.parts))
