"""Sealing: signs which events exist, every few seconds, and keeps the signed statement outside the database as well."""

import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction
from django.db.models import Max

from audit.canonical import canonical
from audit.merkle import Merkle
from audit.models import Event, Seal
from audit.sealfile import SealFile
from audit.statement import ORIGIN, Statement, signed

BATCH = 50_000
EMPTY_EVERY = timedelta(minutes=1)
PATIENCE = 2.0  # seconds to wait for writers that may still add an id below the bound

_ADVISORY_LOCK = 0x706C_6163_6574_0001


def seal_new_events() -> Seal | None:
    """Seal every event that is not sealed yet; the last seal written, or None if there was nothing to do or no way.

    Call it outside any transaction: a seal outlives a rollback, so it must speak of committed events only.
    """
    file = SealFile()
    with file.held() as is_ours:
        if not is_ours:
            return None
        if connection.vendor != "postgresql":
            return _seal_all(file)
        # The lock ends with the transaction, also where a pooler hands the connection to others afterwards.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
            return _seal_all(file) if cursor.fetchone()[0] else None


def _seal_all(file: SealFile) -> Seal | None:
    last = _heal(file)
    start = last.last_id if last else 0
    bound = _settled_bound(start)
    if bound is None:
        return None
    now = datetime.now(UTC)
    if bound <= start and last is not None and now - last.sealed_at < EMPTY_EVERY:
        return None
    while True:
        last = _next(last, bound)
        # The file goes first: a crash in between leaves a line without a row, and the next run adopts it.
        file.append(last)
        seal = _keep(last)
        if last.last_id >= bound or last.count == 0:
            return seal


def _heal(file: SealFile) -> Statement | None:
    """The last seal there is, after adopting those that a crash kept out of the database."""
    row = Seal.objects.order_by("-n").first()
    last = statement_of(row) if row else None
    for statement in file.after(last.n if last else 0):
        if (last.n + 1 if last else 1) == statement.n and statement.prev_seal_hash == (last.hash if last else ORIGIN):
            _keep(statement)
            last = statement
    return last


def _next(last: Statement | None, bound: int) -> Statement:
    """The statement over the next batch of events after the last seal."""
    first_id = last.last_id + 1 if last else 1
    tree, gaps, expected = Merkle(), [], first_id
    for event_id, event_hash in _events(first_id, bound):
        if event_id > expected:
            gaps.append((expected, event_id - 1))
        tree.add(event_id, event_hash)
        expected = event_id + 1
    return signed(
        n=last.n + 1 if last else 1,
        first_id=first_id,
        # A batch that was cut short by its size ends at its last event; the next one goes on from there.
        last_id=expected - 1,
        count=tree.count,
        gaps=canonical(gaps).decode(),
        merkle_root=tree.root(),
        prev_seal_hash=last.hash if last else ORIGIN,
        sealed_at=datetime.now(UTC),
    )


def _events(first_id: int, bound: int) -> Iterator[tuple[int, bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, hash FROM audit_event WHERE id BETWEEN %s AND %s ORDER BY id LIMIT %s", [first_id, bound, BATCH]
        )
        while batch := cursor.fetchmany(2000):
            for event_id, event_hash in batch:
                yield event_id, bytes(event_hash)


def _keep(statement: Statement) -> Seal:
    with transaction.atomic():
        return Seal.objects.create(**{field.name: getattr(statement, field.name) for field in fields(statement)})


def statement_of(row: Seal) -> Statement:
    """What a row of the seal table says."""
    return Statement(
        n=row.n,
        first_id=row.first_id,
        last_id=row.last_id,
        count=row.count,
        gaps=row.gaps,
        merkle_root=bytes(row.merkle_root),
        prev_seal_hash=bytes(row.prev_seal_hash),
        sealed_at=row.sealed_at,
        key_id=row.key_id,
        signature=bytes(row.signature),
    )


def _settled_bound(start: int) -> int | None:
    """The highest event id below which no further event can appear, or None if that cannot be known now."""
    newest = Event.objects.aggregate(newest=Max("id"))["newest"] or 0
    # SQLite has one writer at a time, so ids are committed in order; on PostgreSQL an older id may still be under way.
    if connection.vendor != "postgresql" or newest <= start:
        return newest
    # Whoever holds the table's write lock now may own an id up to `newest`; whoever takes it later gets a higher one.
    writers = _writers()
    deadline = time.monotonic() + PATIENCE
    while writers:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.003)
        writers &= _writers()
    return newest


def _writers() -> set[str]:
    """The transactions that have written, or are about to write, to the event table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT virtualtransaction FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE datname = current_database() AND locktype = 'relation' AND relation = 'audit_event'::regclass "
            "AND mode = 'RowExclusiveLock' AND granted AND pid IS DISTINCT FROM pg_backend_pid()"
        )
        return {row[0] for row in cursor.fetchall()}
