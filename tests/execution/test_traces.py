"""What belongs to one trace is found by an index, which leaves out all that belongs to none."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import QuerySet

from audit.api.filters import EventFilter
from audit.models import Event
from execution.api.filters import CallFilter
from execution.models import Call

pytestmark = pytest.mark.django_db


def plan(found: QuerySet[Event] | QuerySet[Call]) -> str:
    """How the database would find them if there were many."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
    return found.order_by().explain()


@pytest.mark.parametrize(
    ("index", "found"),
    [
        ("event_by_trace", lambda asked: EventFilter(asked, Event.objects.all()).qs),
        ("calls_of_a_trace", lambda asked: CallFilter(asked, Call.objects.all()).qs),
    ],
)
def test_a_trace_is_found_by_its_index(index: str, found: object) -> None:
    assert callable(found)
    assert index in plan(found({"trace_id": "abc"}))
