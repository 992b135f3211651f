"""A rule as a sentence for people: who may call what, when, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policy.decision import Ask, Effect, Limits
from registry import durations
from registry.risk import RiskLevel

if TYPE_CHECKING:
    from policy.rulespec import RuleSpec

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def sentence(rule: RuleSpec) -> str:
    """The rule in plain English; what it does not restrict it does not mention."""
    said = f"{_who_may(rule)} call {_object(rule)}"
    if rule.when:
        said += f" when {rule.when}"
    if rule.ask is not None:
        said += f"{',' if rule.when else ''} once {people(rule.ask)} within {durations.short(rule.ask.decide_within)}"
    if rule.limits is not None:
        said += f", {_limits(rule.limits)}"
    return f"{said}."


def people(ask: Ask) -> str:
    """How many have to agree, and of whom: "two people of the group payments-approvers agree"."""
    number = _NUMBERS[ask.quorum] if ask.quorum < len(_NUMBERS) else str(ask.quorum)
    count, verb = ("person", "agrees") if ask.quorum == 1 else ("people", "agree")
    whom = f"of the group {ask.approvers}" if ask.approvers else "who may approve"
    return f"{number} {count} {whom} {verb}"


def joined(names: Sequence[str], word: str) -> str:
    """One, two or more names: "a, b or c"."""
    return f"{', '.join(names[:-1])} {word} {names[-1]}" if len(names) > 1 else "".join(names)


def _who_may(rule: RuleSpec) -> str:
    is_deny, told = rule.effect is Effect.DENY, []
    if rule.agents:
        told.append(f"{'agent' if len(rule.agents) == 1 else 'agents'} {joined(rule.agents, 'and')}")
    if rule.groups:
        told.append(f"{'the group' if len(rule.groups) == 1 else 'the groups'} {joined(rule.groups, 'and')}")
    if not told:
        return "No agent may" if is_deny else "Any agent may"
    said = " and ".join(told)
    return f"{said[0].upper()}{said[1:]} {'may not' if is_deny else 'may'}"


def _object(rule: RuleSpec) -> str:
    tools = [_pattern(pattern) for pattern in rule.tools if pattern != "*"]
    said = joined(tools, "or") if tools and "*" not in rule.tools else "any tool"
    if rule.risk_at_least is not None and rule.risk_at_least > RiskLevel.LOW:
        levels = [level.word for level in RiskLevel if level >= rule.risk_at_least]
        said += f" with {joined(levels, 'or')} risk"
    if rule.capabilities:
        said += f" that has {joined(rule.capabilities, 'or')}"
    return said


def _pattern(pattern: str) -> str:
    toolkit, _, tool = pattern.partition(".")
    return f"any tool of {toolkit}" if tool == "*" else pattern


def _limits(limits: Limits) -> str:
    told = []
    if limits.per_minute is not None:
        told.append(f"{_times(limits.per_minute)} a minute")
    if limits.per_day is not None:
        told.append(f"{_times(limits.per_day)} a day")
    if limits.at_once is not None:
        told.append(f"{limits.at_once} at once")
    return f"at most {joined(told, 'and')}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
