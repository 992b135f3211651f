"""Ask, decide, use, revoke, expire: sole writer of approvals and votes.

Whoever needs both rows takes the approval's before the call's; the signal moves the call in the same transaction.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any
from uuid import UUID

import orjson
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from audit import trail
from audit.trail import Entry
from policy import approvalnotices
from policy.approvers import ApprovalError, concerning, obstacle, to_decide, visible_to
from policy.decision import Decision
from policy.models import Approval, BreakGlass, Vote
from policy.question import Question
from policy.rulesets import live_rules
from policy.sealedbox import seal, unseal
from policy.signals import approval_moved
from registry.actors import actor
from registry.clock import Later
from registry.risk import RiskLevel

__all__ = [
    "ApprovalError",
    "Asked",
    "Use",
    "ask",
    "concerning",
    "decide",
    "obstacle",
    "to_decide",
    "use",
    "visible_to",
]

State = Approval.State
BATCH = 200
MAX_REASON = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call that needs a person, as the approval keeps it."""

    call: UUID
    call_id: str
    door: str
    question: Question
    decision: Decision
    arguments_digest: str
    digest: str
    shown: bytes  # the arguments as people may see them, canonical JSON
    trace_id: str = ""


class Use(Enum):
    """What came of trying to run on an approval."""

    GOOD = "good"  # used now, or by an earlier attempt of the same call
    GONE = "gone"  # no longer approved; if that was found out just now, the call was moved with it


def ask(id: UUID, asked: Asked) -> Approval:
    """Open the question to people; in the transaction that parks the call."""
    question, decision = asked.question, asked.decision
    assert decision.ask is not None
    approval = Approval.objects.create(
        id=id,
        call=asked.call,
        call_id=asked.call_id,
        door=asked.door,
        agent_id=question.caller.agent_id,
        tool_id=question.tool.id,
        tool_ref=question.tool.tool_id,
        risk=RiskLevel(question.tool.risk),
        user_id=question.user_id,
        trace_id=asked.trace_id,
        sealed_arguments=seal(asked.shown, bound_to=box(id)),
        arguments_digest=asked.arguments_digest,
        digest=asked.digest,
        revision=decision.revision,
        rule=decision.rule,
        reason=decision.reason,
        approvers=decision.ask.approvers,
        quorum=decision.ask.quorum,
        run_within=decision.ask.run_within,
        decide_by=Later(decision.ask.decide_within),
    )
    approval.refresh_from_db()
    detail = {
        "call": str(asked.call),
        "digest": asked.digest,
        "rule": approval.rule,
        "revision": approval.revision,
        "quorum": approval.quorum,
        "approvers": approval.approvers,
        "decide_by": approval.decide_by.isoformat(),
    }
    chain = trail.new_chain("approval", str(id))
    trail.append(chain, Entry(event="approval.asked", actor="system", detail=detail), trace_id=asked.trace_id)
    approvalnotices.asked(approval)
    return approval


def decide(id: UUID, *, by: User, answer: str, reason: str = "") -> Approval:
    """One person's answer. The one function behind the page and REST; the first to reach the threshold wins."""
    reason = reason.strip()[:MAX_REASON]
    if answer == Vote.Answer.DENY and not reason:
        raise ApprovalError(422, "reason_missing", "A denial says why")
    _withdraw_if_changed(id)
    with transaction.atomic():
        approval = _held(id)
        _refuse_if_settled(approval)
        if error := obstacle(approval, by):
            raise error
        if approval.votes.filter(person=by).exists():
            raise ApprovalError(409, "already_voted", "You have answered this already")
        Vote.objects.create(approval=approval, person=by, answer=answer, reason=reason)
        in_favour = approval.votes.filter(answer=Vote.Answer.APPROVE, voided_at=None).count()
        detail = {"answer": answer, "reason": reason, "in_favour": in_favour, "quorum": approval.quorum}
        _record(approval, "approval.voted", actor(by), detail)
        if answer == Vote.Answer.DENY:
            _settle(approval, State.DENIED, actor(by), {"reason": reason})
        elif in_favour >= approval.quorum:
            _approve(approval, actor(by))
    return approval


