"""What would be decided: a question answered without a call."""

from collections.abc import Mapping
from typing import Any

from policy import engine, grants, rulesets
from policy.caller import Caller
from policy.decision import Decision, Effect, Finding
from policy.models import Agent
from policy.question import Question
from registry.toolspec import ToolSpec


def caller_of(agent: Agent) -> Caller:
    """The agent as if it had proved who it is."""
    return Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="")


def explained(
    agent: Agent, tool: ToolSpec, arguments: Mapping[str, Any], *, user_id: str = "", revision: int | None = None
) -> Decision:
    """The decision of the live rules and the grants, or of another revision's rules. Nothing is recorded or counted."""
    if not agent.is_active:
        return _shut_out(agent)
    question = Question(caller=caller_of(agent), tool=tool, arguments=arguments, user_id=user_id)
    if revision is None:
        decision = engine.decide(question)
        grant = grants.usable(question) if decision.effect is Effect.ASK else None
        return grants.allowed(decision, grant) if grant is not None else decision
    return rulesets.rules_numbered(revision).judge(question)


def _shut_out(agent: Agent) -> Decision:
    finding = Finding(
        check="agent",
        effect=Effect.DENY,
        reason=f"Agent {agent.name} is shut out: no credential of it opens a door",
        help="Let it in again on the agent's page",
    )
    return Decision(
        effect=finding.effect,
        rule=finding.check,
        reason=finding.reason,
        help=finding.help,
        revision=rulesets.live_rules().number,
        findings=(finding,),
    )
