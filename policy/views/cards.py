"""Card: one question to people, or several that are the same, with everything one needs to answer it."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import prefetch_related_objects
from django.utils import timezone

from policy import approvals
from policy.models import Approval, BreakGlass, Vote
from policy.standing import decidable, is_over, settling_vote, why_not
from policy.views.exactly import Exact, exact
from policy.views.likes import Like, likes_of
from policy.views.narrowing import narrow
from policy.views.words import RISKS, STATES, in_words
from registry import durations
from registry.risk import RiskLevel

SHORT = 4_000  # characters of arguments on a card among others
WHOLE = 1_500_000  # and on a page of their own: more than any call can bring


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The oldest of some identical questions stands for them all."""

    approval: Approval
    ids: tuple[UUID, ...]
    votes: tuple[Vote, ...]
    can_decide: bool
    can_revoke: bool
    why_not: str
    arguments: Exact | None
    capabilities: tuple[tuple[str, str], ...]
    likes: tuple[Like, ...]
    glass: BreakGlass | None = None  # if it was let through without an answer
    narrow: str = ""  # a condition that holds for these very arguments, to start a grant from

    @property
    def is_over(self) -> bool:
        return is_over(self.approval)

    @property
    def in_favour(self) -> list[Vote]:
        return [vote for vote in self.votes if vote.answer == Vote.Answer.APPROVE and vote.voided_at is None]

    @property
    def settled_by(self) -> Vote | None:
        return settling_vote(self.approval)

    @property
    def state(self) -> str:
        """Its state in words; time that ran out counts before the sweeper has said so."""
        if self.approval.is_pending and self.is_over:
            return str(Approval.State.EXPIRED.label)
        return self.approval.get_state_display()

    @property
    def tone(self) -> str:
        return STATES["expired" if self.approval.is_pending and self.is_over else self.approval.state]

    @property
    def risk(self) -> RiskLevel:
        return RiskLevel(self.approval.risk)

    @property
    def risk_tone(self) -> str:
        return RISKS[self.risk]

    @property
    def joined_ids(self) -> str:
        """Every question on the card, as one value of a form."""
        return ",".join(map(str, self.ids))

    @property
    def seconds_to_decide(self) -> int:
        """All the time that there was from the asking on."""
        return max(1, round((self.approval.decide_by - self.approval.created_at).total_seconds()))

    @property
    def seconds_left(self) -> int:
        return max(0, round((self.approval.decide_by - timezone.now()).total_seconds()))

    @property
    def runs_within(self) -> str:
        """How long a yes holds: the second clock, which starts with the answer."""
        return durations.short(self.approval.run_within)

    @property
    def likes_in_words(self) -> str:
        """What was decided on like calls, counted: "4 approved, 1 denied"."""
        return ", ".join(f"{count} {word}" for word, count in Counter(like.word for like in self.likes).items())

    @property
    def version(self) -> str:
        """Changes whenever the card would look different."""
        facts = [
            self.state,
            self.ids,
            [(vote.pk, vote.voided_at) for vote in self.votes],
            self.can_decide,
            self.why_not,
            [like.approval.pk for like in self.likes],
        ]
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def cards_of(found: Sequence[Approval], user: User, *, most: int, limit: int = SHORT) -> tuple[list[Card], bool]:
    """The questions as cards, in the order in which they came; identical ones on one card. And whether that is all."""
    prefetch_related_objects(found, "votes__person", "tool__capabilities")
    mine = decidable(user, [approval.pk for approval in found])
    groups: dict[object, list[Approval]] = {}
    for approval in found:
        groups.setdefault(_sameness(approval, approval.pk in mine), []).append(approval)
    oldest = {min(group, key=lambda each: each.pk): group for group in list(groups.values())[:most]}
    likes = likes_of(oldest, user)
    cards = [_card(first, group, user, first.pk in mine, likes[first], limit) for first, group in oldest.items()]
    return cards, len(groups) <= most


def _sameness(approval: Approval, is_mine: bool) -> object:
    """Two questions are one only if nothing on their card would differ."""
    if is_over(approval):
        return approval.pk
    return (
        approval.agent_id,
        approval.tool_ref,
        approval.arguments_digest,
        approval.user_id,
        approval.rule,
        approval.revision,
        approval.approvers,
        approval.quorum,
        is_mine,
        tuple((vote.person_id, vote.answer, vote.voided_at is None) for vote in approval.votes.all()),
    )


def _card(
    first: Approval, group: Iterable[Approval], user: User, is_mine: bool, likes: Iterable[Like], limit: int
) -> Card:
    obstacle = None if is_mine else why_not(first, user)
    is_unanswered = first.decided_at is not None and settling_vote(first) is None
    arguments = approvals.shown_arguments(first)
    return Card(
        approval=first,
        ids=tuple(sorted(each.pk for each in group)),
        votes=tuple(first.votes.all()),
        can_decide=is_mine,
        can_revoke=first.state == Approval.State.APPROVED and approvals.obstacle(first, user) is None,
        why_not=obstacle.message if obstacle else "",
        arguments=None if arguments is None else exact(arguments, limit),
        capabilities=tuple((each.name, in_words(each)) for each in first.tool.capabilities.all()),
        likes=tuple(likes),
        narrow=narrow(arguments, first.tool.input_schema) if is_mine and first.quorum == 1 else "",
        glass=BreakGlass.objects.select_related("person").filter(call=first.call).first() if is_unanswered else None,
    )
