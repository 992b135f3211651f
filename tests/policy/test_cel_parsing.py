"""Text to a tree: the grammar we allow is the engine's own, and what we do not allow is refused by name and place."""

import cel
import pytest

from policy.cel.parsing import MAX_DEPTH, MAX_NODES, parsed
from policy.cel.reading import reading
from policy.cel.tokens import MAX_TEXT, BadSyntax, tokens
from policy.cel.tree import Binary, Has, Literal, Logic, Name, Select, Ternary, Unary, free_names, walk


def refusal(text: str) -> str:
    with pytest.raises(BadSyntax) as refused:
        parsed(text)
    return refused.value.sentence(text)


def evaluated(text: str) -> object:
    """What the engine makes of a text that we parse."""
    parsed(text)
    return cel.evaluate(text)


@pytest.mark.parametrize(
    "literal",
    [
        "0",
        "12",
        "-12",
        "0x1F",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5",
        ".5",
        "1e3",
        "1.5E-3",
        "-2.5",
        "true",
        "false",
        "null",
        "'a'",
        '"a"',
        '""',
        "'''a'b'''",
        '"""a\n"b" """',
        r"r'\d+'",
        r'R"\n"',
        r"'\n\t\r\a\b\f\v\\\'\"\?\`'",
        r"'\x41\u00e9\U0001F600\101'",
        "'é😀'",
    ],
)
def test_a_literal_has_the_value_that_the_engine_gives_it(literal: str) -> None:
    node = parsed(literal)
    assert isinstance(node, Literal)
    value = cel.evaluate(literal)
    assert (type(node.value), node.value) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 8 / 4 % 3", 5),
        ("2 * (3 + 4)", 14),
        ("true || false && false", True),
        ("!true || true", True),
        ("1 < 2 == true", True),
        ("1 in [1] == true", True),
        ("false ? 1 : true ? 2 : 3", 2),
        ("-2 - -3", 1),
        ("[1, 2,].size()", 2),
        ("{'a': 1, 'b': 2,}.size()", 2),
        ("[1, 2, 3].filter(x, x > 1).map(x, x * 2)[1]", 6),
        ("[1, 2].map(x, x > 1, x)[0]", 2),
        ("5 // five\n + 1", 6),
    ],
)
def test_operators_bind_as_the_engine_has_them(text: str, value: object) -> None:
    assert evaluated(text) == value


def test_the_tree_says_what_binds_to_what() -> None:
    tree = parsed("a || b && !c.d == 1 + 2")
    assert isinstance(tree, Logic)
    assert tree.operator == "||"
    both = tree.operands[1]
    assert isinstance(both, Logic)
    equality = both.operands[1]
    assert isinstance(equality, Binary)
    assert (equality.operator, type(equality.left), type(equality.right)) == ("==", Unary, Binary)


def test_a_node_knows_where_it_stands() -> None:
    text = "(a ? b : c) == (1 + 2) * 3"
    for node in walk(parsed(text)):
        again = parsed(text[node.at : node.end])
        assert again == node
    assert isinstance(parsed("(a || b) ? c : d"), Ternary)
    tree = parsed("(a || b) ? c : d")
    assert (tree.at, tree.end) == (0, 16)


def test_equal_nodes_mean_the_same_wherever_they_stand() -> None:
    assert parsed("input.a") == parsed('   input["a"]')
    assert parsed("1") != parsed("1.0")
    assert parsed("1") != parsed("true")
    assert parsed("0") != parsed("false")


def test_long_chains_of_and_are_not_deep() -> None:
    parsed(" && ".join(["a"] * 90))
    parsed(" || ".join(["a == 1"] * 40))


def test_names_of_macros_are_not_variables() -> None:
    assert free_names(parsed("input.l.exists(x, x > y)")) == {"input", "y"}
    assert free_names(parsed("x + [1].map(x, x)[0]")) == {"x"}


