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
from policy.approvals import ApprovalError
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


def cards_of(
    found: Sequence[Approval], user: User, *, most: int, limit: int = SHORT, mine: set[UUID] | None = None
) -> tuple[list[Card], bool]:
    """The questions as cards, in the order in which they came; identical ones on one card. And whether that is all.

    `mine` are those that this person may decide, if that is known already.
    """
    if not found:
        return [], True
    prefetch_related_objects(found, "votes__person", "tool__capabilities")
    mine = decidable(user, [approval.pk for approval in found]) if mine is None else mine
    groups: dict[object, list[Approval]] = {}
    for approval in found:
        groups.setdefault(_sameness(approval, approval.pk in mine), []).append(approval)
    oldest = {min(group, key=lambda each: each.pk): group for group in list(groups.values())[:most]}
    likes, obstacles, glass = likes_of(oldest, user), _Obstacles(user), _glass(oldest)
    cards = [
        _card(first, group, obstacles, first.pk in mine, likes[first], glass.get(first.call), limit)
        for first, group in oldest.items()
    ]
    return cards, len(groups) <= most


class _Obstacles:
    """Why one person may not decide; looked up once for all questions that cannot differ in it."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._known: dict[object, ApprovalError | None] = {}

    def why_not(self, approval: Approval) -> ApprovalError | None:
        return why_not(approval, self._user, self._obstacle)

    def may_revoke(self, approval: Approval) -> bool:
        return approval.state == Approval.State.APPROVED and self._obstacle(approval, self._user) is None

    def _obstacle(self, approval: Approval, user: User) -> ApprovalError | None:
        facts = (approval.agent_id, approval.tool.version_id, approval.user_id, approval.approvers)
        if facts not in self._known:
            self._known[facts] = approvals.obstacle(approval, user)
        return self._known[facts]


def _glass(found: Iterable[Approval]) -> dict[UUID, BreakGlass]:
    """The broken glass of those that were let through without an answer."""
    calls = [each.call for each in found if each.decided_at is not None and settling_vote(each) is None]
    if not calls:
        return {}
    return {use.call: use for use in BreakGlass.objects.select_related("person").filter(call__in=calls)}


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
    first: Approval,
    group: Iterable[Approval],
    obstacles: _Obstacles,
    is_mine: bool,
    likes: Iterable[Like],
    glass: BreakGlass | None,
    limit: int,
) -> Card:
    obstacle = None if is_mine else obstacles.why_not(first)
    arguments = approvals.shown_arguments(first)
    return Card(
        approval=first,
        ids=tuple(sorted(each.pk for each in group)),
        votes=tuple(first.votes.all()),
        can_decide=is_mine,
        can_revoke=obstacles.may_revoke(first),
        why_not=obstacle.message if obstacle else "",
        arguments=None if arguments is None else exact(arguments, limit),
        capabilities=tuple((each.name, in_words(each)) for each in first.tool.capabilities.all()),
        likes=tuple(likes),
        narrow=narrow(arguments, first.tool.input_schema) if is_mine and first.quorum == 1 else "",
        glass=glass,
    )
