"""CEL: compile once, check when saved, judge within bounds.

A condition reads `agent`, `tool`, `input`, `context` and `now`. A field that is not there is an error, and an error
while judging is ConditionFailed, never a silent no: has(input.note) is how to ask for a field that may be absent.
Numbers compare by value however they are written, 5 like 5.0; sums do not mix the two. Moments are in UTC; the size of
a text is its length in UTF-8.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from policy.cel import cost
from policy.cel.autopsy import cause, kind_of
from policy.cel.checking import Checker
from policy.cel.constants import Incomputable, constant, constant_parts
from policy.cel.engine import Panic, Program, program, run
from policy.cel.environment import shapes
from policy.cel.parsing import parsed
from policy.cel.possibility import Possibility
from policy.cel.reading import Fields, reading
from policy.cel.tokens import BadSyntax
from policy.cel.tree import Node
from policy.models import Agent
from policy.question import Question
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)


class ConditionFailed(Exception):
    """Judging met an error; the message says which field or kind was wrong and repeats no value of the input."""


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression ready to be judged; the same text is the same object, for every thread."""

    text: str
    _program: Program = field(repr=False, compare=False)
    _tree: Node = field(repr=False, compare=False)
    _reads: Mapping[str, Fields] = field(repr=False, compare=False)
    _largest_input: int | None = field(repr=False, compare=False)

    def holds(self, question: Question, *, groups: Collection[str], now: datetime) -> bool:
        """Whether it is true of a question at a moment; ConditionFailed if that cannot be told."""
        variables = self._gathered(question, groups, now)
        if self._largest_input is not None and cost.is_larger(variables.get("input"), self._largest_input):
            raise ConditionFailed("the input is too large for this condition to be judged in time")
        try:
            answer = run(self._program, variables)
        except Exception as error:
            if isinstance(error, Panic):
                logger.exception("the engine panicked over the condition %r", self.text)
            raise ConditionFailed(cause(error, self.text, self._tree, variables)) from None
        if answer is True or answer is False:
            return bool(answer)
        raise ConditionFailed(f"it gives {kind_of(answer)}, not true or false")

    def _gathered(self, question: Question, groups: Collection[str], now: datetime) -> dict[str, Any]:
        try:
            return self._variables(question, groups, now)
        except Exception:
            logger.exception("what the condition %r reads could not be looked up", self.text)
            raise ConditionFailed("what it reads could not be looked up") from None

    def _variables(self, question: Question, groups: Collection[str], now: datetime) -> dict[str, Any]:
        """What the expression reads, and no more: the engine copies all that it is given."""
        variables: dict[str, Any] = {}
        for name, fields in self._reads.items():
            match name:
                case "input":
                    variables[name] = _chosen(question.arguments, fields)
                case "tool":
                    variables[name] = _chosen(_tool(question.tool), fields)
                case "agent":
                    variables[name] = _agent(question, groups, fields)
                case "context":
                    variables[name] = {"user_id": question.user_id}
                case "now":
                    variables[name] = now.astimezone(UTC)
        return variables


@lru_cache(maxsize=4096)
def compiled(text: str) -> Condition:
    """The condition of a text; ValueError if it does not parse."""
    try:
        tree = parsed(text)
    except BadSyntax as error:
        raise ValueError(error.sentence(text)) from None
    return Condition(
        text=text,
        _program=program(text),
        _tree=tree,
        _reads=reading(tree),
        _largest_input=cost.largest_input(tree),
    )


def problems(text: str, *, input_schemas: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Why a condition may not be saved, in sentences; none if it may.

    `input` is checked against the input schemas of the tools that the rule names; without any it may hold anything.
    """
    try:
        tree = parsed(text)
        program(text)
    except BadSyntax as error:
        return [error.sentence(text)]
    except ValueError as error:
        return [str(error)]
    checker = Checker(text, tree, shapes(input_schemas))
    if checker.problems:
        return [problem.sentence for problem in checker.problems]
    largest = cost.largest_input(tree)
    if largest is not None and largest < cost.LEAST:
        return ["The condition takes too long to judge; use smaller lists and patterns, and fewer of map and filter."]
    for part in constant_parts(tree):
        try:
            constant(text, part)
        except Incomputable:
            return [f"{checker.quoted(part)} cannot be computed."]
    obstacle = Possibility(text, checker).obstacle(tree)
    return [f"The condition can never be true: {obstacle}."] if obstacle else []


def _chosen(values: Mapping[str, Any], fields: Fields) -> dict[str, Any]:
    if fields is None:
        return dict(values)
    return {name: values[name] for name in fields if name in values}


def _agent(question: Question, groups: Collection[str], fields: Fields) -> dict[str, Any]:
    caller = question.caller
    agent: dict[str, Any] = {"name": caller.name, "groups": list(groups)}
    if fields is None or "owner" in fields:  # the one thing that is not at hand
        owners = Agent.objects.filter(pk=caller.agent_id).values_list("owner__username", flat=True)
        agent["owner"] = owners.first() or ""
    return agent if fields is None else {name: agent[name] for name in fields if name in agent}


@lru_cache(maxsize=1024)
def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "id": spec.tool_id,
        "toolkit": spec.toolkit,
        "name": spec.name,
        "version": spec.version,
        "risk": spec.risk.word,
        "risk_level": int(spec.risk),
        "capabilities": list(spec.capabilities),
        "idempotency": spec.idempotency,
        "runtime": spec.runtime.type,
    }
