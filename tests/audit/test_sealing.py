"""Every event is sealed once, soon, and by one sealer; a crash between file and table heals."""

import hashlib
import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection, transaction

from audit import sealing, trail
from audit.merkle import EMPTY, root_of
from audit.models import Event, Seal
from audit.sealfile import SealFile
from audit.sealing import seal_new_events
from audit.verification import verify
from tests.audit.conftest import Sql
from tests.audit.threads import in_threads

pytestmark = pytest.mark.django_db


def write(count: int, subject: str = "c") -> None:
    with transaction.atomic():
        chain = trail.chain_of("call", subject)
        trail.append(chain, *[trail.Entry(event="call.step", actor="agent:demo")] * count)


def test_a_seal_covers_all_new_events_and_chains_to_the_one_before(home: Path) -> None:
    write(5)
    first = seal_new_events()
    write(3)
    second = seal_new_events()
    assert first is not None
    assert second is not None
    assert (first.n, first.count, second.n, second.count) == (1, 5, 2, 3)
    assert second.first_id == first.last_id + 1
    hashes = [(event.id, bytes(event.hash)) for event in Event.objects.order_by("id")]
    assert bytes(second.merkle_root) == root_of(hashes[5:])
    assert bytes(second.prev_seal_hash) == sealing.statement_of(first).hash
    lines = [json.loads(line) for line in (home / "seals.jsonl").read_text().splitlines()]
    assert [line["n"] for line in lines] == [1, 2]
    assert lines[1]["merkle_root"] == bytes(second.merkle_root).hex()
    assert (home / "seals.jsonl").stat().st_mode & 0o777 == 0o600


def test_an_idle_minute_gets_one_empty_seal(home: Path) -> None:
    with time_machine.travel("2026-01-01T00:00:00Z", tick=False) as clock:
        first = seal_new_events()
        assert first is not None
        assert (first.n, first.count, bytes(first.merkle_root)) == (1, 0, EMPTY)
        for _ in range(5):
            clock.shift(timedelta(seconds=10))
            assert seal_new_events() is None
        clock.shift(timedelta(seconds=11))
        assert seal_new_events() is not None
    assert Seal.objects.count() == 2
    assert verify().is_intact


def test_many_events_are_sealed_in_batches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "BATCH", 4)
    write(10)
    last = seal_new_events()
    assert last is not None
    assert list(Seal.objects.order_by("n").values_list("n", "count")) == [(1, 4), (2, 4), (3, 2)]
    assert verify().sealed == 10


def test_ids_that_were_never_used_are_told_as_gaps(home: Path, owner_sql: Sql) -> None:
    write(3)
    ids = list(Event.objects.order_by("id").values_list("id", flat=True))
    owner_sql("UPDATE audit_event SET id = %s WHERE id = %s", ids[2] + 7, ids[2])
    seal = seal_new_events()
    assert seal is not None
    assert [ids[2], ids[2] + 6] in json.loads(seal.gaps)
    assert (seal.last_id, seal.count) == (ids[2] + 7, 3)
    assert verify().is_intact


def test_a_seal_that_reached_only_the_file_is_adopted(home: Path, owner_sql: Sql) -> None:
    write(2)
    seal_new_events()
    write(2)
    seal_new_events()
    owner_sql("DELETE FROM audit_seal WHERE n = 2")
    write(1)
    last = seal_new_events()
    assert last is not None
    assert list(Seal.objects.order_by("n").values_list("n", "count")) == [(1, 2), (2, 2), (3, 1)]
    assert len((home / "seals.jsonl").read_text().splitlines()) == 3
    assert verify().is_intact


