"""Tokens to a tree, within bounds that keep every later step small."""

from collections.abc import Callable

from policy.cel.tokens import RESERVED, BadSyntax, Token, tokens
from policy.cel.tree import (
    MACROS,
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
)

MAX_NODES = 200
MAX_DEPTH = 20
MAX_NESTED_MACROS = 2

_RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_LEVELS = (_RELATIONS, ("+", "-"), ("*", "/", "%"))  # from the loosest to the tightest
_WORDS = {"true": ("bool", True), "false": ("bool", False), "null": ("null", None)}
_SIGNS = {"end": "the end", "text": "a text", "int": "a number", "double": "a number"}


def parsed(text: str) -> Node:
    """The tree of a text; BadSyntax if it is none, or too large."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._place = 0
        self._nodes = 0
        self._depth = 0
        self._macros = 0

    def whole(self) -> Node:
        if self._next.kind == "end":
            raise BadSyntax("the condition is empty", 0)
        node = self._expression()
        if self._next.kind != "end":
            raise self._unexpected("the end")
        return node

    # Grammar, from the loosest operator to the tightest.

    def _expression(self) -> Node:
        self._enter()
        start = self._next.at
        node = self._either()
        if self._took("?"):
            then = self._either()
            self._expect(":")
            otherwise = self._expression()
            node = self._made(Ternary(at=start, end=self._end, test=node, then=then, otherwise=otherwise))
        self._depth -= 1
        return node

    def _either(self) -> Node:
        return self._joined("||", lambda: self._joined("&&", lambda: self._binary(0)))

    def _joined(self, operator: str, part: Callable[[], Node]) -> Node:
        start = self._next.at
        operands = [part()]
        while self._took(operator):
            operands.append(part())
        if len(operands) == 1:
            return operands[0]
        return self._made(Logic(at=start, end=self._end, operator=operator, operands=tuple(operands)))

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        start = self._next.at
        node = self._binary(level + 1)
        chained = 0
        while self._next.spelling in _LEVELS[level] and self._next.kind in ("symbol", "name"):
            operator = self._take().spelling
            right = self._binary(level + 1)
            node = self._made(Binary(at=start, end=self._end, operator=operator, left=node, right=right))
            self._enter()  # a chain leans to the left: each link is one level deeper
            chained += 1
        self._depth -= chained
        return node

    def _unary(self) -> Node:
        token = self._next
        if token.kind != "symbol" or token.spelling not in ("!", "-"):
            return self._member()
        self._take()
        if token.spelling == "-" and self._next.kind in ("int", "double"):
            return self._member(sign=token)
        if self._next.kind == "symbol" and self._next.spelling in "!-" and self._next.spelling != token.spelling:
            raise BadSyntax(f"{self._next.spelling!r} cannot follow {token.spelling!r}; use parentheses", self._next.at)
        self._enter()
        operand = self._unary()
        self._depth -= 1
        return self._made(Unary(at=token.at, end=self._end, operator=token.spelling, operand=operand))

    def _member(self, sign: Token | None = None) -> Node:
        start = sign.at if sign else self._next.at
        node = self._primary(sign)
        links = 0
        while self._next.kind == "symbol" and self._next.spelling in ".[":
            node = self._selected(start, node) if self._take().spelling == "." else self._indexed(start, node)
            self._enter()
            links += 1
        self._depth -= links
        return node

    def _selected(self, start: int, operand: Node) -> Node:
        if self._next.spelling == "?":
            raise BadSyntax("optional fields (.?) are not allowed in a condition; use has()", self._next.at)
        name = self._name("a field", may_be_reserved=True)
        if not self._took("("):
            return self._made(Select(at=start, end=self._end, operand=operand, field=name.spelling))
        if name.spelling in MACROS:
            return self._macro(start, operand, name)
        arguments = self._listed(")")
        return self._made(Call(at=start, end=self._end, function=name.spelling, target=operand, arguments=arguments))

    def _macro(self, start: int, over: Node, kind: Token) -> Node:
        self._macros += 1
        if self._macros > MAX_NESTED_MACROS:
            raise BadSyntax(f"all, exists, map and filter may be nested {MAX_NESTED_MACROS} deep, not deeper", kind.at)
        variable = self._name("a name for the item")
        if variable.spelling in ("agent", "tool", "input", "context", "now"):
            raise BadSyntax(f"'{variable.spelling}' already has a meaning; give the item another name", variable.at)
        self._expect(",")
        bodies = [self._expression()]
        if kind.spelling == "map" and self._took(","):
            bodies.append(self._expression())
        self._expect(")")
        self._macros -= 1
        return self._made(
            Macro(
                at=start,
                end=self._end,
                kind=kind.spelling,
                range=over,
                variable=variable.spelling,
                bodies=tuple(bodies),
            )
        )

    def _indexed(self, start: int, operand: Node) -> Node:
        if self._next.spelling == "?":
            raise BadSyntax("optional fields ([?) are not allowed in a condition; use has()", self._next.at)
        key = self._expression()
        self._expect("]")
        if isinstance(key, Literal) and isinstance(key.value, str):
            return self._made(Select(at=start, end=self._end, operand=operand, field=key.value))
        return self._made(Index(at=start, end=self._end, operand=operand, key=key))

    def _primary(self, sign: Token | None) -> Node:
        token = self._take()
        match token.kind, token.spelling:
            case (("int" | "double" | "text"), _):
                return self._literal(token, sign)
            case "symbol", "(":
                node = self._expression()
                self._expect(")")
                return node
            case "symbol", "[":
                items = self._listed("]")
                return self._made(ListOf(at=token.at, end=self._end, items=items))
            case "symbol", "{":
                return self._map(token)
            case "name", word if word in _WORDS:
                kind, value = _WORDS[word]
                return self._made(Literal(at=token.at, end=token.end, kind=kind, value=value))
            case "name", word if word not in RESERVED:
                return self._named(token)
        raise self._unexpected("a value", token)

    def _literal(self, token: Token, sign: Token | None) -> Node:
        value = token.value
        if sign is not None and isinstance(value, int | float):
            value = -value
        if value == 2**63 and token.kind == "int":
            raise BadSyntax("a whole number has at most 64 bits", token.at)
        return self._made(Literal(at=sign.at if sign else token.at, end=token.end, kind=token.kind, value=value))

    def _named(self, token: Token) -> Node:
        if self._next.spelling == "{" and self._next.kind == "symbol":
            raise BadSyntax("messages, a name followed by {…}, are not allowed in a condition", token.at)
        if not self._took("("):
            return self._made(Name(at=token.at, end=token.end, name=token.spelling))
        arguments = self._listed(")")
        if token.spelling == "has":
            return self._has(token, arguments)
        return self._made(Call(at=token.at, end=self._end, function=token.spelling, target=None, arguments=arguments))

    def _has(self, token: Token, arguments: tuple[Node, ...]) -> Node:
        spelled = self._tokens[self._place - 2].kind == "name"  # a.b, where a["b"] means the same elsewhere
        if len(arguments) != 1 or not isinstance(arguments[0], Select) or not spelled:
            raise BadSyntax("has() asks for one field and is written like has(input.note)", token.at)
        return self._made(Has(at=token.at, end=self._end, operand=arguments[0]))

    def _map(self, token: Token) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self._took("}"):
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
            if not self._took(","):
                self._expect("}")
                break
        return self._made(MapOf(at=token.at, end=self._end, entries=tuple(entries)))

    def _listed(self, closing: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._took(closing):
            items.append(self._expression())
            if self._took(","):
                if closing == ")" and self._next.spelling == ")":
                    raise self._unexpected("a value")
                continue
            self._expect(closing)
            break
        return tuple(items)

    # Words and bounds.

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    @property
    def _end(self) -> int:
        return self._tokens[self._place - 1].end

    def _take(self) -> Token:
        token = self._next
        self._place += token.kind != "end"
        return token

    def _took(self, symbol: str) -> bool:
        if self._next.kind != "symbol" or self._next.spelling != symbol:
            return False
        self._place += 1
        return True

    def _expect(self, symbol: str) -> None:
        if not self._took(symbol):
            raise self._unexpected(f"'{symbol}'")

    def _name(self, what: str, may_be_reserved: bool = False) -> Token:
        token = self._next
        if token.kind != "name" or token.spelling in (("in", "true", "false", "null") if may_be_reserved else RESERVED):
            raise self._unexpected(what)
        return self._take()

    def _unexpected(self, wanted: str, token: Token | None = None) -> BadSyntax:
        token = token or self._next
        if token.kind == "name" and token.spelling in RESERVED:
            found = f"the reserved word '{token.spelling}'"
        else:
            found = _SIGNS.get(token.kind, f"'{token.spelling}'")
        return BadSyntax(f"expected {wanted}, found {found}", token.at)

    def _made(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise BadSyntax(f"the condition has more than {MAX_NODES} parts", node.at)
        return node

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadSyntax(f"the condition is nested more than {MAX_DEPTH} levels deep", self._next.at)
