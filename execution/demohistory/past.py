"""Calls of the last thirty days, written in bulk: rows, attempts, approvals and whole, verifiable chains of events."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import cos, pi
from random import Random
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from audit import rows, trail
from audit.canonical import canonical
from audit.trail import Chain, Entry
from execution.demohistory.cast import AGENTS, SORTS, Sort
from execution.demohistory.telling import Told
from execution.fingerprint import arguments_digest
from execution.models import Attempt, Call
from policy.checks.default import default
from policy.checks.permission import NAME, granted
from policy.decision import Ask, Decision, Effect, Finding
from policy.models import Agent, Approval, Vote
from registry.models import Tool
from registry.risk import RiskLevel

BATCH = 4_000
SPAN = timedelta(days=30)
RECENT = timedelta(minutes=5)  # the past ends here, and the present begins
DOORS = ("mcp", "mcp", "oxp", "native", "contract")
ASK = Ask(decide_within=3_600, run_within=600)
CUSTOMERS = ("Nordlicht GmbH", "Café Blau", "Müller & Söhne", "Acme", "Öresund AB", "Kita Sonnenschein")

CALL = (
    *("id", "agent_id", "call_id", "fingerprint", "door", "tool_id", "tool_ref", "state", "fence", "dispatch"),
    *("cancel_requested", "input", "result", "result_kind", "error", "decision", "warnings", "arguments_digest"),
    *("user_id", "trace_id", "approval_id", "created_at", "started_at", "finished_at", "duration_ms"),
)
ATTEMPT = ("call_id", "number", "where", "started_at", "finished_at", "status", "code", "detail", "retry_after")
APPROVAL = (
    *("id", "call", "call_id", "door", "agent_id", "tool_id", "tool_ref", "risk", "user_id", "trace_id"),
    *("arguments_digest", "digest", "revision", "rule", "reason", "approvers", "quorum", "run_within", "state"),
    *("created_at", "decide_by", "run_by", "decided_at", "ended_at"),
)
VOTE = ("approval_id", "person_id", "answer", "reason", "at")
_WHY = {
    "failed": ("tool_failed", "The tool answered 502."),
    "timed_out": ("timeout", "The tool took longer than 30 s."),
    "denied": ("permission_denied", "The agent may see the toolkit but not call it."),
    "rejected": ("invalid_input", "customer: is required"),
    "expired": ("expired", "Nobody decided in time."),
    "cancelled": ("cancelled", "It was taken back."),
}


@dataclass(slots=True)
class Batch:
    """Rows that are written together."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    attempts: list[tuple[Any, ...]] = field(default_factory=list)
    approvals: list[tuple[Any, ...]] = field(default_factory=list)
    votes: list[tuple[Any, ...]] = field(default_factory=list)
    chains: list[tuple[Chain, list[Entry]]] = field(default_factory=list)

    @transaction.atomic
    def write(self) -> None:
        rows.insert(Approval, APPROVAL, self.approvals)
        rows.insert(Vote, VOTE, self.votes)
        rows.insert(Call, CALL, self.calls)
        rows.insert(Attempt, ATTEMPT, self.attempts)
        trail.append_all(self.chains)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """How thirty days went; the same numbers come out each time, up to the moment they end at."""

    agents: dict[str, Agent]
    tools: dict[str, Tool]
    approver: User
    until: datetime
    chance: Random

    def record(self, calls: int) -> int:
        """Writes so many calls; the number of events that they left."""
        moments = iter(self._moments(calls))
        events = 0
        while some := list(islice(moments, BATCH)):
            batch = Batch()
            for at in some:
                self._call(batch, at)
            batch.write()
            events += sum(len(entries) for _, entries in batch.chains)
        return events

    def _moments(self, calls: int) -> list[datetime]:
        """Busy by day, quiet by night and on Sundays."""
        began = self.until - SPAN
        found: list[datetime] = []
        while len(found) < calls:
            at = began + SPAN * self.chance.random()
            daylight = 0.55 - 0.45 * cos(2 * pi * (at.hour + at.minute / 60 - 2) / 24)
            if self.chance.random() < daylight * (0.35 if at.weekday() == 6 else 1):
                found.append(at)
        return sorted(found)

    def _call(self, batch: Batch, at: datetime) -> None:
        chance = self.chance
        agent = self.agents[chance.choice(tuple(self.agents))]
        sort = _chosen(chance, AGENTS[agent.name])
        tool = self.tools[f"{sort.toolkit}.{sort.name}"]
        state = self._state(sort)
        id, given = id_of(at, chance), {"customer": chance.choice(CUSTOMERS), "amount": chance.randint(1, 400)}
        told = canonical(given)
        digest = arguments_digest(tool.digest, told)
        door, trace = chance.choice(DOORS), f"{chance.getrandbits(128):032x}" if chance.random() < 0.3 else ""
        took = sort.median_ms * chance.lognormvariate(0, 0.55)
        if state == "timed_out":
            took = 30_000.0
        waited = 0.0
        approval: uuid.UUID | None = None
        is_asked = sort.risk == "high" and state not in ("rejected", "denied")
        if is_asked and state == "expired" and at + timedelta(seconds=ASK.decide_within) > self.until:
            state = "cancelled"  # people still have time to decide it
        if is_asked:
            waited = min(3_500.0, 90 * chance.lognormvariate(0, 1.1))
            if state == "expired":
                waited = float(ASK.decide_within)
            waited = min(waited, (self.until - at).total_seconds())  # nothing of the past lies ahead
            approval = id_of(at, chance)
        ran = state in ("succeeded", "failed", "timed_out")
        started = at + timedelta(seconds=waited, milliseconds=chance.uniform(1, 20)) if ran else None
        ended = (started or at + timedelta(seconds=waited)) + timedelta(milliseconds=took if ran else 2)
        code, why = _WHY.get(state, ("", ""))
        if state == "expired" and not is_asked:
            why = "No worker could run the call in time; it did not run."
        error = canonical({"code": code, "message": why}).decode() if code else ""
        decision = _decision(tool, None if state != "denied" else why)
        result = canonical({"found": chance.randint(0, 9)}).decode() if state == "succeeded" else ""
        batch.calls.append(
            (
                *(id, agent.pk, str(id), digest, door, tool.pk, tool.tool_id, state, int(ran), "queue", False),
                *(told.decode(), result, "value" if result else "", error),
                *(
                    "" if state == "rejected" else canonical(decision.as_json()).decode(),
                    "",
                    digest,
                    "",
                    trace,
                    approval,
                ),
                *(at, started, ended, round(took, 2) if ran else None),
            )
        )
        if started is not None:
            batch.attempts.append((id, 1, "worker@past", started, ended, state, code, why, None))
        told_of = Told(
            id=id,
            agent=agent.name,
            tool=tool,
            door=door,
            given=told,
            digest=digest,
            state=state,
            decision=decision,
            code=code,
            why=why,
            result=result,
            took=round(took, 2),
            at=at,
            started=started,
            ended=ended,
            approval=approval,
            approver=self.approver.get_username(),
            agreed=at + timedelta(seconds=waited) if approval and ran else None,
        )
        batch.chains.append((trail.new_chain("call", str(id)), list(told_of.by_the_call())))
        if approval is not None:
            self._approval(batch, approval, told_of, agent)

    def _state(self, sort: Sort) -> str:
        luck = self.chance.random()
        if luck < sort.failing:
            return "timed_out" if self.chance.random() < 0.2 else "failed"
        return {0: "denied", 1: "rejected", 2: "expired", 3: "cancelled"}.get(
            int((luck - sort.failing) / 0.008), "succeeded"
        )

    def _approval(self, batch: Batch, id: uuid.UUID, told: Told, agent: Agent) -> None:
        tool, agreed, ask = told.tool, told.agreed, told.decision.ask
        assert ask is not None  # only such calls have an approval
        batch.approvals.append(
            (
                *(id, told.id, str(told.id), told.door, agent.pk, tool.pk, tool.tool_id, RiskLevel.HIGH, "", ""),
                *(told.digest, told.digest, 0, told.decision.rule, told.decision.reason, ask.approvers, ask.quorum),
                *(ask.run_within, told.settled, told.at, told.decide_by),
                *(agreed + timedelta(seconds=ask.run_within) if agreed else None, agreed, told.started or told.ended),
            )
        )
        if agreed is not None:
            batch.votes.append((id, self.approver.pk, "approve", "", agreed))
        batch.chains.append((trail.new_chain("approval", str(id)), list(told.by_the_approval())))