def revoke(id: UUID, *, by: User, reason: str) -> Approval:
    """Take back a yes that has not run yet."""
    if not reason.strip():
        raise ApprovalError(422, "reason_missing", "Taking an approval back needs a reason")
    with transaction.atomic():
        approval = _held(id)
        if error := obstacle(approval, by):
            raise error
        if approval.state != State.APPROVED:
            raise ApprovalError(409, "already_decided", f"The approval is {approval.get_state_display().lower()}")
        _end(approval, State.REVOKED, actor(by), {"reason": reason.strip()[:MAX_REASON]})
    return approval


def break_open(id: UUID, *, by: User, reason: str) -> Approval:
    """A person with the right to break the glass lets an undecided call run; the caller of this checks the right."""
    with transaction.atomic():
        approval = _held(id)
        _refuse_if_settled(approval)
        _record(approval, "approval.glass_broken", actor(by), {"reason": reason}, outcome="refused")
        _approve(approval, actor(by))
    return approval


def use(id: UUID, *, digest: str, is_retry: bool) -> Use:
    """At the claim, in its transaction: everything the yes was bound to is looked at once more, then it is used up."""
    approval = _held(id)
    if approval.digest != digest:
        if approval.state in (State.PENDING, State.APPROVED):
            _end(approval, State.WITHDRAWN, "worker", {"reason": "what would run is not what was approved"})
        return Use.GONE
    if approval.state == State.CONSUMED:
        return Use.GOOD if is_retry else Use.GONE
    if approval.state != State.APPROVED:
        return Use.GONE
    if not _is_in_time(approval, run_by__gt=Now()):
        _end(approval, State.LAPSED, "worker", {})
        return Use.GONE
    if not _still_stands(approval):
        return Use.GONE
    used = Approval.objects.filter(pk=id, state=State.APPROVED, run_by__gt=Now())
    if not used.update(state=State.CONSUMED, ended_at=Now(), sealed_arguments=None):
        return Use.GONE
    _record(approval, "approval.consumed", "worker", {})
    return Use.GOOD


def withdraw(id: UUID, *, by: str, reason: str) -> bool:
    """The call will not run after all; False if the approval had ended before. The call is its owner's to move."""
    approval = _held(id)
    if approval.state not in (State.PENDING, State.APPROVED):
        return False
    _end(approval, State.WITHDRAWN, by, {"reason": reason}, is_silent=True)
    return True


def expire_due() -> int:
    """What nobody decided, or nobody ran, in time; by the database's clock. Safe to run anywhere at once."""
    undecided = Approval.objects.filter(state=State.PENDING, decide_by__lte=Now())
    unused = Approval.objects.filter(state=State.APPROVED, run_by__lte=Now())
    ended = 0
    for due, state in ((undecided, State.EXPIRED), (unused, State.LAPSED)):
        for id in list(due.values_list("pk", flat=True)[:BATCH]):
            with transaction.atomic():
                approval = due.select_for_update(of=("self",), skip_locked=True).filter(pk=id).first()
                if approval is not None:
                    _end(approval, state, "system", {})
                    ended += 1
    return ended


def shown_arguments(approval: Approval) -> Any | None:
    """Exactly what will run, except what the schema or the caller marked secret; None once the question is settled."""
    if approval.sealed_arguments is None:
        return None
    return orjson.loads(unseal(approval.sealed_arguments, bound_to=box(approval.pk)))


def pending_of(agent_id: int) -> int:
    return Approval.objects.filter(agent=agent_id, state=State.PENDING).count()


def _held(id: UUID) -> Approval:
    """The approval, held against other writers until this transaction ends."""
    found = Approval.objects.select_for_update(of=("self",)).select_related("agent__owner", "tool__version__toolkit")
    approval = found.filter(pk=id).first()
    if approval is None:
        raise ApprovalError(404, "not_found", "There is no such approval")
    return approval


def _refuse_if_settled(approval: Approval) -> None:
    if approval.state == State.EXPIRED:
        raise ApprovalError(410, "expired", "Nobody decided in time; the call has to be made again")
    if approval.state != State.PENDING:
        code = "withdrawn" if approval.state == State.WITHDRAWN else "already_decided"
        raise ApprovalError(409, code, _how_it_ended(approval))
    if not _is_in_time(approval, decide_by__gt=Now()):
        raise ApprovalError(410, "expired", "The time to decide is over; the call has to be made again")


