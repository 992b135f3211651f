"""Home: what needs me, and how calls went; only what this person may see, and each number leads to what it counts."""

from datetime import UTC, datetime
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
from execution.portal import callcharts, examples, numbers, statistics
from execution.portal.frame import for_people, page
from execution.portal.links import calls_url
from execution.portal.needs import needs_of
from execution.portal.shelf import pages_for
from execution.portal.standing import Standing, standing
from execution.portal.statistics import WINDOWS, Figures
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
        "charts": [callcharts.outcomes(figures, _leads(me)), callcharts.latency(figures)] if all_calls else [],
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


def _leads(me: Standing) -> callcharts.Leads | None:
    """A bar leads to its calls where the list shows all that were counted."""
    return (lambda since, until: calls_url(since=since, until=until)) if me.reads_what_is_counted else None


def _rankings(me: Standing, figures: Figures) -> list[dict[str, Any]]:
    """The tools that are called most, and those that fail most."""
    calls = {tool: counts.total() for tool, counts in figures.tools.items()}
    busy = sorted(calls, key=lambda tool: -calls[tool])[:TOP]
    failing = [tool for tool, counts in figures.tools.items() if counts["failed"]]
    failing = sorted(failing, key=lambda tool: -figures.tools[tool]["failed"])[:TOP]
    found = Tool.objects.select_related("version__toolkit").in_bulk({*busy, *failing})
    pages = pages_for(me.user, found.values())

    def row(key: int, number: int, states: tuple[str, ...], about: str) -> dict[str, str]:
        tool = found[key]
        reads = me.reads_calls_of(tool.version.toolkit_id)
        url = calls_url(search=tool.tool_id, states=states, since=figures.start) if reads else ""
        return {
            "name": visible(tool.tool_id),
            "page": pages.get(tool.pk, ""),
            "value": f"{number:,}",
            "url": url,
            "about": about,
        }

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
