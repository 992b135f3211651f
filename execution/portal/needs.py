"""What needs me: every question that waits for this very person, and where to answer it."""

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import QuerySet
from django.urls import reverse

from execution.access import visible_calls
from execution.models import Breaker, Call, State
from execution.portal.links import calls_url
from execution.portal.standing import Standing
from policy import accessrequests, approvals, breakglass, granting
from policy.models import AccessRequest
from policy.standing import visible_glass
from registry.models import ToolkitVersion

OPERATES = "execution.change_secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One kind of question: how many wait, and the list of them."""

    name: str
    icon: str
    count: int
    url: str
    about: str


def needs_of(who: Standing) -> list[Need]:
    """The kinds that are this person's work, those with something waiting first."""
    found = [
        Need(name=name, icon=icon, count=count(who), url=url(), about=about)
        for name, icon, concerns, count, url, about in _KINDS
        if concerns(who)
    ]
    return sorted(found, key=lambda need: not need.count)


def _approvals(who: Standing) -> int:
    return approvals.to_decide(who.user).count()


def _glass(who: Standing) -> int:
    return visible_glass(who.user).filter(verdict="").exclude(person=who.user).count()


def _requests(who: Standing) -> int:
    mine = accessrequests.visible_to(who.user).filter(
        state=AccessRequest.State.PENDING, toolkit__in=granting.governed_toolkits(who.user).order_by().values("pk")
    )
    return mine.count() if who.user.is_superuser else mine.exclude(agent__owner=who.user).count()


def _unknown(who: Standing) -> int:
    lost: QuerySet[Call] = visible_calls(who.user, None).filter(state=State.UNKNOWN).order_by()
    if not who.user.is_superuser:
        lost = lost.filter(tool__version__toolkit__in=who.held.get("publish", frozenset()))
    return lost.count()


def _breakers(who: Standing) -> int:
    found = Breaker.objects.filter(state=Breaker.State.OPEN).order_by()
    if not who.has(OPERATES):
        found = found.filter(tool__version__toolkit__in=who.held.get("publish", frozenset()))
    return found.count()


def _reviews(who: Standing) -> int:
    drafts = ToolkitVersion.objects.in_review().exclude(edited_by=who.user).order_by()
    if not who.user.is_superuser:
        drafts = drafts.filter(toolkit__in=who.held.get("review", frozenset()))
    return drafts.count()


Kind = tuple[str, str, Callable[[Standing], bool], Callable[[Standing], int], Callable[[], str], str]
_KINDS: tuple[Kind, ...] = (
    (
        "Approvals",
        "inbox",
        lambda who: who.decides,
        _approvals,
        lambda: reverse("approvals"),
        "calls that wait for your answer",
    ),
    (
        "Versions to review",
        "rate_review",
        lambda who: who.may("review"),
        _reviews,
        lambda: reverse("portal-publish"),
        "drafts that wait for a second person",
    ),
    (
        "Unknown outcomes",
        "help",
        lambda who: who.may("publish") and who.sees_calls,
        _unknown,
        lambda: calls_url(states=(State.UNKNOWN,)),
        "calls whose worker was lost: say what became of them",
    ),
    (
        "Open breakers",
        "power_off",
        lambda who: who.may("publish") or who.has(OPERATES),
        _breakers,
        lambda: f"{reverse('admin:execution_breaker_changelist')}?state__exact=open",
        "tools that failed so often that they are left alone",
    ),
    (
        "Access requests",
        "front_hand",
        lambda who: who.publishes,
        _requests,
        lambda: f"{reverse('access-requests')}?state=pending",
        "agents that ask to call your toolkits",
    ),
    (
        "Break-glass reviews",
        "emergency_home",
        lambda who: who.has(breakglass.PERMISSION),
        _glass,
        lambda: reverse("inbox-glass"),
        "calls that ran against policy, to be looked at by another person",
    ),
)
