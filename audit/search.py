"""Find events by any text they hold, over the whole table."""

import json

from django.db.models import Q, QuerySet

from audit.models import Event

MAX_TEXT = 500
MAX_WORDS = 8

_PLAIN = ("subject_id", "event", "actor", "trace_id", "subject_kind", "outcome")


def matching(events: QuerySet[Event], text: str) -> QuerySet[Event]:
    """The events in which every word of the text occurs somewhere, without regard to case; no words, all events."""
    for word in text[:MAX_TEXT].replace("\0", " ").split()[:MAX_WORDS]:
        events = holding(events, word)
    return events


def holding(events: QuerySet[Event], phrase: str) -> QuerySet[Event]:
    """The events in which this very text occurs somewhere, without regard to case."""
    # A detail is kept as JSON text, in which quotes, backslashes and control characters are escaped.
    found = Q(detail__icontains=json.dumps(phrase, ensure_ascii=False)[1:-1])
    for field in _PLAIN:
        found |= Q(**{f"{field}__icontains": phrase})
    return events.filter(found)
