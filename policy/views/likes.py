"""The last decisions on like calls, and what has changed in the tool since they were made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.contrib.auth.models import User
from django.db.models import Q

from policy import approvals
from policy.models import Approval, Vote
from policy.standing import settling_vote
from registry import comparisons
from registry.models import Tool, ToolkitVersion

MOST = 5  # beside each question


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """One settled approval beside the one that is being decided."""

    approval: Approval
    vote: Vote | None  # the answer that settled it; None where time or the caller did
    is_same: bool  # whether the arguments were the same
    other_version: str  # the version that was asked for, if it is not this one
    changes: tuple[str, ...]  # in the tool, from that version to this one

    @property
    def word(self) -> str:
        """What was answered, or what became of it without an answer."""
        if self.vote is not None:
            return "approved" if self.vote.answer == Vote.Answer.APPROVE else "denied"
        return self.approval.get_state_display().lower()

    @property
    def at(self) -> datetime:
        return self.approval.decided_at or self.approval.ended_at or self.approval.created_at


def likes_of(questions: Iterable[Approval], user: User) -> dict[Approval, list[Like]]:
    """For each question the last decisions on calls like it, as far as this person may see them."""
    found = pasts(list(questions))
    keys = {past.pk for these in found.values() for past in these}
    seen = set(approvals.visible_to(user).filter(pk__in=keys).values_list("pk", flat=True))
    return {question: [_like(question, past) for past in these if past.pk in seen] for question, these in found.items()}


def pasts(questions: Sequence[Approval]) -> dict[Approval, list[Approval]]:
    """The last settled approvals of the same tool, in whichever version; one query however many questions there are."""
    kinds = {_kind(question) for question in questions}
    wanted = Q(pk__in=[])
    for toolkit, name in kinds:
        like = Approval.objects.filter(tool__version__toolkit=toolkit, tool__name=name)
        settled = like.exclude(state=Approval.State.PENDING).order_by("-pk")
        wanted |= Q(pk__in=settled.values("pk")[: MOST + 1])  # one more: the question itself may be among them
    rows = Approval.objects.filter(wanted).order_by("-pk")
    found: dict[tuple[int, str], list[Approval]] = {kind: [] for kind in kinds}
    for past in rows.select_related("agent", "tool__version").prefetch_related("votes__person"):
        found[_kind(past)].append(past)
    return {question: [past for past in found[_kind(question)] if past != question][:MOST] for question in questions}


def _kind(approval: Approval) -> tuple[int, str]:
    return approval.tool.version.toolkit_id, approval.tool.name


def _like(question: Approval, past: Approval) -> Like:
    then, now = past.tool, question.tool
    is_other = then.version_id != now.version_id
    return Like(
        approval=past,
        vote=settling_vote(past),
        is_same=past.arguments_digest == question.arguments_digest,
        other_version=then.version.version if is_other else "",
        changes=_changes(then.pk, now.pk) if is_other else (),
    )


@lru_cache(maxsize=512)
def _changes(then: int, now: int) -> tuple[str, ...]:
    """Published versions never change, so neither does what lies between two of them."""
    old, new = (Tool.objects.select_related("version__toolkit").get(pk=key) for key in (then, now))
    if old.digest == new.digest:
        return ()
    first, second = (_whole(tool.version_id) for tool in (old, new))
    own = f"{new.name}: "
    told = [reason.removeprefix(own) for reason in comparisons.between(first, second).verdict.reasons if own in reason]
    return tuple(told) or ("its definition differs",)


def _whole(key: int) -> ToolkitVersion:
    return ToolkitVersion.objects.select_related("toolkit").prefetch_related("tools__capabilities").get(pk=key)
