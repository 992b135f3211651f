"""A small model of calls that people decide about: what each step on them must lead to, whatever came before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from execution.models import Call
from policy.approvals import ApprovalError
from policy.breakglass import BreakGlassError
from policy.models import Approval, Grant
from policy.rulesets import live_rules
from registry.clock import Later

TOOLS = {"Fire": 1, "Detonate": 2, "FireAgain": 1, "Ring": 0}  # how many people each asks
PEOPLE = ("ana", "ben", "eva")
Pair = tuple[str, str]  # the states of an approval and its call
ENDS: dict[str, Pair] = {
    "withdrawn": ("withdrawn", "denied"),
    "lapsed": ("lapsed", "expired"),
    "reopened": ("pending", "awaiting_approval"),
    "taken": ("consumed", "running"),
}


@dataclass
class Known:
    """What the model knows of one call."""

    tool: str
    call_id: str
    policy: int
    grant: int | None = None
    yes: set[str] = field(default_factory=set)
    voted: set[str] = field(default_factory=set)
    is_glass_broken: bool = False
    fences: int = 0
    told: tuple[str, str, str] | None = None  # what its caller was told at its end


def said(act: Callable[[], str]) -> str:
    """What an act led to, or the code of its refusal."""
    try:
        return act()
    except (ApprovalError, BreakGlassError) as error:
        return error.code


class Model:
    """What is known of each call, who may approve, and whether the version is still there."""

    def __init__(self) -> None:
        self.known: dict[Any, Known] = {}
        self.permitted = set(PEOPLE)
        self.is_withdrawn = False

    def fate(self, row: Call, approval: Approval | None, known: Known) -> str:
        """What must become of a queued call that a worker reaches for."""
        if row.cancel_requested:
            return "cancelled"
        if self.is_withdrawn:
            return "withdrawn"
        if known.grant is not None:
            grant = Grant.objects.get(pk=known.grant)
            stands = grant.revoked_at is None and grant.granted_by.username in self.permitted
            return "taken" if stands else "denied"
        if approval is None:
            return "taken"
        if known.policy != live_rules().number:
            return "withdrawn"
        if known.fences > 0:
            return "taken"
        if self.is_past(approval, "run_by"):
            return "lapsed"
        if known.is_glass_broken or len(known.yes & self.permitted) >= approval.quorum:
            return "taken"
        return "lapsed" if self.is_past(approval, "decide_by") else "reopened"

    def refusal(self, approval: Approval, id: Any, who: str) -> str:
        """The code that an answer must be refused with; nothing if it counts."""
        if approval.state == "expired":
            return "expired"
        if approval.state == "pending" and self.known[id].policy != live_rules().number:
            return "withdrawn"
        if approval.state != "pending":
            return "withdrawn" if approval.state == "withdrawn" else "already_decided"
        if self.is_past(approval, "decide_by"):
            return "expired"
        if who not in self.permitted:
            return "not_an_approver"
        return "already_voted" if who in self.known[id].voted else ""

    @staticmethod
    def count(known: Known, who: str, answer: str) -> None:
        known.voted.add(who)
        if answer == "approve":
            known.yes.add(who)

    @staticmethod
    def if_agreed(known: Known) -> str:
        return "approved" if len(known.yes) >= TOOLS[known.tool] else "pending"

    def is_in_force(self, grant: Grant, tool: str) -> bool:
        is_left = grant.used < grant.max_uses and grant.revoked_at is None
        return is_left and grant.tool.name == tool and grant.granted_by.username in self.permitted

    def is_late(self, approval: Approval) -> bool:
        return self.is_past(approval, "decide_by" if approval.state == "pending" else "run_by")

    @staticmethod
    def is_past(approval: Approval, clock: str) -> bool:
        return Approval.objects.filter(pk=approval.pk, **{f"{clock}__lte": Later(0)}).exists()

    @staticmethod
    def approval(id: Any) -> Approval | None:
        return Approval.objects.filter(call=id).first()
