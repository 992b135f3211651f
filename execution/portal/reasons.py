"""Reasons: every check between an agent and a tool, in the order of the road, each as a sentence.

Policy's part is the judge's own answer; the rest asks what the doors ask. Nothing is called, recorded or counted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from execution import breakers
from execution.errors import CallError
from execution.messages import CallContext
from execution.pipeline.steps import check_requirements
from execution.portal import given, holding
from execution.sentences import who as in_words
from execution.viewer import Viewer
from policy import approvers, evaluation, readers, revisions, rulesets
from policy.checks.permission import permission
from policy.decision import Ask, Decision, Effect, Finding, Limits
from policy.models import Agent, Approval, Credential, Meter
from policy.question import Question
from policy.rulesentence import people, sentence
from policy.visibility import visible_toolkits
from registry.models import Tool
from registry.toolspec import ToolSpec

_INPUT = re.compile(r"\binput\b")
_MARKS = {Effect.ALLOW: "yes", Effect.ASK: "ask", Effect.DENY: "no"}
MOST_PEOPLE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One check: what it is, what it said, and whatever else a person wants to know about it."""

    name: str
    mark: str  # "yes", "no", "ask", "maybe", "wait" or "none"
    text: str
    more: tuple[str, ...] = ()
    evidence: Any = None  # the event that tells of it
    help: str = ""


@dataclass(slots=True)
class Answer:
    """The verdict and all that led to it."""

    verdict: str = ""  # "yes", "no", "ask", "maybe" or "wait"
    text: str = ""
    steps: list[Step] = field(default_factory=list)
    decision: Decision | None = None


def reasons(agent: Agent, tool: ToolSpec, arguments: Mapping[str, Any] | None, *, asks: User) -> Answer:
    """The answer for this input; without one, for any input, or that it hangs on the input."""
    question = Question(caller=evaluation.caller_of(agent), tool=tool, arguments=arguments or {})
    answer = Answer(steps=[_agent(agent), _tool(tool), _permission(agent, question, asks)])
    if all(step.mark != "no" for step in answer.steps):
        answer.steps += [step for step in (_requirements(tool),) if step]
        if arguments is None and (open_rules := _hanging(question)):
            told = tuple(sentence(rule) for rule in open_rules) if readers.may_read(asks) else ()
            text = "The rules look at the input. Give one below to see which of them decides."
            answer.steps.append(Step(name="Policy", mark="maybe", text=text, more=told))
            answer.verdict, answer.text = "maybe", "It depends on the input."
            return answer
    answer.decision = decision = evaluation.explained(agent, tool, arguments or {})
    spelled = _spelled(asks)
    told = ("permission", "agent")  # above
    answer.steps += [_spoken(each, decision, spelled) for each in decision.findings if each.check not in told]
    if decision.limits is not None:
        answer.steps.append(_limits(agent, tool, decision.limits))
    if decision.ask is not None and decision.effect is Effect.ASK:
        answer.steps.append(_people(agent, tool, decision.ask, asks))
    if decision.effect is not Effect.DENY:
        answer.steps.append(_breaker(tool))
    answer.verdict, answer.text = _verdict(decision, answer.steps)
    return answer


def _verdict(decision: Decision, steps: list[Step]) -> tuple[str, str]:
    if decision.effect is Effect.DENY:
        return "no", f"No. {decision.reason}."
    held_up = [step.name.lower() for step in steps if step.mark == "wait"]
    later = f" Not at this moment, though: see {' and '.join(held_up)}." if held_up else ""
    if decision.effect is Effect.ASK:
        assert decision.ask is not None  # with the effect ASK, always
        return "ask", f"Yes, once {people(decision.ask)}.{later}"
    return ("wait" if later else "yes"), f"Yes. {decision.reason}.{later}"


def _agent(agent: Agent) -> Step:
    if not agent.is_active:
        text = f"{agent.name} is shut out: no credential of it opens a door."
        return Step(name="Agent", mark="no", text=text, help="Let it in again on its page.")
    keys = Credential.objects.in_force().filter(agent=agent).count()
    held = f"has {keys} key{'' if keys == 1 else 's'} in force" if keys else "has no key in force, only its JWT secret"
    return Step(name="Agent", mark="yes", text=f"{agent.name} is let in and {held}.")


def _tool(tool: ToolSpec) -> Step:
    text = f"{tool.tool_id} is {tool.state}, of {tool.risk.word} risk."
    more = ("A deprecated version can still be called; a newer one should be.",) if tool.state == "deprecated" else ()
    return Step(name="Tool", mark="yes", text=text, more=more)


