"""The trail: appends events to a subject's chain, in the transaction of the fact they tell; it never takes any back."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError

from audit import rows
from audit.canonical import canonical
from audit.chain import Chain, key_id, row_hash
from audit.glance import glance
from audit.models import Event
from audit.rows import Rows
from audit.stream import moment

__all__ = ["Chain", "Entry", "append", "append_all", "chain_of", "linked", "new_chain", "record", "tail_of"]

_TAIL = "SELECT seq, hash FROM audit_event WHERE subject_kind = %s AND subject_id = %s ORDER BY seq DESC LIMIT 1"
_COLUMNS = (
    "subject_kind",
    "subject_id",
    "seq",
    "event",
    "actor",
    "at",
    "outcome",
    "detail",
    "trace_id",
    "prev_hash",
    "hash",
    "key_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event to be written; its detail is a JSON value that has already been redacted."""

    event: str
    actor: str
    outcome: str = "ok"
    detail: Mapping[str, Any] = field(default_factory=dict)
    at: datetime | None = None  # now; only a past that is invented says another moment


def new_chain(kind: str, id: str) -> Chain:
    """The chain of a subject that has no events yet."""
    return Chain(kind, id)


def chain_of(kind: str, id: str, *, is_locked: bool = False) -> Chain:
    """The chain of a subject as it stands, held against other writers until the transaction ends.

    With `is_locked` the caller says that it already holds the subject's own row lock.
    """
    _demand_transaction()
    if not is_locked and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_lock_number(kind, id)])
    return tail_of(kind, id)


def tail_of(kind: str, id: str) -> Chain:
    """The chain of a subject as it stands; a writer who was overtaken since finds its number taken (IntegrityError)."""
    tail = glance(_TAIL, [kind, id])
    return Chain(kind, id) if tail is None else Chain(kind, id, tail[0], bytes(tail[1]))


def append(chain: Chain, *entries: Entry, trace_id: str = "") -> None:
    """Write all entries with one insert and move the chain on; refuses to work outside a transaction."""
    _demand_transaction()
    later, new = linked(chain, *entries, trace_id=trace_id)
    rows.insert(*new)
    chain.move_to(later)


def append_all(chains: Iterable[tuple[Chain, Sequence[Entry]]]) -> None:
    """Write the entries of many subjects with as few inserts as possible."""
    _demand_transaction()
    values: list[tuple[Any, ...]] = []
    for chain, entries in chains:
        later, new = linked(chain, *entries)
        values += new.values
        chain.move_to(later)
    rows.insert(Event, _COLUMNS, values)


def linked(chain: Chain, *entries: Entry, trace_id: str = "") -> tuple[Chain, Rows]:
    """The chain as it will be and the rows that make it so, for whoever writes them together with their fact."""
    key: bytes = settings.PLACET_AUDIT_KEY
    key_name = key_id(key)
    kind, id, seq, tail = chain.kind, chain.id, chain.seq, chain.hash
    now = datetime.now(UTC)
    now_text = moment(now)
    values: list[tuple[Any, ...]] = []
    for entry in entries:
        seq += 1
        detail = canonical(entry.detail if type(entry.detail) is dict else dict(entry.detail)).decode()
        event, actor, outcome = entry.event, entry.actor, entry.outcome
        at, at_text = (now, now_text) if entry.at is None else (entry.at, moment(entry.at))
        own = row_hash(key, key_name, kind, id, seq, event, actor, at_text, outcome, detail, trace_id, tail)
        values.append((kind, id, seq, event, actor, at, outcome, detail, trace_id, tail, own, key_name))
        tail = own
    return Chain(kind, id, seq, tail), Rows(Event, _COLUMNS, values)


def record(
    kind: str,
    id: str,
    event: str,
    *,
    actor: str,
    outcome: str = "ok",
    detail: Mapping[str, Any] | None = None,
    trace_id: str = "",
) -> None:
    """Write one event about a subject that nobody holds; joins the caller's transaction or opens its own."""
    entry = Entry(event=event, actor=actor, outcome=outcome, detail=detail or {})
    if connection.in_atomic_block:
        append(chain_of(kind, id), entry, trace_id=trace_id)
        return
    with transaction.atomic():
        append(chain_of(kind, id), entry, trace_id=trace_id)


def _demand_transaction() -> None:
    if not connection.in_atomic_block:
        raise TransactionManagementError("An audit event is written in the transaction of its fact: open one first.")


def _lock_number(kind: str, id: str) -> int:
    digest = hashlib.blake2b(f"{kind}\0{id}".encode(), digest_size=8, person=b"placet.audit")
    return int.from_bytes(digest.digest(), "big", signed=True)
