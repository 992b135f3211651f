"""Checks a tree against what is known of its variables: unknown names and fields, kinds that do not go together."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from policy.cel.alternatives import NUMBERS
from policy.cel.environment import VARIABLES
from policy.cel.functions import EVERYWHERE, FUNCTIONS, METHODS
from policy.cel.operators import RELATIONS, can_be_equal, can_be_ordered, computed, mixes_numbers
from policy.cel.patterns import slope
from policy.cel.shapes import ANYTHING, WORDS, Shape, list_of, of_kinds, union
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
    Ternary,
    Unary,
    walk,
)

_MAX_PROBLEMS = 10
_MAX_QUOTE = 60
_TRUTH = frozenset({"bool"})
_BOOL = of_kinds("bool")
_COMPUTED_WORDS = {"+": "added to", "-": "reduced by", "*": "multiplied by", "/": "divided by", "%": "divided by"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why an expression cannot be judged."""

    sentence: str
    is_about_absence: bool = False


class Checker:
    """Finds the shape of every node of one tree, and what is wrong with it.

    A rule is checked when it is saved. The same check with the shapes of one call's values tells afterwards why
    judging that call failed: then only what the engine itself minds is a problem, and nothing near is suggested.
    """

    def __init__(self, text: str, tree: Node, variables: Mapping[str, Shape], *, is_autopsy: bool = False) -> None:
        self._text = text
        self._is_autopsy = is_autopsy
        self._variables = dict(variables)
        self._guarded = _guarded(tree)
        self._shapes: dict[int, Shape] = {}
        self.problems: list[Problem] = []
        whole = self.shape(tree)
        if not self.problems and not whole.may_be("bool"):
            self._say(f"A condition is true or false; this one is {whole.words}")

    def shape_of(self, node: Node) -> Shape:
        """The shape that was found for a node of the tree."""
        return self._shapes.get(id(node), ANYTHING)

    def shape(self, node: Node) -> Shape:
        found = self._shapes[id(node)] = self._found(node)
        return found

    def _found(self, node: Node) -> Shape:
        match node:
            case Literal():
                return of_kinds(node.kind)
            case Name():
                return self._variable(node)
            case Select():
                return self._field(node)
            case Has():
                self._field(node.operand, is_asked_for=True)
                return _BOOL
            case Index():
                return self._item(node)
            case Call():
                return self._call(node)
            case Macro():
                return self._macro(node)
            case Unary():
                return self._unary(node)
            case Binary(operator="in"):
                return self._membership(node)
            case Binary():
                return self._relation(node) if node.operator in RELATIONS else self._arithmetic(node)
            case Logic():
                for operand in node.operands:
                    self._demand(operand, _TRUTH, f"`{node.operator}` joins")
                return _BOOL
            case Ternary():
                self._demand(node.test, _TRUTH, "`?` asks for")
                return union(self.shape(node.then), self.shape(node.otherwise))
            case ListOf():
                return list_of(union(*(self.shape(item) for item in node.items)) if node.items else ANYTHING)
            case MapOf():
                for key, value in node.entries:
                    if not self.shape(key).may_be("text", "int", "bool"):
                        self._say(f"{self.quoted(key)} is {self.shape_of(key).words} and cannot be a key")
                    self.shape(value)
                return of_kinds("map")
        return ANYTHING

    # Variables and fields.

    def _variable(self, node: Name) -> Shape:
        found = self._variables.get(node.name)
        if found is None:
            self._say(
                f"There is no variable `{node.name}`{self._near(node.name, list(self._variables))}; "
                f"a condition knows {', '.join(VARIABLES)}"
            )
        return found or ANYTHING

    def _field(self, node: Select, *, is_asked_for: bool = False) -> Shape:
        operand = self.shape(node.operand)
        owner, quoted = self.quoted(node.operand), self.quoted(node)
        if not operand.may_be("map"):
            self._say(f"{owner} is {operand.words} and has no field `{node.field}`")
            return ANYTHING
        is_safe = is_asked_for or node in self._guarded
        field = operand.field(node.field)
        if field is None:
            if not self._is_autopsy:
                self._say(f"{owner} has no field `{node.field}`{self._near(node.field, operand.field_names)}")
            elif not is_safe:
                self._say(f"{quoted} is not given", is_about_absence=True)
            return ANYTHING
        if not is_safe and field.is_declared and not field.is_required:
            asking = f"has({quoted[1:-1]})" if node.field.isidentifier() else f'"{node.field}" in {owner[1:-1]}'
            self._say(f"{quoted} may be absent: ask first, as in `{asking} && …`", is_about_absence=True)
        return field.shape

    def _item(self, node: Index) -> Shape:
        operand, key = self.shape(node.operand), self.shape(node.key)
        if not operand.may_be("list", "map"):
            self._say(f"{self.quoted(node.operand)} is {operand.words}; only lists and objects have items")
        elif not (operand.may_be("list") and key.may_be("int")) and not (operand.may_be("map") and key.may_be("text")):
            wanted = "a whole number" if operand.may_be("list") else "a text"
            self._say(f"{self.quoted(node.operand)} is indexed by {wanted}; {self.quoted(node.key)} is {key.words}")
        return operand.items if operand.kinds == {"list"} else ANYTHING

    # Functions and macros.

    def _call(self, node: Call) -> Shape:
        known = FUNCTIONS if node.target is None else METHODS
        function = known.get(node.function)
        if function is None:
            self._say(self._unknown_function(node))
            for part in node.parts:
                self.shape(part)
            return ANYTHING
        if len(node.parts) != len(function.takes):
            expected = len(function.takes) - (node.target is not None)
            hint = "; moments are in UTC" if node.function.startswith("get") else ""
            self._say(f"`{node.function}()` takes {expected or 'no'} argument{'s' * (expected != 1)}{hint}")
        for part, kinds in zip(node.parts, function.takes, strict=False):
            self._demand(part, kinds, f"`{node.function}()` takes")
        if node.function == "matches" and len(node.arguments) == 1:
            self._pattern(node.arguments[0])
        return of_kinds(function.gives)

    def _pattern(self, node: Node) -> None:
        if not isinstance(node, Literal):
            self._say("`matches()` takes a pattern that is written out, not computed")
        elif isinstance(node.value, str) and slope(node.value) is None:
            self._say(
                f"The pattern {self.quoted(node)} is not accepted: it is no regular expression, "
                "or it is too large, or it uses look-around or back-references"
            )

    def _unknown_function(self, node: Call) -> str:
        if node.target is None and node.function in METHODS:
            return f"`{node.function}()` is written behind a value, as in `input.name.{node.function}(…)`"
        if node.target is not None and node.function in FUNCTIONS:
            return f"`{node.function}()` is written before a value, as in `{node.function}(input.name)`"
        known = sorted({*FUNCTIONS, *METHODS, *EVERYWHERE})
        return f"The function `{node.function}()` is not allowed in a condition{self._near(node.function, known)}"

    def _macro(self, node: Macro) -> Shape:
        over = self.shape(node.range)
        if not over.may_be("list", "map"):
            self._say(f"`{node.kind}()` goes through a list or an object; {self.quoted(node.range)} is {over.words}")
        outer = self._variables
        self._variables = outer | {node.variable: over.items if over.may_be("list", "map") else ANYTHING}
        tests = node.bodies[:-1] if node.kind == "map" else node.bodies
        for test in tests:
            self._demand(test, _TRUTH, f"`{node.kind}()` asks of each item")
        made = self.shape(node.bodies[-1]) if node.kind == "map" else ANYTHING
        self._variables = outer
        if node.kind == "map":
            return list_of(made)
        return list_of(over.items) if node.kind == "filter" else _BOOL

    # Operators.

    def _unary(self, node: Unary) -> Shape:
        if node.operator == "!":
            self._demand(node.operand, _TRUTH, "`!` turns round")
            return _BOOL
        self._demand(node.operand, NUMBERS, "`-` turns round")
        return of_kinds(*(self.shape_of(node.operand).kinds & NUMBERS))

    def _membership(self, node: Binary) -> Shape:
        left, right = self.shape(node.left), self.shape(node.right)
        if not right.may_be("list", "map"):
            hint = f"; write `{self.quoted(node.right)[1:-1]}.contains(…)`" if right.may_be("text") else ""
            self._say(f"`in` looks into a list or an object; {self.quoted(node.right)} is {right.words}{hint}")
        elif not self._is_autopsy and not can_be_equal(left, right.items):
            self._say(
                f"{self.quoted(node.left)} is {left.words}, and what {self.quoted(node.right)} holds is "
                f"{right.items.words}: it is never in there"
            )
        return _BOOL

    def _relation(self, node: Binary) -> Shape:
        left, right = self.shape(node.left), self.shape(node.right)
        if node.operator in ("==", "!="):
            if not self._is_autopsy and not can_be_equal(left, right):
                self._unlike(node, "they are never equal")
        elif not can_be_ordered(left, right):
            self._unlike(node, f"`{node.operator}` cannot compare them")
        return _BOOL

    def _arithmetic(self, node: Binary) -> Shape:
        left, right = self.shape(node.left), self.shape(node.right)
        if mixes_numbers(left, right):
            self._unlike(node, f"`{node.operator}` does not mix whole and decimal numbers; use `double()` or `int()`")
            return of_kinds("int", "double")
        if (
            node.operator in "/%"
            and isinstance(node.right, Literal)
            and node.right.kind == "int"
            and node.right.value == 0
        ):
            self._say(f"{self.quoted(node)} divides by zero")
        found = computed(node.operator, left, right)
        if found is None:
            self._unlike(node, f"one cannot be {_COMPUTED_WORDS[node.operator]} the other")
        return found or ANYTHING

    def _demand(self, node: Node, kinds: frozenset[str], purpose: str) -> None:
        """Complains unless a node can be one of some kinds."""
        shape = self.shape(node)
        if not shape.may_be(*kinds):
            expected = " or ".join(word for kind, word in WORDS.items() if kind in kinds)
            self._say(f"{purpose} {expected}; {self.quoted(node)} is {shape.words}")

    def _unlike(self, node: Binary, verdict: str) -> None:
        left, right = self.shape_of(node.left), self.shape_of(node.right)
        self._say(f"{self.quoted(node.left)} is {left.words} and {self.quoted(node.right)} is {right.words}: {verdict}")

    # Words.

    def quoted(self, node: Node) -> str:
        """A node as its author wrote it, on one line."""
        quoted = " ".join(self._text[node.at : node.end].split())
        return f"`{quoted}`" if len(quoted) <= _MAX_QUOTE else f"`{quoted[:_MAX_QUOTE]}…`"

    def _near(self, name: str, known: list[str]) -> str:
        close = [] if self._is_autopsy else get_close_matches(name, known, 1)
        return f" (did you mean `{close[0]}`?)" if close else ""

    def _say(self, words: str, *, is_about_absence: bool = False) -> None:
        problem = Problem(f"{words}.", is_about_absence)
        if problem not in self.problems and len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)


def _guarded(tree: Node) -> frozenset[Node]:
    """The fields that an expression asks for before it uses them: has(a.b), or "b" in a."""
    asked: set[Node] = set()
    for node in walk(tree):
        if isinstance(node, Has):
            asked.add(node.operand)
        elif isinstance(node, Binary) and node.operator == "in" and isinstance(node.left, Literal):
            asked.add(Select(at=0, end=0, operand=node.right, field=str(node.left.value)))
    return frozenset(asked)
