"""`python -m bench.judging`: what a decision costs with ten rules and with a thousand, side by side in one run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from policy.question import Question
    from policy.rulespec import RuleSpec

FEW, MANY = 10, 1_000
ROUNDS, LOOPS = 7, 2_000
COMPANY_WIDE = 3  # departments whose last rule is about everyone, and so is asked about every call


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Medians over the rounds, in microseconds; `first`: when an agent and a tool meet the rules for the first time."""

    few: float
    many: float
    ratio: float
    first: float

    @property
    def told(self) -> str:
        return f"{self.ratio:.2f} times, {self.many:.1f} µs against {self.few:.1f} µs (the first time {self.first:.0f})"


def rules(number: int) -> list[RuleSpec]:
    """The policy of a company: ten rules for each department, most of them about its own agents and tools."""
    from policy.rulespec import read_rule

    return [read_rule(rule) for department in range(number // 10) for rule in _department(department)]


def _department(number: int) -> list[dict[str, Any]]:
    bot, group, toolkit = f"bot-{number}", f"department-{number}", f"Records{number}"
    limits = {"perMinute": 30, "perDay": 5_000}
    small, large = (f"has(input.amount) && input.amount {comparison} 100.0" for comparison in ("<=", ">"))
    some: list[dict[str, Any]] = [
        {"agents": [bot], "tools": [f"{toolkit}.Look0"], "when": small, "effect": "allow"},
        {"tools": [f"{toolkit}.Look0"], "when": large, "effect": "ask", "ask": {"quorum": 2}},
        {"agents": [bot, f"aid-{number}"], "tools": [f"{toolkit}.Look1"], "effect": "allow", "limits": limits},
        {"groups": [group], "tools": [f"{toolkit}.*"], "capabilities": ["data.read"], "effect": "allow"},
        {"tools": [f"{toolkit}.Look2@2.0.0"], "effect": "deny"},
        {"groups": [group], "capabilities": ["external.side_effect"], "riskAtLeast": "high", "effect": "ask"},
        {"groups": [f"guests-{number}"], "effect": "deny"},
        {"groups": [group], "capabilities": ["exec.command"], "when": "context.user_id == ''", "effect": "deny"},
        {
            "agents": [bot],
            "tools": [f"{toolkit}.*"],
            "when": "has(input.tags) && 'secret' in input.tags",
            "effect": "deny",
        },
        {
            "tools": ["*"] if number < COMPANY_WIDE else [f"{toolkit}.*"],
            "when": f"now < timestamp('20{10 + number % 10}-01-01T00:00:00Z')",
            "effect": "deny",
        },
    ]
    return [{"name": f"department {number}, rule {place}", **rule} for place, rule in enumerate(some, 1)]


def measured() -> Judging:
    """Ten rules and a thousand take turns at being live; both are asked the same questions."""
    from policy import engine, revisions
    from policy.rulesets import RuleSet
    from registry import revision

    asked = _questions()
    drafts = [revisions.new_draft(by=None, rules=rules(number)) for number in (FEW, MANY)]
    took: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for place, draft in enumerate(drafts):
            revisions.activate(draft, by=None)
            with revision.pinned():  # as each call of the product is judged
                took[place].append(_microseconds(engine.decide, asked))
    fresh = RuleSet(0, rules(MANY))
    with revision.pinned():
        first = [_microseconds(fresh.judge, [question], loops=1) for question in asked]
    few, many = took
    ratio = median(after / before for before, after in zip(few, many, strict=True))
    return Judging(few=median(few), many=median(many), ratio=ratio, first=median(first))


def _microseconds(judge: Callable[[Question], object], asked: list[Question], *, loops: int = LOOPS) -> float:
    if loops > 1:
        for question in asked:
            judge(question)
    start = time.perf_counter()
    for number in range(loops):
        judge(asked[number % len(asked)])
    return (time.perf_counter() - start) / loops * 1e6


def _questions() -> list[Question]:
    """Calls of department 0's agent: small and large, decided by a condition, by a pattern and by the default."""
    from django.contrib.auth.models import Group, User

    from execution.demohistory import cast
    from policy import agents
    from policy.caller import Caller
    from policy.question import Question
    from registry.resolution import resolve
    from registry.toolref import ToolRef

    cast.more_tools(2 * cast.TOOLS_PER_TOOLKIT, User.objects.get(username="admin"))
    agent = agents.create("bot-0", actor="shell", call=["Records0", "Records1"]).agent
    agent.user.groups.add(Group.objects.create(name="department-0"))
    caller = Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="")
    asked = []
    for name, amount in (("0.Look0", 5.0), ("0.Look0", 500.0), ("0.Look1", 5.0), ("0.Look9", 5.0), ("1.Look9", 5.0)):
        ref = ToolRef.parse(f"Records{name}")
        tool = resolve(ref) if ref is not None else None
        assert tool is not None
        arguments = {"customer": "a-1", "amount": amount, "tags": ["new", "north"]}
        asked.append(Question(caller=caller, tool=tool, arguments=arguments))
    return asked


if __name__ == "__main__":
    django.setup()
    print(json.dumps(asdict(measured())))
