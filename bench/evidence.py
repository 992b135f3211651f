"""`python -m bench.evidence`: what a home's database holds of the calls that were answered."""

from __future__ import annotations

import json
from collections import Counter

import django

EVENTS = ("call.received", "call.decided", "call.queued", "call.started", "call.succeeded")


def counted() -> dict[str, int]:
    """Calls that succeeded, and every row and event that such a call must have left, each counted on its own."""
    from django.db.models import Count

    from audit.models import Event
    from execution.models import Attempt, Call, State

    ended = Call.objects.filter(state=State.SUCCEEDED)
    told = Event.objects.filter(subject_kind="call").values_list("event").annotate(Count("id")).order_by()
    by_name = Counter(dict(told))
    return {
        "calls": Call.objects.count(),
        "succeeded": ended.count(),
        "queued": ended.filter(dispatch="queue").count(),
        "attempts": Attempt.objects.filter(status="succeeded").count(),
        **{name: by_name[name] for name in EVENTS},
    }


def problem(found: dict[str, int], answers: int, before: dict[str, int] | None = None) -> str:
    """What does not add up, or nothing; what was there before any answer does not count."""
    if before is not None:
        found = {name: count - before[name] for name, count in found.items()}
    expected = dict.fromkeys(found, answers) | {"call.queued": found["queued"], "queued": found["queued"]}
    wrong = [f"{name} {count}, not {expected[name]}" for name, count in found.items() if count != expected[name]]
    return "; ".join(wrong)


if __name__ == "__main__":
    django.setup()
    print(json.dumps(counted()))
