"""Pages of events: those of every list, by a paginator for a million rows."""

from typing import Any

from rest_framework.settings import api_settings

from audit.paging import EventPaginator

_Pages: Any = api_settings.DEFAULT_PAGINATION_CLASS


class EventPages(_Pages):
    """{count, next, previous, results}."""

    django_paginator_class = EventPaginator
