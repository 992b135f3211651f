"""Told: one call of the invented past, and the events that it and its approval would have left, each at its moment."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from audit.trail import Entry
from execution.models import State
from policy.decision import Decision
from registry.models import Tool

_MOMENT = timedelta(microseconds=300)  # between what follows from each other
_SETTLED = {"expired": "expired", "cancelled": "withdrawn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How one call went."""

    id: uuid.UUID
    agent: str
    tool: Tool
    door: str
    given: bytes
    digest: str
    state: str
    decision: Decision
    code: str
    why: str
    result: str
    took: float  # milliseconds
    at: datetime
    started: datetime | None
    ended: datetime
    approval: uuid.UUID | None
    approver: str
    agreed: datetime | None

    @property
    def settled(self) -> str:
        """The state that its approval ended in."""
        return _SETTLED.get(self.state, "consumed")

    @property
    def decide_by(self) -> datetime:
        assert self.decision.ask is not None  # only what was asked about has such a moment
        return self.at + timedelta(seconds=self.decision.ask.decide_within)

    def by_the_call(self) -> Iterator[Entry]:
        received = {
            "door": self.door,
            "tool": self.tool.tool_id,
            "call_id": str(self.id),
            "input_sha256": hashlib.sha256(self.given).hexdigest(),
            "tool_digest": self.tool.digest,
            "arguments_digest": self.digest,
        }
        yield Entry(event="call.received", actor=f"agent:{self.agent}", detail=received, at=self.at)
        if self.state != State.REJECTED:
            names = ("effect", "rule", "reason")
            told = self.decision.as_json()
            yield Entry(event="call.decided", actor="system", detail={name: told[name] for name in names}, at=self.at)
        if self.approval is not None:
            asked = {"approval": str(self.approval)}
            yield Entry(event="call.awaiting_approval", actor="system", detail=asked, at=self.at)
        if self.agreed is not None:
            yield Entry(event="call.approved", actor="system", at=self.agreed + _MOMENT)
        yield from self._end()

    def _end(self) -> Iterator[Entry]:
        if self.started is None:
            actor = f"agent:{self.agent}" if self.state == State.CANCELLED else "system"
            detail: dict[str, Any] = {"code": self.code, "message": self.why}
            if self.approval is not None:
                detail["approval"] = str(self.approval)
            yield Entry(event=f"call.{self.state}", actor=actor, outcome="refused", detail=detail, at=self.ended)
            return
        if self.approval is None:
            yield Entry(event="call.queued", actor="system", at=self.at)
        began = {"attempt": 1, "where": "worker@past"}
        yield Entry(event="call.started", actor="worker", detail=began, at=self.started)
        ended: dict[str, Any] = {"attempt": 1, "duration_ms": self.took}
        if self.state == State.SUCCEEDED:
            ended["result_sha256"] = hashlib.sha256(self.result.encode()).hexdigest()
            yield Entry(event="call.succeeded", actor="worker", detail=ended, at=self.ended)
        else:
            ended |= {"code": self.code, "message": self.why}
            yield Entry(event=f"call.{self.state}", actor="worker", outcome="failed", detail=ended, at=self.ended)

    def by_the_approval(self) -> Iterator[Entry]:
        ask, call = self.decision.ask, {"call": str(self.id)}
        assert ask is not None  # only such calls have an approval
        asked = {
            "digest": self.digest,
            "rule": self.decision.rule,
            "revision": self.decision.revision,
            "quorum": ask.quorum,
            "approvers": ask.approvers,
            "decide_by": self.decide_by.isoformat(),
        }
        yield Entry(event="approval.asked", actor="system", detail=call | asked, at=self.at)
        if self.agreed is None or self.started is None:
            actor = f"agent:{self.agent}" if self.state == State.CANCELLED else "system"
            reason = {"reason": "the call was cancelled"} if self.state == State.CANCELLED else {}
            yield Entry(event=f"approval.{self.settled}", actor=actor, detail=call | reason, at=self.ended)
            return
        actor = f"user:{self.approver}"
        voted = {"answer": "approve", "reason": "", "in_favour": 1, "quorum": ask.quorum}
        yield Entry(event="approval.voted", actor=actor, detail=call | voted, at=self.agreed)
        yield Entry(event="approval.approved", actor=actor, detail=call, at=self.agreed)
        yield Entry(event="approval.consumed", actor="worker", detail=call, at=self.started - _MOMENT)