def _permission(agent: Agent, question: Question, asks: User) -> Step:
    """The judge's own check, with where the permission comes from and who gave it, as far as evidence tells."""
    finding, tool = permission(question), question.tool
    if finding.effect is Effect.DENY:
        is_hidden = tool.toolkit_id not in visible_toolkits(question.caller)
        more = ("It may not even see it, so at the door the tool does not exist for it.",) if is_hidden else ()
        return Step(name="Permission", mark="no", text=f"{finding.reason}.", more=more, help=finding.help)
    held = holding.of_users([agent.user_id], [tool.toolkit_id])[agent.user_id]
    mine = [each for each in held if each.verb == "call"]
    event = None
    if any(each.toolkit is not None and each.group == holding.DIRECT for each in mine):
        event = given.latest(Viewer(user=asks), tool.toolkit, f"agent:{agent.name}").get("call")
    sources = " and ".join(each.source for each in mine)
    text = f"{agent.name} has “call” on {tool.toolkit}: {sources}."
    more = (f"{in_words(event.actor)} gave it.",) if event else ()
    return Step(name="Permission", mark="yes", text=text, more=more, evidence=event)


def _requirements(tool: ToolSpec) -> Step | None:
    if not tool.requirements:
        return None
    try:
        check_requirements(tool, CallContext())
    except CallError as error:
        text = f"The caller must bring more than the input: {error.failure.developer_message}."
        return Step(name="Requirements", mark="ask", text=text)
    return None


def _hanging(question: Question) -> list[Any]:
    """The rules about this agent and this tool whose answer hangs on the input."""
    return [rule for rule in rulesets.live_rules().conditional(question) if _INPUT.search(rule.when)]


def _spelled(asks: User) -> dict[str, str]:
    """The live rules as sentences, for those who may read them."""
    row = revisions.live() if readers.may_read(asks) else None
    return {} if row is None else {rule.name: sentence(rule) for rule in revisions.rules_of(row)}


def _spoken(finding: Finding, decision: Decision, spelled: dict[str, str]) -> Step:
    name = {"default": "Default", "error": "Policy"}.get(finding.check, "Rule")
    if finding.check.startswith("grant ") and finding.check not in spelled:
        name = "Grant"
    more = [spelled[finding.check]] if name == "Rule" and finding.check in spelled else []
    if finding.check == decision.rule:
        number = decision.revision
        more.append(f"This decides, by {f'revision {number} of the policy' if number else 'the defaults'}.")
    mark, text = _MARKS[finding.effect], f"{finding.reason}."
    return Step(name=name, mark=mark, text=text, more=tuple(more), help=finding.help)


def _limits(agent: Agent, tool: ToolSpec, limits: Limits) -> Step:
    """How much of each limit is used at this moment."""
    now, told, is_reached = timezone.now(), [], False
    used = _used(agent, tool, now)
    for window, word, most in (("minute", "a minute", limits.per_minute), ("day", "a day", limits.per_day)):
        if most is not None:
            told.append(f"{most} {word}, {used.get(window, 0)} of them used")
            is_reached = is_reached or used.get(window, 0) >= most
    if limits.at_once is not None:
        told.append(f"{limits.at_once} at once")
    return Step(name="Limits", mark="wait" if is_reached else "yes", text=f"At most {'; '.join(told)}.")


def _used(agent: Agent, tool: ToolSpec, now: datetime) -> dict[str, int]:
    lengths = {"minute": timedelta(minutes=1), "day": timedelta(days=1)}
    meters = Meter.objects.filter(agent=agent, tool=f"{tool.toolkit}.{tool.name}")
    return {meter.window: meter.count for meter in meters if now - meter.started_at < lengths[meter.window]}


def _people(agent: Agent, tool: ToolSpec, ask: Ask, asks: User) -> Step:
    row = Tool.objects.select_related("version__toolkit").get(pk=tool.id)
    could = approvers.people_to_ask(Approval(agent=agent, tool=row, approvers=ask.approvers))
    names = [person.get_username() for person in could]
    text = f"It waits until {people(ask)}."
    if len(names) < ask.quorum:
        short = f"Only {len(names)} could" if names else "Nobody could"
        more = f"{short} at this moment, so it would wait in vain."
        return Step(name="Approval", mark="wait", text=text, more=(more,), help="Give “approve” on the toolkit.")
    shown = ", ".join(names[:MOST_PEOPLE]) + (" and others" if len(names) > MOST_PEOPLE else "")
    more = f"Could decide now: {shown}." if readers.may_examine(asks, row.version.toolkit) else ""
    return Step(name="Approval", mark="ask", text=text, more=(more,) if more else ())


def _breaker(tool: ToolSpec) -> Step:
    failure = breakers.refusal(tool)
    if failure is None:
        return Step(name="Breaker", mark="yes", text="The breaker is closed: calls go through to the tool.")
    seconds = (failure.retry_after_ms or 0) // 1000 + 1
    return Step(name="Breaker", mark="wait", text=f"{failure.message}; the next try is in {seconds} s.")
