"""Who may decide an approval: a person with the right, and neither the caller nor anyone who stands to gain."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from guardian.shortcuts import get_objects_for_user, get_users_with_perms

from policy.models import Approval
from registry import access
from registry.actors import is_person
from registry.models import Toolkit

READS_ALL = ("execution.view_call", "registry.audit_toolkit")  # on every toolkit, as auditors and operators have it


class ApprovalError(Exception):
    """An answer that cannot be given; says why, and how a door should tell it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def obstacle(approval: Approval, user: User) -> ApprovalError | None:
    """Why this person may not decide this approval; None if they may. Looks at the person, not at the time."""
    if not is_person(user):
        return ApprovalError(403, "not_a_person", "Only a person who has logged in decides an approval")
    if not user.is_active:
        return ApprovalError(403, "not_an_approver", "This account is disabled")
    if reason := _interest(approval, user):
        return ApprovalError(403, "self_approval", reason)
    toolkit = approval.tool.version.toolkit
    if not access.may(user, "approve", toolkit):
        return ApprovalError(403, "not_an_approver", f"Deciding needs the permission 'approve' on {toolkit}")
    if approval.approvers and not user.groups.filter(name=approval.approvers).exists():
        return ApprovalError(403, "not_an_approver", f"The rule asks the group {approval.approvers}")
    return None


def _interest(approval: Approval, user: User) -> str:
    """Four eyes: whoever asked, answers for the agent or last edited the tool does not also agree to it."""
    owner = approval.agent.owner
    if approval.agent.user_id == user.pk:
        return "Nobody approves a call of their own"
    if owner is not None and (owner.pk == user.pk or _same_address(owner, user)):
        return f"You answer for agent {approval.agent}; another person decides its calls"
    if approval.tool.version.edited_by_id == user.pk:
        return f"You edited {approval.tool.version} last; another person decides its calls"
    if approval.user_id and approval.user_id in (user.get_username(), user.email):
        return "The call is made on your behalf; another person decides it"
    return ""


def _same_address(one: User, other: User) -> bool:
    """A second account of the same person."""
    return bool(one.email) and one.email.casefold() == other.email.casefold()


def visible_to(user: User) -> QuerySet[Approval]:
    """Approvals that this person may read: all for who reads every call, else those that concern them."""
    if is_person(user) and any(map(user.has_perm, READS_ALL)):
        return Approval.objects.select_related("agent__owner", "tool__version__toolkit")
    return concerning(user)


def concerning(user: User) -> QuerySet[Approval]:
    """Approvals of toolkits that this person may approve or audit, and of agents they own: those an inbox shows."""
    found = Approval.objects.select_related("agent__owner", "tool__version__toolkit")
    if user.is_superuser:
        return found
    if not is_person(user):
        return found.none()
    toolkits = _toolkits(user, "approve_toolkit", "audit_toolkit")
    return found.filter(Q(tool__version__toolkit__in=toolkits) | Q(agent__owner=user.pk))


def to_decide(user: User) -> QuerySet[Approval]:
    """What waits for this very person: pending, in time, and theirs to decide."""
    if not is_person(user):
        return Approval.objects.none()
    waiting = concerning(user).filter(state=Approval.State.PENDING, decide_by__gt=Now())
    if not user.is_superuser:
        waiting = waiting.filter(tool__version__toolkit__in=_toolkits(user, "approve_toolkit"))
    mine = user.groups.values_list("name", flat=True)
    waiting = waiting.filter(Q(approvers="") | Q(approvers__in=list(mine)))
    waiting = waiting.exclude(agent__owner=user.pk).exclude(tool__version__edited_by=user.pk)
    if user.email:
        waiting = waiting.exclude(agent__owner__email__iexact=user.email)
    named = [name for name in (user.get_username(), user.email) if name]
    return waiting.exclude(user_id__in=named).exclude(votes__person=user.pk)


def people_to_ask(approval: Approval) -> list[User]:
    """Everyone who could decide it, for a notice."""
    toolkit = approval.tool.version.toolkit
    permitted: Any = get_users_with_perms(
        toolkit, only_with_perms_in=["approve_toolkit"], with_group_users=True, with_superusers=True
    )
    found: QuerySet[User] = permitted.filter(is_active=True)
    if approval.approvers:
        found = found.filter(groups__name=approval.approvers)
    return [user for user in found.distinct() if is_person(user) and not _interest(approval, user)]


def _toolkits(user: User, *codenames: str) -> QuerySet[Toolkit]:
    return get_objects_for_user(
        user, [f"registry.{name}" for name in codenames], Toolkit, any_perm=True, accept_global_perms=False
    ).order_by()
