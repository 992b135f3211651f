"""Showcase: the portal's pages, each with an address that has something to show; timed by bench and photographed.

`python -m bench.showcase` prints them for a home, with a session for each person who looks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import django


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as one person sees it; its address may hang on what the database holds."""

    name: str  # of its pictures
    address: Callable[[], str]
    person: str = "admin"
    is_pictured: bool = True


RULES: tuple[dict[str, Any], ...] = (
    {"name": "no mail at night", "tools": ["Mail.*"], "when": "now.getHours() < 9", "effect": "deny"},
    {"name": "refunds go through", "tools": ["Billing.Refund"], "effect": "allow"},
)


def _call() -> str:
    """The newest one that people decided about and that then ran."""
    from execution.models import Call

    found = Call.objects.filter(approval__isnull=False, state="succeeded").order_by("-id").first()
    return f"/calls/{(found or Call.objects.latest('id')).pk}/"


def _draft() -> str:
    return f"/policy/revisions/{_drafted()}/"


def _replay() -> str:
    """What the draft would change in the newest calls; judged here and now."""
    from django.contrib.auth.models import User

    from policy import replays
    from policy.models import Replay

    number = _drafted()
    done = Replay.objects.filter(revision=number, state=Replay.State.DONE).first()
    if done is None:
        asked = replays.ask(number, 2_000, by=User.objects.get(username="polly"))
        replays.work_off(asked.pk)
        done = replays.wait_for(asked.pk, patience=60)  # a worker may have been faster
    return f"/policy/replays/{done.pk}/"


def _drafted() -> int:
    """A draft that turns some decisions around; written at the first look."""
    from django.contrib.auth.models import User

    from policy import revisions
    from policy.models import Revision
    from policy.rulespec import read_rule

    note = "Quiet nights, and refunds without waiting"
    found = Revision.objects.filter(note=note).first()
    rules = [read_rule(rule) for rule in RULES]
    return (found or revisions.new_draft(by=User.objects.get(username="polly"), rules=rules, note=note)).number


PAGES: tuple[Page, ...] = (
    Page(name="home", address=lambda: "/admin/"),
    Page(name="home-week", address=lambda: "/admin/?window=7d", is_pictured=False),
    Page(name="home-month", address=lambda: "/admin/?window=30d", is_pictured=False),
    Page(name="agents", address=lambda: "/agents/"),
    Page(name="agent", address=lambda: "/agents/support-bot/"),
    Page(name="permissions", address=lambda: "/permissions/"),
    Page(name="permissions-people", address=lambda: "/permissions/?who=people", is_pictured=False),
    Page(name="why", address=lambda: "/permissions/why/?agent=support-bot&tool=Billing.Refund"),
    Page(name="unused", address=lambda: "/permissions/unused/?days=90", is_pictured=False),
    Page(name="secrets", address=lambda: "/secrets/"),
    Page(name="catalogue", address=lambda: "/catalogue/"),
    Page(name="catalogue-search", address=lambda: "/catalogue/?q=customer&layout=list", is_pictured=False),
    Page(name="catalogue-publisher", address=lambda: "/catalogue/?q=ticket", person="petra", is_pictured=False),
    Page(name="tool", address=lambda: "/catalogue/Tickets/Find/"),
    Page(name="tool-publisher", address=lambda: "/catalogue/Tickets/Find/", person="petra", is_pictured=False),
    Page(name="publish", address=lambda: "/publish/", person="petra"),
    Page(name="publish-edit", address=lambda: "/publish/new/?from=Billing@1.0.0", person="petra"),
    Page(name="publish-form", address=lambda: "/publish/form/", person="petra"),
    Page(name="publish-preview", address=lambda: "/publish/Billing@1.1.0/", person="petra"),
    Page(
        name="publish-withdraw", address=lambda: "/publish/Billing@1.0.0/withdraw/", person="petra", is_pictured=False
    ),
    Page(name="approvals", address=lambda: "/approvals/?group=tool&q=refund", person="amir"),
    Page(name="approvals-history", address=lambda: "/approvals/history/", person="amir", is_pictured=False),
    Page(name="approvals-statistics", address=lambda: "/approvals/statistics/"),
    Page(name="access-requests", address=lambda: "/access-requests/", person="petra"),
    Page(name="policy", address=lambda: "/policy/", person="polly"),
    Page(name="policy-draft", address=_draft, person="polly"),
    Page(name="policy-replay", address=_replay, person="polly"),
    Page(name="search", address=lambda: "/search/?q=refund"),
    Page(name="call", address=_call),
    Page(name="evidence", address=lambda: "/evidence/"),
    Page(name="home-publisher", address=lambda: "/admin/?window=30d", person="petra", is_pictured=False),
)


def main() -> None:
    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    sessions = {}
    for person in {page.person for page in PAGES}:
        client = Client()
        client.force_login(User.objects.get(username=person))
        sessions[person] = client.cookies[settings.SESSION_COOKIE_NAME].value
    shown = [
        {"name": page.name, "address": page.address(), "session": sessions[page.person]}
        for page in PAGES
        if page.is_pictured
    ]
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
