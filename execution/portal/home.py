"""Home: what needs me, and how calls went; only what this person may see, and each number leads to what it counts."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from audit.visible import visible
from execution.models import State
from execution.portal import examples, numbers, statistics
from execution.portal.charts import Chart, Point, Series
from execution.portal.frame import for_people, page
from execution.portal.links import calls_url
from execution.portal.needs import needs_of
from execution.portal.standing import Standing, standing
from execution.portal.statistics import WINDOWS, Figures
from execution.portal.times import iso
from execution.totals import quantile
from policy.agents import AgentError
from registry.actors import who
from registry.models import Tool, Toolkit

TOP = 5
STATES: dict[str, tuple[str, ...]] = {
    "succeeded": (State.SUCCEEDED,),
    "failed": (State.FAILED, State.TIMED_OUT, State.UNKNOWN),
    "refused": (State.DENIED, State.REJECTED),
    "dropped": (State.EXPIRED, State.CANCELLED),
    "open": (State.AWAITING_APPROVAL, State.QUEUED, State.RUNNING, State.WAITING_CALLBACK),
}
SHOWN = (("succeeded", "Succeeded", "good"), ("failed", "Failed", "bad"), ("refused", "Refused", "warn"))


@for_people("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """Where everybody starts."""
    me = standing(request)
    assert me is not None  # for_people saw to it
    if not Toolkit.objects.exists():
        offers = me.user.is_superuser and examples.is_wanted()
        may_add = me.user.is_staff and me.sees_toolkits
        return page(request, "portal/first_run.html", "Welcome", offers_demo=offers, may_add=may_add)
    window = WINDOWS.get(request.GET.get("window", ""), WINDOWS["24h"])
    context: dict[str, Any] = {"needs": needs_of(me), "windows": WINDOWS.values(), "window": window}
    if me.sees_totals:
        context |= _calls(me, statistics.gather(me, window))
    if me.decides or me.may("audit") or me.sees_every_call:
        context["waits"] = _waits(me, window.start(datetime.now(UTC)))
    return page(request, "portal/home.html", "Home", **context)


@for_people("GET", "HEAD", "POST")
def load_demo(request: HttpRequest) -> HttpResponse:
    """Loads the examples into an empty registry and shows the new agent's key, this once."""
    if not who(request).is_superuser:
        raise PermissionDenied("Loading the examples is for superusers.")
    if request.method != "POST" or not examples.is_wanted():
        return redirect("portal-home")
    try:
        made = examples.load(owner=who(request).get_username())
    except (CommandError, AgentError, IntegrityError) as error:  # somebody else was a moment faster
        messages.error(request, f"The examples were not loaded: {error}")
        return redirect("portal-home")
    return page(request, "portal/demo_loaded.html", "The examples are loaded", made=made)


def _calls(me: Standing, figures: Figures) -> dict[str, Any]:
    all_calls, failed = figures.total(), figures.total("failed")
    return {
        "has_calls": bool(all_calls),
        "tiles": _tiles(me, figures, all_calls, failed),
        "charts": [_outcomes(me, figures, all_calls), _latency(figures)] if all_calls else [],
        "rankings": _rankings(me, figures) if all_calls else [],
    }


def _tiles(me: Standing, figures: Figures, all_calls: int, failed: int) -> list[dict[str, str]]:
    def leads(*outcomes: str) -> str:
        states = [state for outcome in outcomes for state in STATES[outcome]]
        return calls_url(states=states, since=figures.start) if me.reads_what_is_counted else ""

    refused, still_open = figures.total("refused"), figures.total("open")
    return [
        {"name": "Calls", "value": numbers.short(all_calls), "about": f"{still_open:,} still open", "url": leads()},
        {
            "name": "Failed",
            "value": numbers.short(failed),
            "about": f"{numbers.share(failed, all_calls)} of all",
            "url": leads("failed"),
        },
        {
            "name": "Refused",
            "value": numbers.short(refused),
            "about": f"{numbers.share(refused, all_calls)} of all",
            "url": leads("refused"),
        },
        {
            "name": "Half of the runs take at most",
            "value": numbers.took(figures.took(0.5)),
            "about": f"95 of 100 at most {numbers.took(figures.took(0.95))}",
            "url": leads("succeeded"),
        },
    ]


