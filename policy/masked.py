"""What the record hides: whether a rule looks at a value that was masked when the call was written down."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from policy.decision import Decision, Effect
from policy.question import Question
from policy.rulesets import RuleSet
from policy.rulespec import RuleSpec

Path = tuple[str | int, ...]

_MARKS = ("[REDACTED:", "[UNREDACTABLE]", "[BINARY:")
# `input` and the fields after it, as far as they are spelled out; a name before a bracket is a function of CEL's.
_STEP = re.compile(r"""\s*\.\s*([A-Za-z_]\w*)(?!\w|\s*\()|\s*\[\s*(?:"([^"\\]*)"|'([^'\\]*)'|(\d{1,9}))\s*\]""")
_INPUT = re.compile(r"(?<![\w.])input(?!\w)")


def is_masked(text: str) -> bool:
    """Whether anything in this text of a recorded input may be a mark; quick, for most are whole."""
    return "[" in text and any(mark in text for mark in _MARKS)


def doubt(rules: RuleSet, question: Question, arguments: Any, decision: Decision) -> str:
    """Why this decision about a recorded call cannot be trusted: it hangs on a masked value. Empty if it does not."""
    if decision.rule == "permission":
        return ""
    hidden = list(_hidden(arguments, ()))
    doubtful = {rule.name: path for rule in _heard(rules, question, decision) if (path := _meeting(rule, hidden))}
    if not doubtful or (decision.effect is Effect.DENY and decision.rule not in doubtful):
        return ""  # a deny wins, whatever the others would have said
    name, path = next(iter(doubtful.items()))
    return f"Rule '{name}' looks at {_spelled(path)}, which is masked in the record"


def _heard(rules: RuleSet, question: Question, decision: Decision) -> Iterator[RuleSpec]:
    """The rules with a condition that had a say: every deny, and the others up to the one that decided."""
    is_decided = False
    for rule in rules.conditional(question):
        if rule.effect is Effect.DENY or not is_decided:
            yield rule
        is_decided = is_decided or rule.name == decision.rule


def _meeting(rule: RuleSpec, hidden: list[Path]) -> Path | None:
    """A masked place that the rule's condition looks at, or into."""
    for read in fields_read(rule.when):
        for path in hidden:
            shared = min(len(read), len(path))
            if read[:shared] == path[:shared]:
                return path or ("",)
    return None


@lru_cache(maxsize=4_096)
def fields_read(condition: str) -> tuple[Path, ...]:
    """The fields of the input that a condition names; the empty path where it takes the input as a whole.

    Rather one too many than one too few: text that only looks like a field counts as one.
    """
    return tuple(_chain(condition, found.end()) for found in _INPUT.finditer(condition))


def _chain(condition: str, position: int) -> Path:
    path: list[str | int] = []
    while step := _STEP.match(condition, position):
        name, double, single, index = step.groups()
        path.append(int(index) if index is not None else name or double or single or "")
        position = step.end()
    return tuple(path)


def _hidden(value: Any, path: Path) -> Iterator[Path]:
    """Where marks stand; a masked key hides the whole object that holds it."""
    if isinstance(value, str):
        if is_masked(value):
            yield path
    elif isinstance(value, dict):
        if any(is_masked(key) for key in value):
            yield path
            return
        for key, item in value.items():
            yield from _hidden(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _hidden(item, (*path, index))


def _spelled(path: Path) -> str:
    return "input" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path if step != "")