def _how_it_ended(approval: Approval) -> str:
    """Who decided, where that is why it is over; a question may also end while some have answered it."""
    answer = {State.APPROVED: "approved", State.CONSUMED: "approved", State.DENIED: "denied"}.get(State(approval.state))
    last = approval.votes.filter(voided_at=None).select_related("person").last()
    if answer is None or last is None:
        return f"The approval is {approval.get_state_display().lower()}"
    return f"The call was {answer} by {last.person}"


def _is_in_time(approval: Approval, **clock: Any) -> bool:
    return Approval.objects.filter(pk=approval.pk, **clock).exists()


def _approve(approval: Approval, by: str) -> None:
    moved = Approval.objects.filter(pk=approval.pk, state=State.PENDING, decide_by__gt=Now()).update(
        state=State.APPROVED, decided_at=Now(), run_by=Later(approval.run_within)
    )
    _announce(approval, moved, "approval.approved", by, {})


def _settle(approval: Approval, state: Approval.State, by: str, detail: dict[str, Any]) -> None:
    moved = Approval.objects.filter(pk=approval.pk, state=State.PENDING, decide_by__gt=Now()).update(
        state=state, decided_at=Now(), ended_at=Now(), sealed_arguments=None
    )
    _announce(approval, moved, f"approval.{state.value}", by, detail)


def _end(approval: Approval, state: Approval.State, by: str, detail: dict[str, Any], is_silent: bool = False) -> None:
    moved = Approval.objects.filter(pk=approval.pk, state=approval.state).update(
        state=state, ended_at=Now(), sealed_arguments=None
    )
    _announce(approval, moved, f"approval.{state.value}", by, detail, is_silent=is_silent)


def _announce(
    approval: Approval, moved: int, event: str, by: str, detail: dict[str, Any], is_silent: bool = False
) -> None:
    if not moved:  # the clock ran out between two statements
        raise ApprovalError(410, "expired", "The time to decide is over; the call has to be made again")
    approval.refresh_from_db()
    _record(approval, event, by, detail)
    approvalnotices.moved(approval)
    if not is_silent:
        approval_moved.send(sender=Approval, approval=approval)


def _record(approval: Approval, event: str, by: str, detail: dict[str, Any], outcome: str = "ok") -> None:
    """We hold the approval's row, and nobody writes on its chain without it."""
    chain = trail.chain_of("approval", str(approval.pk), is_locked=True)
    entry = Entry(event=event, actor=by, outcome=outcome, detail={"call": str(approval.call), **detail})
    trail.append(chain, entry, trace_id=approval.trace_id)


def _withdraw_if_changed(id: UUID) -> None:
    """An answer under another policy would be worth nothing at the claim: better to say so now."""
    live = live_rules().number
    if not Approval.objects.filter(pk=id, state=State.PENDING).exclude(revision=live).exists():
        return
    with transaction.atomic():
        approval = _held(id)
        if approval.state == State.PENDING and approval.revision != live:
            _end(approval, State.WITHDRAWN, "system", {"reason": "the policy has changed since the call was made"})


def _still_stands(approval: Approval) -> bool:
    """Whether enough of those who said yes still may; if not, their votes are void and the question is open again."""
    if BreakGlass.objects.filter(call=approval.call).exists():
        return True
    votes = list(approval.votes.filter(answer=Vote.Answer.APPROVE, voided_at=None).select_related("person"))
    void = [vote for vote in votes if obstacle(approval, vote.person) is not None]
    if len(votes) - len(void) >= approval.quorum:
        return True
    Vote.objects.filter(pk__in=[vote.pk for vote in void]).update(voided_at=Now())
    names = [vote.person.get_username() for vote in void]
    if not _is_in_time(approval, decide_by__gt=Now()):
        _end(approval, State.LAPSED, "worker", {"void": names})
        return False
    moved = Approval.objects.filter(pk=approval.pk, state=State.APPROVED).update(
        state=State.PENDING, run_by=None, decided_at=None
    )
    _announce(approval, moved, "approval.reopened", "worker", {"void": names})
    return False


def box(id: UUID) -> str:
    """The name of the place that an approval's arguments are sealed for."""
    return f"policy.approval:{id}"
