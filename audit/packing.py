"""Packing: events and everything that ties them to signed seals, written into a pack in bounded memory."""

import hashlib
import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Max, QuerySet

from audit.attestation import published_keys
from audit.chain import known_keys, row_hash
from audit.exports import FIELDS, as_json
from audit.models import Event, Seal
from audit.packfile import PackFile, written
from audit.proofs import leaf, pruned
from audit.sealing import statement_of
from audit.statement import Statement
from audit.stream import moment, raw

CHUNK = 1_000
ROW_DIGITS = 16  # enough to say which row was changed; that one was is told by the hash of the whole file

Progress = Callable[[int], None]
Seen = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class Packed:
    """What was found while the events were written."""

    events: int = 0
    seals: int = 0
    unsealed: int = 0
    first_bad: dict[str, Any] | None = None  # the first event whose keyed hash does not fit what it says
    ids: "array[int]" = field(default_factory=lambda: array("q"))

    def told(self) -> dict[str, Any]:
        """As the signed list of the pack says it."""
        return {
            "events": self.events,
            "first_id": self.ids[0] if self.ids else None,
            "last_id": self.ids[-1] if self.ids else None,
            "seals": self.seals,
            "unsealed": self.unsealed,
            "keyed_hashes": {"checked": self.events, "first_bad": self.first_bad},
        }


def pack_events(pack: PackFile, events: QuerySet[Event], *, on_event: Seen, on_progress: Progress) -> Packed:
    """Writes events.jsonl, events.rows, seals.jsonl, proofs.jsonl and keys.json."""
    packed = Packed()
    keys, digests = known_keys(), bytearray()
    with pack.entry("events.jsonl") as out:
        for row in _rows(events):
            _check(packed, row, keys)
            on_event(row)
            line = (json.dumps(as_json(row), separators=(",", ":")) + "\n").encode()
            digests += hashlib.sha256(line).hexdigest()[:ROW_DIGITS].encode() + b"\n"
            out.write(line)
            packed.events += 1
            packed.ids.append(row["id"])
            if packed.events % CHUNK == 0:
                on_progress(packed.events)
    pack.add("events.rows", digests)
    del digests
    on_progress(packed.events)
    _write_seals(pack, packed, on_progress)
    pack.add("keys.json", written(published_keys()))
    return packed


def _rows(events: QuerySet[Event]) -> Iterator[dict[str, Any]]:
    """Up the ids, a few at a time, to the newest event there was at the start."""
    names = (*FIELDS, "key_id")
    events = events.order_by("id")
    last, newest = 0, events.aggregate(newest=Max("id"))["newest"] or 0
    while last < newest:
        chunk = list(events.filter(id__gt=last, id__lte=newest).values_list(*names)[:CHUNK])
        if not chunk:
            return
        for values in chunk:
            yield dict(zip(names, values, strict=True))
        last = chunk[-1][0]


def _check(packed: Packed, row: dict[str, Any], keys: dict[str, bytes]) -> None:
    """Only here is the key at hand: whoever opens the pack cannot do this again."""
    if packed.first_bad is not None:
        return
    key = keys.get(row["key_id"])
    names = ("event", "actor", "outcome", "detail", "trace_id")
    event, actor, outcome, detail, trace_id = (row[name] for name in names)
    fits = key is not None and raw(row["hash"]) == row_hash(
        key,
        row["key_id"],
        row["subject_kind"],
        row["subject_id"],
        row["seq"],
        event,
        actor,
        moment(row["at"]),
        outcome,
        detail,
        trace_id,
        raw(row["prev_hash"]),
    )
    if not fits:
        packed.first_bad = {name: row[name] for name in ("id", "subject_kind", "subject_id", "seq")}


def _write_seals(pack: PackFile, packed: Packed, on_progress: Progress) -> None:
    """The seals over these events, then for each what leads from the events to its root; one seal in memory."""
    numbers: array[int] = array("q")
    with pack.entry("seals.jsonl") as out:
        for statement in _covering(packed.ids):
            numbers.append(statement.n)
            out.write(statement.line)
    sealed = 0
    with pack.entry("proofs.jsonl") as out:
        for n in numbers:
            statement = statement_of(Seal.objects.get(n=n))
            shown = _between(packed.ids, statement)
            sealed += len(shown)
            out.write(_proof(statement, shown))
            on_progress(packed.events)  # no news, but a sign of life
    packed.seals, packed.unsealed = len(numbers), packed.events - sealed


def _covering(ids: "array[int]") -> Iterator[Statement]:
    """Each seal that covers one of these ids, oldest first; a seal that knew an id to be absent does not cover it."""
    if not ids:
        return
    spans = Seal.objects.filter(last_id__gte=ids[0], first_id__lte=ids[-1]).order_by("n")
    for n, first_id, last_id in spans.values_list("n", "first_id", "last_id").iterator(2_000):
        if bisect_left(ids, first_id) < bisect_right(ids, last_id):
            statement = statement_of(Seal.objects.get(n=n))
            if _between(ids, statement):
                yield statement


def _between(ids: "array[int]", seal: Statement) -> Sequence[int]:
    inside = ids[bisect_left(ids, seal.first_id) : bisect_right(ids, seal.last_id)]
    absent = seal.absent()
    return [id for id in inside if not any(start <= id <= end for start, end in absent)]


def _proof(seal: Statement, shown: Sequence[int]) -> bytes:
    found = Event.objects.filter(id__gte=seal.first_id, id__lte=seal.last_id).order_by("id").values_list("id", "hash")
    ids: array[int] = array("q")
    leaves: list[bytes] = []
    for id, own in found.iterator(2_000):
        ids.append(id)
        leaves.append(leaf(id, raw(own)))
    places = [bisect_left(ids, id) for id in shown]
    told = {"seal": seal.n, "hashes": [node.hex() for node in pruned(leaves, places)]}
    return (json.dumps(told, separators=(",", ":")) + "\n").encode()
