"""The inbox: what waits for a person's answer, renewed while they look at it."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet, prefetch_related_objects
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from policy import approvals
from policy.models import Approval, Vote
from policy.standing import decidable
from policy.views.cards import Card, cards_of
from policy.views.frame import for_people, page, pending_for
from registry.actors import who

ORDERS = {"urgent": ("decide_by", "pk"), "newest": ("-pk",)}
# Identical questions are on one card in any case; beyond that, what stands under one heading.
GROUPS: dict[str, Callable[[Card], str]] = {
    "alike": lambda card: "",
    "tool": lambda card: card.approval.tool_ref,
    "agent": lambda card: card.approval.agent.name,
}
MAX_ROWS = 400  # questions looked at for one page; the rest waits its turn
MAX_CARDS = 40
MAX_KNOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the person wants to see, read from the address."""

    search: str
    order: str
    group: str

    @classmethod
    def read(cls, request: HttpRequest) -> "_Asked":
        order, group = request.GET.get("order", ""), request.GET.get("group", "")
        return cls(
            search=request.GET.get("q", "").strip()[:200],
            order=order if order in ORDERS else "urgent",
            group=group if group in GROUPS else "alike",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cards under one heading; without a name they need none."""

    name: str
    cards: list[Card]

    @property
    def questions(self) -> int:
        return sum(len(card.ids) for card in self.cards)

    @property
    def can_select(self) -> bool:
        return any(card.can_decide for card in self.cards)


@for_people("GET", "HEAD")
def inbox(request: HttpRequest) -> HttpResponse:
    """The whole page; its cards renew themselves."""
    asked = _Asked.read(request)
    feed = _feed(request, asked, known=())
    return page(request, "policy/inbox.html", "Approvals", asked=asked, **feed)


@never_cache
@require_GET
def cards(request: HttpRequest) -> HttpResponse:
    """The cards alone, and what became of those the browser still shows; 204 if it has them as they are."""
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    user, asked, known = who(request), _Asked.read(request), _ids(request.GET.get("known", ""))
    if request.GET.get("seen") == _version(user, asked, known):
        return HttpResponse(status=204)
    return render(request, "policy/inbox_cards.html", _feed(request, asked, known))


def _feed(request: HttpRequest, asked: _Asked, known: tuple[UUID, ...]) -> dict[str, Any]:
    user = who(request)
    rows = list(_waiting(user, asked)[: MAX_ROWS + 1])
    gone = set(known) - {row.pk for row in rows}
    past = list(approvals.concerning(user).filter(pk__in=gone).order_by("pk")) if gone else []
    prefetch_related_objects([*rows, *past], "votes__person")
    mine = decidable(user, [row.pk for row in (*rows, *past)])
    found, is_all = cards_of(rows[:MAX_ROWS], user, mine=mine, most=MAX_CARDS)
    settled, _ = cards_of(past, user, mine=mine, most=MAX_KNOWN)
    votes = sorted((vote.pk, vote.voided_at) for row in (*rows, *past) for vote in row.votes.all())
    return {
        "version": _hash(asked, [(row.pk, row.state) for row in (*rows, *past)], votes, mine),
        "now": timezone.now(),
        "groups": grouped(found, asked.group),
        "settled": grouped(settled, asked.group),
        "is_empty": not found,
        "is_more": not is_all or len(rows) > MAX_ROWS,
        "waiting": pending_for(request),
    }


def grouped(cards: Iterable[Card], by: str) -> list[Group]:
    """The cards under headings; a heading stands where its first card would."""
    found: dict[str, list[Card]] = {}
    for card in cards:
        found.setdefault(GROUPS[by](card), []).append(card)
    return [Group(name=name, cards=these) for name, these in found.items()]


def _version(user: User, asked: _Asked, known: tuple[UUID, ...]) -> str:
    """Changes whenever a card would; far cheaper than the cards."""
    rows = list(_waiting(user, asked).values_list("pk", "state")[: MAX_ROWS + 1])
    gone = set(known) - {key for key, _ in rows}
    rows += approvals.concerning(user).filter(pk__in=gone).order_by("pk").values_list("pk", "state")
    ids = {key for key, _ in rows}
    votes = Vote.objects.filter(approval__in=ids).order_by("pk").values_list("pk", "voided_at")
    return _hash(asked, rows, list(votes), decidable(user, ids))


def _hash(asked: _Asked, rows: list[tuple[UUID, str]], votes: list[tuple[int, Any]], mine: set[UUID]) -> str:
    return hashlib.sha256(repr((asked, rows, votes, sorted(mine))).encode()).hexdigest()[:20]


def _waiting(user: User, asked: _Asked) -> QuerySet[Approval]:
    pending = approvals.concerning(user).filter(state=Approval.State.PENDING, decide_by__gt=Now())
    return matching(pending, asked.search).order_by(*ORDERS[asked.order])


def matching(found: QuerySet[Approval], search: str) -> QuerySet[Approval]:
    """Those in which each word of a search occurs."""
    for word in search.split():
        found = found.filter(
            Q(tool_ref__icontains=word)
            | Q(agent__name__icontains=word)
            | Q(rule__icontains=word)
            | Q(user_id__icontains=word)
            | Q(call_id__icontains=word)
        )
    return found


def _ids(text: str) -> tuple[UUID, ...]:
    """Ids from an address; what is none is left out."""
    found = []
    for part in text.split(",")[:MAX_KNOWN]:
        try:
            found.append(UUID(part))
        except ValueError:
            continue
    return tuple(sorted(found))