def test_a_crash_before_the_row_is_written_heals(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(2)
    keep = sealing._keep

    def crash(statement: Any) -> Seal:
        raise KeyboardInterrupt

    monkeypatch.setattr(sealing, "_keep", crash)
    with pytest.raises(KeyboardInterrupt):
        seal_new_events()
    monkeypatch.setattr(sealing, "_keep", keep)
    assert Seal.objects.count() == 0
    write(1)
    seal_new_events()
    assert list(Seal.objects.order_by("n").values_list("n", "count")) == [(1, 2), (2, 1)]
    assert verify().is_intact


def test_a_line_torn_by_a_crash_is_written_again(home: Path) -> None:
    write(2)
    with (home / "seals.jsonl").open("ab") as file:
        file.write(b'{"count":2,"first_id":1,"ga')
    seal = seal_new_events()
    assert seal is not None
    assert seal.n == 1
    report = verify()
    assert (report.is_intact, report.torn_lines, report.seals) == (True, 1, 1)


def test_a_forged_line_is_not_adopted(home: Path) -> None:
    write(2)
    seal_new_events()
    line = json.loads((home / "seals.jsonl").read_text())
    with (home / "seals.jsonl").open("a") as file:
        file.write(json.dumps({**line, "n": 2}, separators=(",", ":"), sort_keys=True) + "\n")
    write(1)
    seal = seal_new_events()
    assert seal is not None
    assert (seal.n, seal.count) == (2, 1)
    assert verify().first is not None


def test_only_one_sealer_works_at_a_time(home: Path) -> None:
    write(1)
    with SealFile().held() as is_ours:
        assert is_ours
        assert seal_new_events() is None
    assert seal_new_events() is not None


def test_a_long_seal_file_is_read_from_its_end(home: Path, owner_sql: Sql) -> None:
    for _ in range(200):
        write(1)
        seal_new_events()
    assert os.path.getsize(home / "seals.jsonl") > 64 * 1024
    owner_sql("DELETE FROM audit_seal WHERE n > 5")
    write(1)
    seal_new_events()
    assert Seal.objects.count() == 201
    assert verify().is_intact


def test_operators_can_seal_by_hand(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(3)
    call_command("seal_audit")
    assert "covers 3 events" in capsys.readouterr().out
    call_command("seal_audit")
    assert "Nothing sealed" in capsys.readouterr().out


def test_the_root_is_that_of_the_certificate_transparency_tree() -> None:
    def plain(leaves: list[bytes]) -> bytes:
        """The definition, word by word: split at the largest power of two below the number of leaves."""
        if not leaves:
            return hashlib.sha256(b"").digest()
        if len(leaves) == 1:
            return hashlib.sha256(b"\x00" + leaves[0]).digest()
        half = 1
        while half * 2 < len(leaves):
            half *= 2
        return hashlib.sha256(b"\x01" + plain(leaves[:half]) + plain(leaves[half:])).digest()

    events = [(number, hashlib.sha256(bytes([number])).digest()) for number in range(40)]
    for size in range(41):
        leaves = [number.to_bytes(8, "big") + own for number, own in events[:size]]
        assert root_of(events[:size]) == plain(leaves), size


@pytest.mark.django_db(transaction=True)
def test_two_sealers_and_many_writers_seal_every_event_once(home: Path) -> None:
    """On PostgreSQL rows become visible out of order, since each writer holds its ids for a while before it commits."""
    writers, rounds = (6, 25) if connection.vendor == "postgresql" else (1, 50)

    def work(number: int) -> None:
        if number >= writers:
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                seal_new_events()
                time.sleep(0.01)
            return
        for turn in range(rounds):
            with transaction.atomic():
                trail.append(trail.new_chain("call", f"{number}-{turn}"), *[trail.Entry(event="e", actor="a")] * 3)
                time.sleep(0.001 * ((number * 7 + turn) % 20))

    if connection.vendor == "postgresql":
        in_threads(writers + 2, work)
    else:
        work(0)
    seal_new_events()
    report = verify()
    assert report.is_intact, report.first
    assert (report.events, report.sealed, report.unsealed) == (writers * rounds * 3, writers * rounds * 3, 0)


@pytest.mark.django_db(transaction=True)
def test_an_event_that_is_committed_late_is_not_skipped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that takes its id first and commits last makes the sealer wait, and after a while give up for now."""
    if connection.vendor != "postgresql":  # one writer at a time: an id below the newest cannot be under way
        write(1)
        assert seal_new_events() is not None
        return
    monkeypatch.setattr(sealing, "PATIENCE", 0.3)
    seen: list[Any] = []

    def work(number: int) -> None:
        if number == 0:
            with transaction.atomic():
                trail.append(trail.new_chain("call", "late"), trail.Entry(event="e", actor="a"))
                time.sleep(1.2)
        else:
            time.sleep(0.2)
            write(1, "early")
            seen.append(seal_new_events())
            monkeypatch.setattr(sealing, "PATIENCE", 5)
            seen.append(seal_new_events())

    in_threads(2, work)
    assert seen[0] is None
    assert (seen[1].n, seen[1].count) == (1, 2)
    assert verify().is_intact
