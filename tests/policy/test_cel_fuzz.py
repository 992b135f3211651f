"""Whatever is typed is answered with sentences, soon; whatever is accepted the engine can judge."""

import re
import time
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from policy.cel.engine import program
from policy.cel.parsing import parsed
from policy.cel.tokens import BadSyntax
from policy.conditions import ConditionFailed, compiled, problems
from tests.policy.conditionkit import INPUT, MONDAY, SCHEMA, asked

patient = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
SPELLED = """
    agent tool input context now amount count note lines tags to city risk groups name x y line true false null in has
    all exists exists_one map filter size contains startsWith matches int double string timestamp duration getHours if
    as 0 1 5 1.5 .5 1e3 0x1F 5u 9223372036854775808 ( ) [ ] { } , : ? . && || ! - + * / % == != < <= > >= = & | ; # $ @
    ` \\ ' " 'a' "EUR" r'\\d' '''q''' '\\n' '\\d' b'x' input.amount has(input.note) [1,2] {'a':1} tool.risk .all(y,true)
    now.getHours() size(input.tags) input.to.city agent.groups duration('1h') input.lines.exists(x,x.pieces>1) é
    """
WORDS = [*re.findall(r"\S+", SPELLED), "// note\n", " ", "\n", "\x00", "\u202e"]
soup = st.builds(
    lambda parts, glue: glue.join(parts), st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["", " "])
)
WORLDS: list[dict[str, Any]] = [INPUT, INPUT | {"note": "x", "amount": 0.5, "lines": [], "tags": []}, {}]


def answered(text: str) -> list[str]:
    """What is wrong with a text, with and without a schema; it takes no longer than a second to say so."""
    started = time.process_time()
    told = problems(text, input_schemas=[SCHEMA]) + problems(text)
    assert time.process_time() - started < 2
    assert all(sentence.endswith(".") and len(sentence) < 800 for sentence in told)
    return told


@patient
@given(st.one_of(st.text(max_size=200), soup))
@example("(" * 10_000)
@example("(" * 10_000 + "1" + ")" * 10_000)
@example("[" * 1_999)
@example("!" * 1_999)
@example("a" + ".a" * 999)
@example("'" * 1_999)
@example('"""' * 600)
@example("'\\" * 900)
@example("input." * 300)
@example("a ? " * 400)
@example("has(" * 400)
@example("x.map(" * 300)
@example("0" * 2_000)
@example("1e" + "9" * 1_990)
@example("0x" + "f" * 1_990)
@example("\ud800")
@example("--9223372036854775808")
def test_no_text_is_too_strange_to_be_answered(text: str) -> None:
    answered(text)
    with suppress(ValueError):
        condition = compiled(text)
        for world in WORLDS:
            with suppress(ConditionFailed):
                assert condition.holds(asked(world), groups=("a",), now=MONDAY) in (True, False)


@patient
@given(soup)
def test_what_we_read_the_engine_reads_too(text: str) -> None:
    try:
        parsed(text)
    except BadSyntax:
        return
    if "9223372036854775808" not in text:  # whose sign the engine reads a little differently
        program(text)


numbers = st.sampled_from(
    ["input.amount", "input.count", "5", "2.5", "size(input.tags)", "input.lines[0].pieces", "-3"]
)
whole = st.sampled_from(["input.count", "5", "size(input.lines)", "tool.risk_level", "now.getHours()", "int(2.5)"])
texts = st.sampled_from(["input.currency", "input.to.city", "agent.name", '"EUR"', "tool.risk", "string(input.count)"])
lists = st.sampled_from(
    ["input.tags", "agent.groups", "tool.capabilities", '["a", "EUR"]', "input.lines.map(l, l.sku)"]
)
moments = st.sampled_from(["now", 'timestamp("2026-01-01T00:00:00Z")', 'now - duration("1h")'])
compared = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
atoms = st.one_of(
    st.builds("{} {} {}".format, numbers, compared, numbers),
    st.builds("{} {} {} {} {}".format, whole, st.sampled_from(["+", "-", "*"]), whole, compared, numbers),
    st.builds("{} {} {}".format, texts, compared, texts),
    st.builds("{} {} {}".format, moments, compared, moments),
    st.builds("{}.{}({})".format, texts, st.sampled_from(["contains", "startsWith", "endsWith"]), texts),
    st.builds("{}.matches({})".format, texts, st.sampled_from(['"^E"', r'r"^\w+$"', '"a|b"'])),
    st.builds("{} in {}".format, texts, lists),
    st.builds(
        "{}.{}(item, item {} {})".format, lists, st.sampled_from(["all", "exists", "exists_one"]), compared, texts
    ),
    st.builds("input.lines.{}(line, line.pieces {} {})".format, st.sampled_from(["all", "exists"]), compared, numbers),
    st.builds("{}.filter(item, item != {}).size() {} {}".format, lists, texts, compared, numbers),
    st.sampled_from(["input.urgent", "input.reference == null", "has(input.note)", "has(input.to.zip)"]),
    st.builds('has(input.labels.{0}) && input.labels.{0} == "red"'.format, st.sampled_from(["team", "other"])),
)
sound = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({}) && ({})".format, inner, inner),
        st.builds("({}) || ({})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({}) ? ({}) : ({})".format, inner, inner, inner),
    ),
    max_leaves=5,
)
text_values = st.text(max_size=8)
inputs = st.fixed_dictionaries(
    {
        "amount": st.one_of(st.integers(0, 1000), st.floats(0, 1000)),
        "count": st.integers(-(10**9), 10**9),
        "currency": st.sampled_from(["EUR", "USD"]),
        "urgent": st.booleans(),
        "reference": st.none() | text_values,
        "tags": st.lists(st.sampled_from(["gift", "return"]), max_size=3),
        "to": st.fixed_dictionaries({"city": text_values}, optional={"zip": text_values}),
        "lines": st.lists(
            st.fixed_dictionaries({"sku": text_values, "pieces": st.integers(1, 9)}), min_size=1, max_size=3
        ),
        "labels": st.dictionaries(st.sampled_from(["team", "other"]), text_values),
        "extra": st.just({}),
    },
    optional={"note": text_values},
)


@patient
@given(sound, inputs)
def test_what_the_check_accepts_the_engine_judges_for_every_valid_input(text: str, arguments: dict[str, Any]) -> None:
    if problems(text, input_schemas=[SCHEMA]):
        return
    assert compiled(text).holds(asked(arguments), groups=("night",), now=MONDAY) in (True, False)


def test_the_generated_conditions_are_mostly_accepted() -> None:
    """Else the test above would say nothing."""
    accepted = []

    @settings(deadline=None, max_examples=60, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(sound)
    def count(text: str) -> None:
        accepted.append(not problems(text, input_schemas=[SCHEMA]))

    count()
    assert sum(accepted) > len(accepted) / 3
