"""One rule as a check: whom and what it concerns, whether its condition holds, and what it then says."""

import logging
import re
from datetime import datetime
from functools import cached_property

from policy.conditions import Condition, ConditionFailed, compiled
from policy.decision import Effect, Finding
from policy.question import Question
from policy.rulesentence import joined, people
from policy.rulespec import RuleSpec
from registry.toolspec import ToolSpec

_ARGUMENT = re.compile(r"\binput\.([A-Za-z_][A-Za-z0-9_]*)")

logger = logging.getLogger(__name__)


class RuleCheck:
    """A rule made ready for judging; what it looks up often is looked up without case and without a list."""

    def __init__(self, rule: RuleSpec) -> None:
        self.rule = rule
        self.is_deny = rule.effect is Effect.DENY
        self._agents = frozenset(rule.agents)
        self._groups = frozenset(rule.groups)
        self._is_for_anyone = not rule.agents and not rule.groups
        self._tools = frozenset(pattern.lower() for pattern in rule.tools)
        self._is_for_any_tool = not self._tools or "*" in self._tools
        self._capabilities = frozenset(rule.capabilities)
        self._least_risk = rule.risk_at_least or 0

    @cached_property
    def _condition(self) -> Condition:
        return compiled(self.rule.when)

    def concerns(self, agent: str, groups: frozenset[str], tool: ToolSpec) -> bool:
        """Whether the rule is about this agent and this tool, whatever the arguments."""
        if tool.risk < self._least_risk:
            return False
        if not self._is_for_anyone and agent not in self._agents and self._groups.isdisjoint(groups):
            return False
        if self._capabilities and self._capabilities.isdisjoint(tool.capabilities):
            return False
        return self._is_for_any_tool or not self._tools.isdisjoint(names_of(tool))

    def finding(self, question: Question, *, groups: frozenset[str], now: datetime) -> tuple[Finding | None, bool]:
        """What the rule says of a call that it concerns, nothing if its condition does not hold; and if it failed."""
        if self.rule.when:
            try:
                if not self._condition.holds(question, groups=groups, now=now):
                    return None, False
            except ConditionFailed as error:
                return self._failed(str(error)), True
            except Exception:
                logger.exception("the condition of rule %r failed", self.rule.name)
                return self._failed("its condition met an error"), True
        return self.spoken(question), False

    def spoken(self, question: Question) -> Finding:
        """What the rule says where it matches; it names no one but the caller."""
        name, call = self.rule.name, f"agent {question.caller.name} to call {question.tool.tool_id}"
        match self.rule.effect:
            case Effect.ALLOW:
                return Finding(check=name, effect=Effect.ALLOW, reason=f"Rule '{name}' allows {call}")
            case Effect.DENY:
                return Finding(
                    check=name, effect=Effect.DENY, reason=f"Rule '{name}' forbids {call}", help=self._way_round()
                )
            case Effect.ASK:
                assert self.rule.ask is not None, "a rule that asks says whom"
                return Finding(
                    check=name,
                    effect=Effect.ASK,
                    reason=f"Rule '{name}' allows {call} once {people(self.rule.ask)}",
                    help="Wait for the answer; the call then goes on by itself",
                )

    def _failed(self, reason: str) -> Finding:
        name = self.rule.name
        return Finding(
            check=name,
            effect=Effect.DENY,
            reason=f"Rule '{name}' could not be judged, and what cannot be judged is denied: {reason}",
            help=f"{self._other_arguments()}Ask a policy owner to mend rule '{name}'",
        )

    def _way_round(self) -> str:
        return f"{self._other_arguments()}Ask a policy owner for an exception from rule '{self.rule.name}'"

    def _other_arguments(self) -> str:
        read = sorted(set(_ARGUMENT.findall(self.rule.when)))
        return f"The rule looks at {joined(read, 'and')}; another value may pass. " if read else ""


def names_of(tool: ToolSpec) -> tuple[str, str, str]:
    """The patterns that mean this tool, the star for all tools aside."""
    toolkit = tool.toolkit.lower()
    return tool.tool_id.lower(), f"{toolkit}.{tool.name.lower()}", f"{toolkit}.*"
