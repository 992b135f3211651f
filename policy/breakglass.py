"""Breaking the glass: who may, what is written down, and the review afterwards. Sole writer of its rows."""

import logging
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from audit import trail
from policy import notices
from policy.models import Agent, BreakGlass
from registry.actors import actor, is_person
from registry.models import Tool

logger = logging.getLogger(__name__)

PERMISSION = "policy.break_glass"


class BreakGlassError(Exception):
    """A glass that is not broken, or not reviewed; says why, and how a door should tell it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def refuse_unfit(user: User, reason: str) -> None:
    if not is_person(user):
        raise BreakGlassError(403, "not_a_person", "Only a person who has logged in breaks the glass")
    if not user.has_perm(PERMISSION):
        raise BreakGlassError(403, "not_permitted", f"Breaking the glass needs the permission {PERMISSION}")
    if len(reason.strip()) < 3:
        raise BreakGlassError(422, "reason_missing", "Breaking the glass needs a reason")


def record(
    call: UUID, *, agent: Agent, tool: Tool, by: User, reason: str, instead_of: UUID | None = None
) -> BreakGlass:
    """Written, told and alarmed in the transaction that lets the call run."""
    row = BreakGlass.objects.create(
        call=call,
        instead_of=instead_of,
        agent=agent,
        tool=tool,
        tool_ref=tool.tool_id,
        person=by,
        reason=reason.strip(),
    )
    detail = {"call": str(call), "agent": agent.name, "tool": row.tool_ref, "reason": row.reason}
    if instead_of is not None:
        detail["instead_of"] = str(instead_of)
    trail.record("break_glass", str(row.pk), "glass.broken", actor=actor(by), outcome="refused", detail=detail)
    logger.error("GLASS BROKEN by %s: %s of agent %s: %s", by.get_username(), row.tool_ref, agent.name, row.reason)
    notices.tell(
        "break_glass.used",
        people=_to_alarm(tool, by),
        subject=f"{by.get_username()} broke the glass for {row.tool_ref}",
        text=(
            f"{by.get_username()} let a call of agent {agent.name} to {row.tool_ref} run although policy had not"
            f" allowed it.\nThe reason given: {row.reason}\nIt waits for another person's review."
        ),
        path="/approvals/break-glass/",
        facts={"tool": row.tool_ref, "agent": agent.name, "person": by.get_username(), "call": str(call)},
    )
    return row


def review(row: BreakGlass, *, by: User, verdict: str, note: str = "") -> BreakGlass:
    """Another person says afterwards whether it was right."""
    if not is_person(by) or not by.has_perm(PERMISSION):
        raise BreakGlassError(403, "not_permitted", f"Reviewing needs the permission {PERMISSION}")
    if row.person_id == by.pk:
        raise BreakGlassError(403, "self_review", "Another person reviews it")
    if verdict == BreakGlass.Verdict.UNJUSTIFIED and not note.strip():
        raise BreakGlassError(422, "reason_missing", "Say what was wrong with it")
    with transaction.atomic():
        changes = {"verdict": verdict, "note": note.strip(), "reviewed_by": by, "reviewed_at": Now()}
        if not BreakGlass.objects.filter(pk=row.pk, verdict="").update(**changes):
            raise BreakGlassError(409, "already_reviewed", "It was reviewed before")
        detail = {"verdict": verdict, "note": note.strip(), "call": str(row.call)}
        trail.record("break_glass", str(row.pk), "glass.reviewed", actor=actor(by), detail=detail)
    row.refresh_from_db()
    return row


def allows(call: UUID) -> bool:
    return BreakGlass.objects.filter(call=call).exists()


def _to_alarm(tool: Tool, by: User) -> list[User]:
    """Everyone who may review it, and the toolkit's owner."""
    owner = Q(pk=tool.version.toolkit.owner_id) if tool.version.toolkit.owner_id else Q(pk__in=[])
    fit = Q(is_superuser=True) | Q(user_permissions__codename="break_glass")
    found = User.objects.filter(owner | fit | Q(groups__permissions__codename="break_glass"), is_active=True)
    return list(found.exclude(pk=by.pk).distinct())
