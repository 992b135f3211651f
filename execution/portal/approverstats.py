"""How approvers answer: how many, how fast, how often no; one's own, and everyone's for those who audit them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from audit.access import sees_everything
from execution.portal import numbers
from execution.portal.charts import Chart, Point, Series
from execution.portal.frame import for_people
from execution.portal.standing import Standing, standing
from execution.portal.statistics import part_of
from execution.totals import made_between
from policy import approvals
from policy.models import Approval, Vote
from policy.views.frame import page

WINDOWS = {"7": 7, "30": 30, "90": 90}
MOST = 20_000  # answers looked at, the newest
PATIENCE = (  # how long a question waited: less than, in words, and below the axis
    (timedelta(minutes=1), "under 1 min", "< 1 min"),
    (timedelta(minutes=5), "1 to 5 min", "< 5 min"),
    (timedelta(minutes=30), "5 to 30 min", "< 30 min"),
    (timedelta(hours=2), "30 min to 2 h", "< 2 h"),
    (timedelta(days=1), "2 h to a day", "< 1 d"),
    (timedelta.max, "over a day", "more"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One person's yes or no, and how long the question had waited for it."""

    person: str
    is_yes: bool
    at: datetime
    waited: timedelta

    @property
    def waited_ms(self) -> float:
        return self.waited.total_seconds() * 1000


@for_people("GET", "HEAD")
def approver_statistics(request: HttpRequest) -> HttpResponse:
    """One's own answers for everyone; each approver's for who audits the toolkits they decide for."""
    me = standing(request)
    assert me is not None  # for_people saw to it
    days = WINDOWS.get(request.GET.get("days", ""), 30)
    now = datetime.now(UTC)
    start = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    seen = audited(me)
    mine = _answers(Vote.objects.filter(person=me.user), start)
    everyone = _answers(Vote.objects.filter(approval__in=seen), start) if seen is not None else []
    context: dict[str, Any] = {
        "days": days,
        "windows": WINDOWS.values(),
        "tiles": _tiles(me.user, mine, start),
        "charts": [_by_day("mine", "Your answers", mine, start, days), _waits("my-waits", mine)] if mine else [],
        "sees_others": seen is not None,
        "all_charts": [_by_day("all", "Everyone's answers", everyone, start, days), _waits("all-waits", everyone)]
        if everyone
        else [],
        "people": _people(everyone),
        "is_cut": max(len(mine), len(everyone)) >= MOST,
        "most": MOST,
    }
    return page(request, "portal/approver_statistics.html", "Approvals", **context)


def audited(me: Standing) -> QuerySet[Approval] | None:
    """The questions of which this person may see how others answered; None if of none."""
    if sees_everything(me.user):
        return Approval.objects.all()
    toolkits = me.held.get("audit")
    return Approval.objects.filter(tool__version__toolkit__in=toolkits) if toolkits else None


def _answers(votes: QuerySet[Vote], start: datetime) -> list[Answer]:
    # A vote's number grows with time, so the newest are found without a look at the others.
    rows: Iterable[Any] = (
        votes.filter(at__gte=start)
        .order_by("-pk")
        .values_list("person__username", "answer", "at", "approval__created_at")[:MOST]
    )
    return [
        Answer(person=name, is_yes=answer == Vote.Answer.APPROVE, at=at, waited=max(at - asked, timedelta()))
        for name, answer, at, asked in rows
    ]


def _tiles(user: User, mine: Sequence[Answer], start: datetime) -> list[dict[str, str]]:
    waits = sorted(answer.waited_ms for answer in mine)
    noes = sum(not answer.is_yes for answer in mine)
    waiting = approvals.to_decide(user)
    oldest = waiting.order_by("created_at").values_list("created_at", flat=True).first()
    about = (
        f"the oldest for {numbers.took((datetime.now(UTC) - oldest).total_seconds() * 1000)}" if oldest else "nothing"
    )
    made = made_between(start, datetime.now(UTC))
    missed = approvals.concerning(user).filter(made, state=Approval.State.EXPIRED).order_by().count()
    return [
        {"name": "Waiting for you", "value": f"{waiting.count():,}", "about": about, "url": reverse("approvals")},
        {
            "name": "You answered",
            "value": numbers.short(len(mine)),
            "about": f"{noes:,} denied, {numbers.share(noes, len(mine))}" if mine else "in this time",
            "url": reverse("inbox-history"),
        },
        {
            "name": "Half of them within",
            "value": numbers.took(part_of(waits, 0.5)),
            "about": f"95 of 100 within {numbers.took(part_of(waits, 0.95))}",
            "url": "",
        },
        {"name": "Nobody answered in time", "value": f"{missed:,}", "about": "of the questions you see", "url": ""},
    ]


def _by_day(key: str, title: str, answers: Sequence[Answer], start: datetime, days: int) -> Chart:
    counted: defaultdict[bool, Counter[int]] = defaultdict(Counter)
    for answer in answers:
        counted[answer.is_yes][(answer.at - start).days] += 1
    places = range(days)
    noes = sum(counted[False].values())
    return Chart(
        key=key,
        title=f"{title} by day",
        summary=f"{len(answers):,} in {days} days, {numbers.share(noes, len(answers))} of them denials.",
        points=[Point(label=f"{start + timedelta(days=place):%d %b}") for place in places],
        series=[
            Series(name="Approved", values=[counted[True][place] for place in places], tone="good"),
            Series(name="Denied", values=[counted[False][place] for place in places], tone="bad"),
        ],
        axis="Day (UTC)",
    )


def _waits(key: str, answers: Sequence[Answer]) -> Chart:
    counted: defaultdict[bool, Counter[str]] = defaultdict(Counter)
    for answer in answers:
        counted[answer.is_yes][next(words for most, words, _ in PATIENCE if answer.waited < most)] += 1
    waits = sorted(answer.waited_ms for answer in answers)
    half, most = numbers.took(part_of(waits, 0.5)), numbers.took(part_of(waits, 0.95))
    return Chart(
        key=key,
        title="How long the question had waited",
        summary=f"Half at most {half}, 95 of 100 at most {most}.",
        points=[Point(label=words, tick=tick) for _, words, tick in PATIENCE],
        series=[
            Series(name="Approved", values=[counted[True][words] for _, words, _ in PATIENCE], tone="good"),
            Series(name="Denied", values=[counted[False][words] for _, words, _ in PATIENCE], tone="bad"),
        ],
        axis="Waited",
    )


def _people(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """One row for each approver, the busiest first."""
    by_person: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        by_person[answer.person].append(answer)
    rows = []
    for name, theirs in sorted(by_person.items(), key=lambda item: (-len(item[1]), item[0])):
        waits = sorted(answer.waited_ms for answer in theirs)
        noes = sum(not answer.is_yes for answer in theirs)
        rows.append(
            {
                "name": name,
                "answers": len(theirs),
                "denied": noes,
                "share": numbers.share(noes, len(theirs)),
                "half": part_of(waits, 0.5),
                "most": part_of(waits, 0.95),
                "last": max(answer.at for answer in theirs),
            }
        )
    return rows
