"""Give, use, revoke: sole writer of grants, a person's bounded yes to calls that will come."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from audit import trail
from policy import approvals, conditions
from policy.approvers import obstacle
from policy.decision import Decision, Effect, Finding
from policy.models import Approval, Grant
from policy.question import Question
from policy.visibility import groups_of
from registry.actors import actor
from registry.resolution import resolve
from registry.toolref import ToolRef

MAX_USES = 10_000


class GrantError(Exception):
    """A grant that cannot be given or taken back; the message says why."""


def give(approval: Approval, *, by: User, uses: int, until: datetime, when: str = "", reason: str) -> Grant:
    """Approve this call, and in the same breath so many later ones of the same agent to exactly this tool version."""
    reason, when = reason.strip(), when.strip()
    _refuse_unbounded(approval, uses, until, when, reason)
    with transaction.atomic():
        approvals.decide(approval.pk, by=by, answer="approve", reason=reason)
        if approval.quorum > 1:
            raise GrantError(f"This call needs {approval.quorum} people; one person alone cannot grant later ones")
        grant = Grant.objects.create(
            agent=approval.agent,
            tool=approval.tool,
            tool_ref=approval.tool_ref,
            tool_digest=approval.tool.digest,
            when=when,
            max_uses=uses,
            until=until,
            reason=reason,
            approvers=approval.approvers,
            granted_by=by,
            approval=approval,
        )
        detail = {
            "agent": grant.agent.name,
            "tool": grant.tool_ref,
            "uses": uses,
            "until": until.isoformat(),
            "when": when,
            "reason": reason,
        }
        trail.record("grant", str(grant.pk), "grant.given", actor=actor(by), detail=detail)
    return grant


def revoke(grant: Grant, *, by: User, reason: str) -> Grant:
    """From this moment no call runs on it, not even one that waits in the queue."""
    reason = reason.strip()
    if not reason:
        raise GrantError("Revoking a grant needs a reason")
    if by.pk != grant.granted_by_id and _unfit(grant, by):
        raise GrantError("Only who gave the grant, or may approve such calls, can revoke it")
    with transaction.atomic():
        if not Grant.objects.filter(pk=grant.pk, revoked_at=None).update(revoked_at=Now(), revoked_by=by):
            raise GrantError("The grant was revoked before")
        trail.record("grant", str(grant.pk), "grant.revoked", actor=actor(by), detail={"reason": reason})
    grant.refresh_from_db()
    return grant


def usable(question: Question) -> Grant | None:
    """The oldest grant in force that covers this very call."""
    candidates = Grant.objects.filter(
        agent=question.caller.agent_id,
        tool=question.tool.id,
        tool_digest=question.tool.digest,
        revoked_at=None,
        until__gt=Now(),
        used__lt=F("max_uses"),
    )
    for grant in candidates.select_related("granted_by", "agent__owner", "tool__version__toolkit").order_by("pk"):
        if _covers(grant, question) and not _unfit(grant, grant.granted_by):
            return grant
    return None


def allowed(decision: Decision, grant: Grant) -> Decision:
    """What is decided where the rules would ask and this grant has answered before."""
    reason = f"{grant.granted_by} granted {grant.max_uses} calls until {grant.until:%Y-%m-%d %H:%M} UTC: {grant.reason}"
    spoke = Finding(check=f"grant {grant.pk}", effect=Effect.ALLOW, reason=reason)
    return replace(
        decision,
        effect=Effect.ALLOW,
        rule=spoke.check,
        reason=reason,
        help="",
        findings=(*decision.findings, spoke),
        ask=None,
    )


def use(grant: Grant, call: UUID) -> bool:
    """Take one use off the meter, in the transaction that records the call; False if another call took the last."""
    in_force = Grant.objects.filter(pk=grant.pk, revoked_at=None, until__gt=Now(), used__lt=F("max_uses"))
    if not in_force.update(used=F("used") + 1):
        return False
    grant.refresh_from_db(fields=["used"])
    detail = {"call": str(call), "used": grant.used, "of": grant.max_uses}
    trail.record("grant", str(grant.pk), "grant.used", actor="system", detail=detail)
    return True


def still_stands(id: int) -> bool:
    """Before a call runs on it: it was not revoked since, and who gave it still might."""
    grant = Grant.objects.select_related("granted_by", "agent__owner", "tool__version__toolkit").get(pk=id)
    return grant.revoked_at is None and not _unfit(grant, grant.granted_by)


def hold(id: int) -> bool:
    """At the claim, in its transaction: whether it still is not revoked; if so, nobody revokes it before the commit."""
    held = Grant.objects.select_for_update(no_key=True).filter(pk=id, revoked_at=None)
    return bool(held.values_list("pk", flat=True))


def _covers(grant: Grant, question: Question) -> bool:
    if not grant.when:
        return True
    try:
        groups = groups_of(question.caller)
        return conditions.compiled(grant.when).holds(question, groups=groups, now=timezone.now())
    except conditions.ConditionFailed:
        return False


def _unfit(grant: Grant, user: User) -> bool:
    """A grant is judged by the same measure as a single approval of its tool and agent."""
    asked = Approval(agent=grant.agent, tool=grant.tool, approvers=grant.approvers)
    return obstacle(asked, user) is not None


def _refuse_unbounded(approval: Approval, uses: int, until: datetime, when: str, reason: str) -> None:
    if not 1 <= uses <= MAX_USES:
        raise GrantError(f"A grant is for 1 to {MAX_USES} calls")
    if until <= timezone.now():
        raise GrantError("A grant ends in the future")
    if not reason:
        raise GrantError("A grant says why")
    ref = ToolRef.parse(approval.tool_ref)
    tool = resolve(ref) if ref is not None else None
    if tool is None or tool.digest != approval.tool.digest:
        raise GrantError(f"{approval.tool_ref} can no longer be called")
    if found := conditions.problems(when, input_schemas=[tool.input_schema]) if when else []:
        raise GrantError(f"The condition cannot be used: {'; '.join(found)}")
