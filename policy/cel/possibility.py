"""Whether a condition can ever be true: its cases one by one, each refused only for a contradiction."""

from policy.cel.checking import Checker
from policy.cel.constants import Constant, Incomputable, constant
from policy.cel.domains import FLIPPED, NEGATED, Domain, same
from policy.cel.functions import MOMENT_RANGES
from policy.cel.operators import RELATIONS
from policy.cel.tree import Binary, Call, Has, Literal, Logic, Macro, Node, Select, Ternary, Unary

MAX_CASES = 64
_MAX_REASONS = 3
_SIGNS = {
    "<": frozenset({-1}),
    "<=": frozenset({-1, 0}),
    "==": frozenset({0}),
    "!=": frozenset({-1, 1}),
    ">=": frozenset({0, 1}),
    ">": frozenset({1}),
}

_Claim = tuple[Node, bool]  # a part without && and ||, and whether it is to be true
_Case = tuple[_Claim, ...]  # claims that must come true together


class _TooMany(Exception):
    """More cases than are worth looking at; the condition has the benefit of the doubt."""


class Possibility:
    """Looks for a case of a checked tree in which it is true."""

    def __init__(self, text: str, checker: Checker) -> None:
        self._text = text
        self._checker = checker
        self._constants: dict[int, Constant | None] = {}

    def obstacle(self, tree: Node) -> str | None:
        """Why the tree is never true; None if it may be."""
        try:
            cases = self._cases(tree, True)
        except _TooMany:
            return None
        reasons: list[str] = []
        for case in cases:
            reason = self._contradiction(case)
            if reason is None:
                return None
            if reason not in reasons:
                reasons.append(reason)
        return "; ".join(reasons[:_MAX_REASONS]) or "it is always false"

    # The cases: "and" multiplies, "or" adds.

    def _cases(self, node: Node, wanted: bool) -> list[_Case]:
        if (fixed := self._constant(node)) is not None:
            return [()] if fixed.value is wanted else []
        match node:
            case Unary(operator="!"):
                return self._cases(node.operand, not wanted)
            case Logic():
                parts = [self._cases(operand, wanted) for operand in node.operands]
                return _joined(parts) if (node.operator == "&&") == wanted else _added(parts)
            case Ternary():
                yes = _joined([self._cases(node.test, True), self._cases(node.then, wanted)])
                no = _joined([self._cases(node.test, False), self._cases(node.otherwise, wanted)])
                return _added([yes, no])
            case Binary(operator="==" | "!=", left=left, right=Literal(kind="bool", value=value)):
                if self._checker.shape_of(left).kinds == {"bool"}:
                    return self._cases(left, (node.operator == "==") == (value == wanted))
        return [((node, wanted),)]

    # One case.

    def _contradiction(self, case: _Case) -> str | None:
        claims = dict(case)
        for node, wanted in case:
            if claims[node] != wanted:
                return f"{self._checker.quoted(node)} cannot be both true and false"
            if (reason := self._own_contradiction(node, wanted)) is not None:
                return reason
        return self._contradictory_values(case) or self._contradictory_relations(case)

    def _own_contradiction(self, node: Node, wanted: bool) -> str | None:
        """What rules a claim out by itself."""
        quoted = self._checker.quoted
        match node:
            case Has(operand=Select() as select) if not wanted:
                field = self._checker.shape_of(select.operand).field(select.field)
                if field is not None and field.is_required:
                    return f"{quoted(select)} is never absent"
            case Macro(kind="exists" | "exists_one") if wanted:
                inner = self.obstacle(node.bodies[0])
                if inner is not None:
                    return f"no item of {quoted(node.range)} can be meant: {inner}"
            case Binary(operator="in", left=left, right=right) if wanted:
                known = self._checker.shape_of(right)
                values = known.items.values if known.kinds == {"list"} else None
                sought = self._constant(left)
                if sought and values is not None and not any(same(sought.value, one) for one in values):
                    return f"{quoted(left)} is never in {quoted(right)}"
        return None

    def _contradictory_values(self, case: _Case) -> str | None:
        """What is demanded of one part of the call, taken together."""
        domains: dict[Node, Domain] = {}
        said: dict[Node, list[str]] = {}
        for node, wanted in case:
            key, operator, values = self._demand(node, wanted)
            if key is None:
                continue
            if key not in domains:
                domains[key] = self._domain(key)
            domain = domains[key]
            if operator == "in":
                domain.choose(values)
            elif operator == "not in":
                domain.exclude(values)
            else:
                domain.demand(operator, values[0])
            said.setdefault(key, []).append(self._claimed(node, wanted))
            if domain.is_empty:
                if len(said[key]) == 1:
                    return f"{said[key][0]} is asked, but {self._checker.quoted(key)} is {self._domain(key).nature}"
                return _excluding(said[key])
        absent = {node.operand for node, wanted in case if isinstance(node, Has) and not wanted}
        for key in domains:
            if key in absent:
                return f"{self._checker.quoted(key)} cannot be absent and have a value"
        return None

    def _demand(self, node: Node, wanted: bool) -> tuple[Node | None, str, list[object]]:
        """What a claim demands of which part: an operator and a value, or a list of values."""
        match node:
            case Binary(operator="in", left=left, right=right):
                listed = self._constant(right)
                if listed is not None and isinstance(listed.value, list):
                    return left, "in" if wanted else "not in", listed.value
            case Binary(operator=operator, left=left, right=right) if operator in RELATIONS:
                operator = operator if wanted else NEGATED[operator]
                if (fixed := self._constant(right)) is not None:
                    return left, operator, [fixed.value]
                if (fixed := self._constant(left)) is not None:
                    return right, FLIPPED[operator], [fixed.value]
            case Select():
                return node, "==", [wanted]
        return None, "", []

    def _domain(self, key: Node) -> Domain:
        shape = self._checker.shape_of(key)
        if isinstance(key, Call) and key.function == "size":
            return Domain(shape, low=0)
        is_of_moment = (
            isinstance(key, Call) and key.target and self._checker.shape_of(key.target).kinds == {"timestamp"}
        )
        if isinstance(key, Call) and is_of_moment and key.function in MOMENT_RANGES:
            low, high = MOMENT_RANGES[key.function]
            return Domain(shape, low=low, high=high)
        return Domain(shape)

    def _contradictory_relations(self, case: _Case) -> str | None:
        """Two parts of the call compared with each other, in several ways."""
        allowed: dict[tuple[Node, Node], frozenset[int]] = {}
        said: dict[tuple[Node, Node], list[str]] = {}
        for node, wanted in case:
            if not isinstance(node, Binary) or node.operator not in RELATIONS:
                continue
            operator = node.operator if wanted else NEGATED[node.operator]
            pair = (node.left, node.right)
            if (node.right, node.left) in allowed:
                pair, operator = (node.right, node.left), FLIPPED[operator]
            before = allowed.get(pair, frozenset({0}) if node.left == node.right else frozenset({-1, 0, 1}))
            allowed[pair] = before & _SIGNS[operator]
            said.setdefault(pair, []).append(self._claimed(node, wanted))
            if not allowed[pair]:
                return _excluding(said[pair])
        return None

    def _constant(self, node: Node) -> Constant | None:
        if id(node) not in self._constants:
            try:
                self._constants[id(node)] = constant(self._text, node)
            except Incomputable:
                self._constants[id(node)] = None
        return self._constants[id(node)]

    def _claimed(self, node: Node, wanted: bool) -> str:
        return self._checker.quoted(node) if wanted else f"not {self._checker.quoted(node)}"


def _joined(parts: list[list[_Case]]) -> list[_Case]:
    found: list[_Case] = [()]
    for part in parts:
        if len(found) * len(part) > MAX_CASES:
            raise _TooMany
        found = [(*one, *other) for one in found for other in part]
    return found


def _added(parts: list[list[_Case]]) -> list[_Case]:
    found = [case for part in parts for case in part]
    if len(found) > MAX_CASES:
        raise _TooMany
    return found


def _excluding(claims: list[str]) -> str:
    if len(claims) == 1:
        return f"{claims[0]} excludes itself"
    return f"{', '.join(claims[:-1])} and {claims[-1]} exclude each other"
