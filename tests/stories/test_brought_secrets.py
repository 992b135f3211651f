"""R15 on the whole product: what a caller brings in secret lies in no file, message, row, log line or process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from tests.execution.canaries import ENCODINGS, canary
from tests.stories.laboratory import Laboratory
from tests.stories.product import wait_until

pytestmark = pytest.mark.story

SECRET, TOKEN, KNOWN = canary("a secret"), canary("a token"), "user-whom-everybody-may-know"


def places(laboratory: Laboratory) -> Iterator[tuple[str, bytes]]:
    """Everything that the product keeps, sends or prints, by where it is."""
    for path in laboratory.home.rglob("*"):
        if path.is_file():
            yield f"file {path}", path.read_bytes()
    for pid in laboratory.product.processes():
        for name in ("cmdline", "environ"):
            with suppress(OSError):  # it has just ended
                yield f"process {pid} {name}", Path(f"/proc/{pid}/{name}").read_bytes()
    yield "what it printed", laboratory.product.output.encode()
    if laboratory.database_url:
        for (table,) in laboratory.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
            for row in laboratory.query(f'SELECT * FROM "{table}"'):
                yield f"table {table}", b"\n".join(cell if type(cell) is bytes else str(cell).encode() for cell in row)
    if broker := laboratory.environment.get("CELERY_BROKER_URL"):
        with Redis.from_url(broker) as redis:
            for key in redis.scan_iter():
                yield f"redis {key!r}", redis.dump(key) or b""


def found(laboratory: Laboratory, *texts: str) -> set[str]:
    wanted = [text.encode() for text in texts]
    return {place for place, content in places(laboratory) if any(text in content for text in wanted)}


def test_what_a_caller_brings_in_secret_is_nowhere_while_it_waits_and_after_it_ran(laboratory: Laboratory) -> None:
    context = {
        "secrets": [{"id": "API_KEY", "value": SECRET}],
        "authorization": [{"id": "google", "token": TOKEN}],
        "user_id": KNOWN,
    }
    leaks = [encode(text) for text in (SECRET, TOKEN) for encode in ENCODINGS.values()]
    leaks += [part for text in (SECRET, TOKEN) for part in (text[:16], text[-16:])]
    body = {"tool_id": "Lab.Needy", "input": {}, "context": context}
    with laboratory.frozen_workers():
        call = laboratory.send("POST", "/api/calls/", body).body
        assert wait_until(lambda: bool(found(laboratory, call["id"])), 10)
        assert found(laboratory, *leaks) == set()
    ended = laboratory.ended(call["id"])
    assert ended["state"] == "succeeded"
    assert ended["result"]["secret_length"] == len(SECRET)  # it did arrive
    assert found(laboratory, *leaks) == set()
    assert found(laboratory, KNOWN), "the search would find nothing at all"
