"""`python -m bench.pages`: the server time of each page of the portal in this home, as JSON."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from statistics import median

import django

from bench.showcase import PAGES, Page

ROUNDS = 7
LIMIT_MS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTime:
    """What one page takes from the request to its last byte, and how often it asks the database."""

    name: str
    milliseconds: float
    queries: int
    status: int

    @property
    def is_good(self) -> bool:
        return self.status == 200 and self.milliseconds <= LIMIT_MS


def measured(page: Page) -> PageTime:
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client()
    client.force_login(User.objects.get(username=page.person))
    address = page.address()
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(address)  # this one also loads templates
    asked, times = len(queries), []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = client.get(address)
        times.append((time.perf_counter() - began) * 1000)
    return PageTime(name=page.name, milliseconds=round(median(times), 1), queries=asked, status=answer.status_code)


def main() -> None:
    django.setup()
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["testserver"]
    print(json.dumps([asdict(measured(page)) for page in PAGES]))


if __name__ == "__main__":
    main()
