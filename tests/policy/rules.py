"""Tools, callers and rules for tests about judging, without a database."""

from itertools import count
from typing import Any

from policy.caller import Caller
from policy.question import Question
from policy.rulespec import RuleSpec, read_rule
from registry.risk import RiskLevel
from registry.toolspec import RetrySpec, RuntimeSpec, ToolSpec

_numbers = count(1)


def spec(
    tool: str = "Payments.Refund", version: str = "1.0.0", risk: RiskLevel = RiskLevel.LOW, *capabilities: str
) -> ToolSpec:
    """A published tool that nobody has to publish first."""
    toolkit, _, name = tool.partition(".")
    return ToolSpec(
        id=next(_numbers),
        toolkit_id=1,
        toolkit=toolkit,
        toolkit_title=toolkit,
        toolkit_description="",
        name=name,
        version=version,
        state="published",
        tool_id=f"{tool}@{version}",
        flat_name=f"{toolkit}_{name}",
        title=name,
        description="",
        digest="",
        version_digest="",
        risk=risk,
        capabilities=capabilities,
        idempotency="read",
        input_schema={"type": "object"},
        output_schema=None,
        non_inferrable=(),
        annotations={},
        requirements={},
        runtime=RuntimeSpec(type="http", dispatch="queue", timeout=30.0, retry=RetrySpec(), options={}),
        auth={},
        edited_by_id=None,
    )


def agent(name: str = "demo", number: int = 1) -> Caller:
    return Caller(agent_id=number, name=name, user_id=number, credential="key")


def question(tool: ToolSpec, caller: Caller | None = None, **arguments: Any) -> Question:
    return Question(caller=caller or agent(), tool=tool, arguments=arguments)


def rule(name: str, effect: str = "allow", **fields: Any) -> RuleSpec:
    """A rule as a file spells it."""
    return read_rule({"name": name, "effect": effect, **fields})