def fill(events: int) -> None:
    """So many events of people who came in and left: what a trail holds besides calls."""
    names = [f"visitor-{number}" for number in range(200)]
    chains = {name: trail.tail_of("user", name) for name in names}
    for start in range(0, events, 20_000):
        with transaction.atomic():
            trail.append_all(
                (chains[name], [Entry(event=_turn(number), actor=f"user:{name}")])
                for number in range(start, min(start + 20_000, events))
                for name in (names[number // 2 % len(names)],)
            )


def id_of(at: datetime, chance: Random) -> uuid.UUID:
    """A UUIDv7 of that moment."""
    bits = (int(at.timestamp() * 1000) << 80) | chance.getrandbits(80)
    return uuid.UUID(int=bits & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62))


def moment() -> datetime:
    return datetime.now(UTC) - RECENT


def _turn(number: int) -> str:
    return "user.logged_out" if number % 2 else "user.logged_in"


def _chosen(chance: Random, toolkits: tuple[str, ...]) -> Sort:
    some = [sort for sort in SORTS if sort.toolkit in toolkits]
    return chance.choices(some, [sort.weight for sort in some])[0]


def _decision(tool: Tool, denied: str | None) -> Decision:
    """What the defaults say of such a call, or that the agent had no permission then."""
    if denied is not None:
        finding = Finding(check=NAME, effect=Effect.DENY, reason=denied)
        return Decision(effect=Effect.DENY, rule=NAME, reason=denied, help="", revision=0, findings=(finding,))
    risk = RiskLevel(tool.risk)
    usual = default(risk)
    return Decision(
        effect=usual.effect,
        rule=usual.check,
        reason=usual.reason,
        help=usual.help,
        revision=0,
        findings=(granted(tool.version.toolkit.name), usual),
        ask=ASK if usual.effect is Effect.ASK else None,
    )