def test_reading_names_the_fields_or_the_whole() -> None:
    assert reading(parsed('input.a.b == 1 && has(input.c) && input["d e"] == agent.name')) == {
        "input": frozenset({"a", "c", "d e"}),
        "agent": frozenset({"name"}),
    }
    assert reading(parsed("input.a == 1 && size(input) == 2"))["input"] is None
    assert reading(parsed("size(input) == 2 && input.a == 1"))["input"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Line 1, column 1: the condition is empty."),
        ("  // nothing", "the condition is empty"),
        ("input.amount <= ", "Line 1, column 17: expected a value, found the end."),
        ("input.a ==\n  == 1", "Line 2, column 3: expected a value, found '=='."),
        ("input.a = 1", "Line 1, column 9: '=' cannot stand here; to compare, write ==."),
        ("a & b", "'&' cannot stand here; write &&."),
        ("a | b", "'|' cannot stand here; write ||."),
        ("(a", "expected ')', found the end"),
        ("a)", "expected the end, found ')'"),
        ("a b", "expected the end, found 'b'"),
        ("[1, 2", "expected ']', found the end"),
        ("f(1,)", "expected a value, found ')'"),
        ("{1}", "expected ':', found '}'"),
        ("a ? b", "expected ':', found the end"),
        ("'abc", "Line 1, column 1: the text that starts here has no end"),
        (r"'\d'", "write \\\\ or put r before the quotes"),
        (r"'\ud800'", "an escape that is no character"),
        (r"'\U00110000'", "an escape that is no character"),
        ("9223372036854775808", "a whole number has at most 64 bits"),
        ("1e400", "the number is too large"),
        ("5u", "unsigned literals are not allowed"),
        ("b'a'", "bytes literals are not allowed"),
        ("a{b: 1}", "messages, a name followed by {…}, are not allowed"),
        ("input.?a", "optional fields (.?) are not allowed"),
        ("input[?'a']", "optional fields ([?) are not allowed"),
        (".input", "expected a value, found '.'"),
        ("if", "found the reserved word 'if'"),
        ("input.in", "found the reserved word 'in'"),
        ("has(input)", "has() asks for one field"),
        ("has(input['a'])", "has() asks for one field"),
        ("has(input.a, input.b)", "has() asks for one field"),
        ("l.exists(x.y, true)", "expected ',', found '.'"),
        ("l.exists(1, true)", "expected a name for the item, found a number"),
        ("l.exists(input, true)", "'input' already has a meaning"),
        ("-!a", "'!' cannot follow '-'; use parentheses"),
        ("input.`a-b`", 'write input["…"]'),
        ("é == 1", "'é' cannot stand here"),
        ("'a\u202eb'", "the character U+202E cannot be seen"),
        ("a \u200b== 1", "the character U+200B cannot be seen"),
        ("'\x00'", "the character U+0000 cannot be seen"),
        ("'\ud800'", "the character U+D800 cannot be seen"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(text: str, words: str) -> None:
    assert words in refusal(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a" * (MAX_TEXT + 1), "at most 2000 are allowed"),
        ("(" * 10_000 + "1" + ")" * 10_000, "at most 2000 are allowed"),
        ("(" * 900 + "1" + ")" * 900, "nested more than 20 levels deep"),
        ("[" * 900, "nested more than 20 levels deep"),
        ("!" * 1900 + "true", "nested more than 20 levels deep"),
        ("- " * 900 + "a", "nested more than 20 levels deep"),
        ("a" + ".a" * 900, "nested more than 20 levels deep"),
        ("1" + "+1" * 900, "nested more than 20 levels deep"),
        ("f(" * 600 + ")" * 600, "nested more than 20 levels deep"),
        ("a ? 1 : " * 200 + "2", "nested more than 20 levels deep"),
        ("{1:" * 600, "nested more than 20 levels deep"),
        ("[" + "1," * 900 + "]", "more than 200 parts"),
        ("a.exists(x, b.exists(y, c.exists(z, true)))", "may be nested 2 deep, not deeper"),
    ],
)
def test_bounds_keep_every_condition_small(text: str, words: str) -> None:
    assert words in refusal(text)


def test_what_is_just_within_the_bounds_is_accepted_by_us_and_by_the_engine() -> None:
    deep = "(" * (MAX_DEPTH - 1) + "1" + ")" * (MAX_DEPTH - 1)
    assert evaluated(deep) == 1
    assert len(evaluated("[" + ",".join(["1"] * (MAX_NODES - 1)) + "]")) == MAX_NODES - 1  # type: ignore[arg-type]
    assert evaluated("[[1]].exists(x, x.exists(y, y == 1)) && [[1]].exists(x, x.exists(y, y == 1))") is True
    assert len(tokens("'" + "a" * (MAX_TEXT - 2) + "'")) == 2


def test_has_and_selection_are_nodes_of_their_own() -> None:
    node = parsed("has(input.a)")
    assert isinstance(node, Has)
    assert node.operand == Select(at=0, end=0, operand=Name(at=0, end=0, name="input"), field="a")