def _points(figures: Figures, *, leads: bool) -> list[Point]:
    step = timedelta(hours=figures.window.hours)
    form = "%H:%M" if figures.window.hours == 1 else "%d %b %H:%M" if figures.window.hours < 24 else "%d %b"
    return [
        Point(
            label=f"{start:{form}}",
            tick=None if figures.window.hours != 6 else f"{start:%d %b}" if start.hour == 0 else "",
            moment=iso(start) if figures.window.hours == 1 else "",
            url=calls_url(since=start, until=start + step) if leads else "",
        )
        for start in figures.starts
    ]


def _outcomes(me: Standing, figures: Figures, all_calls: int) -> Chart:
    series = [
        Series(name=name, values=[bar[outcome] for bar in figures.bars], tone=tone) for outcome, name, tone in SHOWN
    ]
    rest = [bar["dropped"] + bar["open"] for bar in figures.bars]
    series.append(Series(name="Open, expired or cancelled", values=rest, tone="calm"))
    good = numbers.share(figures.total("succeeded"), all_calls)
    return Chart(
        key="outcomes",
        title="Calls by outcome",
        summary=f"{all_calls:,} calls in the last {figures.window.title}, {good} of them succeeded.",
        points=_points(figures, leads=me.reads_what_is_counted),
        series=series,
    )


def _latency(figures: Figures) -> Chart:
    half, nearly_all = numbers.took(figures.took(0.5)), numbers.took(figures.took(0.95))
    halves, most = ([quantile(steps, part) for steps in figures.steps] for part in (0.5, 0.95))
    return Chart(
        key="latency",
        title="How long runs take",
        summary=f"p50 {half}, p95 {nearly_all}, to about four percent.",
        points=_points(figures, leads=False),
        series=[Series(name="p95", values=most, tone="warn"), Series(name="p50", values=halves, tone="good")],
        kind="lines",
        says=numbers.took,
    )


def _rankings(me: Standing, figures: Figures) -> list[dict[str, Any]]:
    """The tools that are called most, and those that fail most."""
    calls = {tool: counts.total() for tool, counts in figures.tools.items()}
    busy = sorted(calls, key=lambda tool: -calls[tool])[:TOP]
    failing = [tool for tool, counts in figures.tools.items() if counts["failed"]]
    failing = sorted(failing, key=lambda tool: -figures.tools[tool]["failed"])[:TOP]
    found = Tool.objects.select_related("version__toolkit").in_bulk({*busy, *failing})

    def row(key: int, number: int, states: tuple[str, ...], about: str) -> dict[str, str]:
        tool = found[key]
        reads = me.reads_calls_of(tool.version.toolkit_id)
        url = calls_url(search=tool.tool_id, states=states, since=figures.start) if reads else ""
        page_of = reverse("admin:registry_tool_change", args=[key])
        return {"name": visible(tool.tool_id), "page": page_of, "value": f"{number:,}", "url": url, "about": about}

    most = calls[busy[0]] if busy else 0
    return [
        {
            "title": "Busiest tools",
            "column": "Calls",
            "rows": [row(key, calls[key], (), "") | {"part": 100 * calls[key] / most} for key in busy],
            "empty": "",
        },
        {
            "title": "Most failing tools",
            "column": "Failed",
            "rows": [
                row(key, bad, STATES["failed"], f"{numbers.share(bad, calls[key])} of its calls")
                | {"part": 100 * bad / calls[key]}
                for key in failing
                for bad in (figures.tools[key]["failed"],)
            ],
            "empty": "No tool has failed in this time.",
        },
    ]


def _waits(me: Standing, start: datetime) -> dict[str, Any]:
    found = statistics.waits(me, start)
    return {
        "count": len(found),
        "half": statistics.part_of(found, 0.5),
        "most": statistics.part_of(found, 0.95),
        "longest": found[-1] if found else None,
        "url": f"{reverse('inbox-history')}?who=all" if me.may("approve", "audit") else "",
    }
