"""What one person sees of approvals, grants and broken glass, and what they can do about one at this moment."""

from collections.abc import Callable, Iterable
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from guardian.shortcuts import get_objects_for_user

from policy import approvals, breakglass
from policy.approvals import ApprovalError
from policy.models import Approval, BreakGlass, Grant, Vote
from registry.actors import is_person
from registry.models import Toolkit

_KEPT = Q(revoked_at=None)
GRANT_STATES = {
    "active": _KEPT & Q(until__gt=Now(), used__lt=F("max_uses")),
    "used up": _KEPT & Q(used__gte=F("max_uses")),
    "over": _KEPT & Q(until__lte=Now(), used__lt=F("max_uses")),
    "revoked": Q(revoked_at__isnull=False),
}


def is_over(approval: Approval) -> bool:
    """Whether nobody can decide it any more, even if the sweeper has not been here yet."""
    return not approval.is_pending or approval.decide_by <= timezone.now()


def why_not(
    approval: Approval, user: User, obstacle: Callable[[Approval, User], ApprovalError | None] = approvals.obstacle
) -> ApprovalError | None:
    """Why an answer of this person would be refused now; None if it would count."""
    if not approval.is_pending:
        return ApprovalError(409, "already_decided", f"It is {approval.get_state_display().lower()}")
    if is_over(approval):
        return ApprovalError(410, "expired", "The time to decide is over")
    if any(vote.person_id == user.pk for vote in approval.votes.all()):
        return ApprovalError(409, "already_voted", "You have answered; others are still asked")
    return obstacle(approval, user)


def decidable(user: User, ids: Iterable[UUID]) -> set[UUID]:
    """Which of these this person may decide now, in one question to the database."""
    return set(approvals.to_decide(user).filter(pk__in=list(ids)).values_list("pk", flat=True))


def settling_vote(approval: Approval) -> Vote | None:
    """The answer that decided; None where nobody's did."""
    if approval.decided_at is None:
        return None
    valid = [vote for vote in approval.votes.all() if vote.voided_at is None]
    return valid[-1] if valid else None


def state_of(grant: Grant) -> str:
    """Whether later calls can still run on it, and if not, why."""
    if grant.revoked_at is not None:
        return "revoked"
    if grant.used >= grant.max_uses:
        return "used up"
    return "over" if grant.until <= timezone.now() else "active"


def visible_grants(user: User) -> QuerySet[Grant]:
    """Grants on toolkits that this person may approve or audit, those they gave, and those of agents they own."""
    found = Grant.objects.select_related("agent", "granted_by", "revoked_by")
    if user.is_superuser:
        return found
    if not is_person(user):
        return found.none()
    theirs = Q(granted_by=user.pk) | Q(agent__owner=user.pk)
    return found.filter(theirs | Q(tool__version__toolkit__in=_toolkits(user)))


def visible_glass(user: User) -> QuerySet[BreakGlass]:
    """Every use for those who may break the glass themselves; for others their own, and those on their toolkits."""
    found = BreakGlass.objects.select_related("agent", "person", "reviewed_by")
    if not is_person(user):
        return found.none()
    if user.has_perm(breakglass.PERMISSION):
        return found
    return found.filter(Q(person=user.pk) | Q(tool__version__toolkit__in=_toolkits(user)))


def _toolkits(user: User) -> QuerySet[Toolkit]:
    verbs = ["registry.approve_toolkit", "registry.audit_toolkit"]
    found: QuerySet[Toolkit] = get_objects_for_user(user, verbs, Toolkit, any_perm=True, accept_global_perms=False)
    return found.order_by()
