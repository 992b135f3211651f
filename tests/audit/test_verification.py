"""Whatever the owner of the database does to the evidence, verification names the row."""

import hashlib
import json
import random
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from audit import trail
from audit.models import Event
from audit.sealing import seal_new_events
from audit.verification import verify
from tests.audit.conftest import Sql

pytestmark = pytest.mark.django_db

SEALED, UNSEALED = 90, 10
COLUMNS = ", ".join(field.attname for field in Event._meta.concrete_fields)


@pytest.fixture
def evidence(home: Path) -> list[Event]:
    """A hundred events of twenty subjects under three seals, the last ten not sealed yet."""
    chance = random.Random(7)
    for number in range(SEALED + UNSEALED):
        subject = f"c{chance.randrange(20)}"
        trail.record("call", subject, f"call.step{number % 5}", actor="agent:demo", detail={"number": number})
        if number in (SEALED // 3, 2 * SEALED // 3, SEALED - 1):
            assert seal_new_events() is not None
    return list(Event.objects.order_by("id"))


def told() -> tuple[int, dict[str, Any]]:
    """The command's exit code and its JSON."""
    out = StringIO()
    try:
        call_command("verify_audit", "--json", stdout=out)
    except SystemExit as end:
        return int(str(end.code)), json.loads(out.getvalue())
    return 0, json.loads(out.getvalue())


def test_untouched_evidence_is_intact_and_counted(evidence: list[Event]) -> None:
    code, report = told()
    assert code == 0
    assert report["ok"] is True
    assert report["first_bad"] is None
    assert (report["events"], report["seals"], report["sealed"], report["unsealed"]) == (100, 3, SEALED, UNSEALED)
    assert report["subjects"] == len({event.subject_id for event in evidence})


def test_an_empty_database_is_intact() -> None:
    assert told()[0] == 0


def test_people_read_a_sentence(evidence: list[Event], owner_sql: Sql) -> None:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert out.getvalue().startswith("Intact: 100 events of ")
    assert "not yet sealed: 10" in out.getvalue()
    victim = evidence[40]
    owner_sql("UPDATE audit_event SET actor = 'user:mallory' WHERE id = %s", victim.id)
    out = StringIO()
    with pytest.raises(SystemExit, match="1"):
        call_command("verify_audit", stdout=out)
    named = f"audit_event {victim.id}, call {victim.subject_id} #{victim.seq}: edited"
    assert out.getvalue().startswith(f"NOT intact: {named}")


Expected = dict[str, Any]
Kind = Callable[[Sql, list[Event], random.Random], Expected]


def subject(event: Event) -> Expected:
    return {"subject_kind": event.subject_kind, "subject_id": event.subject_id, "seq": event.seq}


def chains(events: list[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.subject_id, []).append(event)
    return found


def edit(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    victim = chance.choice(events[:SEALED])
    column, value = chance.choice(
        [
            ("event", "call.other"),
            ("actor", "user:mallory"),
            ("outcome", "denied"),
            ("detail", '{"number":-1}'),
            ("trace_id", "other"),
            ("at", "2001-01-01 00:00:00+00"),
        ]
    )
    sql(f"UPDATE audit_event SET {column} = %s WHERE id = %s", value, victim.id)
    return {"reason": "edited", "id": victim.id, **subject(victim)}


def edit_and_rehash_without_the_key(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    """The whole rest of the chain is recomputed as plain SHA-256, as if no key were used."""
    victim = chance.choice(events[:SEALED])
    tail = bytes(victim.prev_hash)
    for event in chains(events)[victim.subject_id][victim.seq - 1 :]:
        own = hashlib.sha256(tail + event.detail.encode()).digest()
        sql("UPDATE audit_event SET detail = %s, prev_hash = %s, hash = %s WHERE id = %s", "{}", tail, own, event.id)
        tail = own
    return {"reason": "edited", "id": victim.id, **subject(victim)}


def edit_of_the_unsealed(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    fresh = {event.id for event in events[SEALED:]}
    own = [chain for chain in chains(events).values() if chain[-1].id in fresh]
    victim = chance.choice(own)[-1]
    sql("UPDATE audit_event SET actor = 'user:mallory' WHERE id = %s", victim.id)
    return {"id": victim.id, **subject(victim)}


def delete_in_the_middle(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    victim = chance.choice([chain[-2] for chain in chains(events[:SEALED]).values() if len(chain) > 2])
    sql("DELETE FROM audit_event WHERE id = %s", victim.id)
    return {"reason": "missing", "id": victim.id, **subject(victim)}


def delete_a_whole_subject(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    name = chance.choice([event.subject_id for event in events[:60]])
    sql("DELETE FROM audit_event WHERE subject_id = %s", name)
    return {"reason": "missing", "id": chains(events)[name][0].id}


def insert_a_forgery(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    """A new row at the end of a chain, with a plain SHA-256 where the keyed hash belongs."""
    last = chance.choice([chain[-1] for chain in chains(events).values()])
    new_id = events[-1].id + 1
    own = hashlib.sha256(bytes(last.hash) + b"{}").digest()
    sql(
        f"INSERT INTO audit_event ({COLUMNS}) SELECT %s, subject_kind, subject_id, seq + 1, 'call.approved', actor, "
        "at, outcome, '{}', trace_id, hash, %s, key_id FROM audit_event WHERE id = %s",
        new_id,
        own,
        last.id,
    )
    return {"reason": "inserted", "id": new_id, "subject_id": last.subject_id, "seq": last.seq + 1}


def move_to_another_subject(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    victim = chance.choice(events[:SEALED])
    sql("UPDATE audit_event SET subject_id = 'forged', seq = 1 WHERE id = %s", victim.id)
    return {"reason": "edited", "id": victim.id, "subject_id": "forged"}


def swap_numbers(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    own = chance.choice([chain for chain in chains(events[:SEALED]).values() if len(chain) > 2])
    first, second = own[0], own[1]
    for event, seq in ((first, 1000), (second, first.seq), (first, second.seq)):
        sql("UPDATE audit_event SET seq = %s WHERE id = %s", seq, event.id)
    return {"reason": "reordered", "id": first.id, "subject_id": first.subject_id}


def swap_rows(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    """Two rows of one chain trade their ids, so that each is genuine and only their order is not."""
    own = chance.choice([chain for chain in chains(events[:SEALED]).values() if len(chain) > 2])
    first, second = own[0], own[1]
    for old_id, new_id in ((first.id, 10**6), (second.id, first.id), (10**6, second.id)):
        sql("UPDATE audit_event SET id = %s WHERE id = %s", new_id, old_id)
    return {"reason": "reordered", "id": first.id, "subject_id": first.subject_id, "seq": second.seq}


def cut_the_tail(sql: Sql, events: list[Event], chance: random.Random) -> Expected:
    first = chance.choice(events[60:SEALED])
    sql("DELETE FROM audit_event WHERE id >= %s", first.id)
    return {"reason": "tail_cut", "id": first.id}


KINDS: tuple[Kind, ...] = (
    edit,
    edit_and_rehash_without_the_key,
    edit_of_the_unsealed,
    delete_in_the_middle,
    delete_a_whole_subject,
    insert_a_forgery,
    move_to_another_subject,
    swap_numbers,
    swap_rows,
    cut_the_tail,
)


@pytest.mark.parametrize("round", range(5))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_tampering_at_a_random_place_is_named(
    evidence: list[Event], owner_sql: Sql, kind: Kind, round: int, record_property: Callable[[str, object], None]
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    record_property("seed", seed)
    expected = kind(owner_sql, evidence, random.Random(seed))
    code, report = told()
    assert code == 1, f"seed {seed}: not noticed"
    found = report["first_bad"]
    assert {name: found.get(name) for name in expected} == expected, f"seed {seed}: {report}"
    assert found["table"] == "audit_event"


def test_a_forged_insertion_below_a_seal_is_named(evidence: list[Event], owner_sql: Sql) -> None:
    """A row under an id that was unused when the range was sealed."""
    victim = evidence[50]
    owner_sql("DELETE FROM audit_event WHERE id = %s", victim.id)
    assert told()[1]["first_bad"]["reason"] == "missing"
    owner_sql(
        f"INSERT INTO audit_event ({COLUMNS}) SELECT %s, subject_kind, 'forged', 1, event, actor, at, outcome, detail, "
        "trace_id, prev_hash, hash, key_id FROM audit_event WHERE id = %s",
        victim.id,
        evidence[0].id,
    )
    code, report = told()
    assert code == 1
    assert report["first_bad"]["id"] == victim.id


def test_a_row_in_a_gap_of_a_seal_is_inserted(home: Path, owner_sql: Sql) -> None:
    for number in range(3):
        trail.record("call", f"c{number}", "call.received", actor="agent:demo")
    _, middle, last = Event.objects.order_by("id")
    owner_sql("UPDATE audit_event SET id = %s WHERE id = %s", last.id + 5, last.id)
    assert seal_new_events() is not None
    assert told()[0] == 0
    owner_sql("UPDATE audit_event SET id = %s WHERE id = %s", last.id + 2, middle.id)
    found = told()[1]
    assert found["first_bad"]["reason"] == "missing"
    assert found["first_bad"]["id"] == middle.id
    assert [other["reason"] for other in found["more_bad"]] == ["inserted"]
    assert found["more_bad"][0]["id"] == last.id + 2


def test_a_row_under_a_strange_key_is_named(evidence: list[Event], owner_sql: Sql) -> None:
    owner_sql("UPDATE audit_event SET key_id = 'ffffffffffffffff' WHERE id = %s", evidence[10].id)
    found = told()[1]["first_bad"]
    assert (found["reason"], found["id"]) == ("unknown_key", evidence[10].id)


def test_rows_under_a_retired_key_still_verify(evidence: list[Event], settings: Any) -> None:
    settings.PLACET_AUDIT_OLD_KEYS = [settings.PLACET_AUDIT_KEY]
    settings.PLACET_AUDIT_KEY = b"n" * 32
    trail.record("call", "c1", "call.received", actor="agent:demo")
    assert told()[0] == 0
    settings.PLACET_AUDIT_OLD_KEYS = []
    assert told()[1]["first_bad"]["reason"] == "unknown_key"


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_seal_cut_from_the_table_is_missed(evidence: list[Event], owner_sql: Sql, n: int) -> None:
    owner_sql("DELETE FROM audit_seal WHERE n = %s", n)
    found = told()[1]["first_bad"]
    assert (found["reason"], found["table"], found["seal"]) == ("seal_missing", "audit_seal", n)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_seal_cut_from_the_file_is_missed(evidence: list[Event], home: Path, n: int) -> None:
    file = home / "seals.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: n - 1] + lines[n:]))
    found = told()[1]["first_bad"]
    assert (found["reason"], found["table"], found["seal"]) == ("seal_missing", "seals.jsonl", n)


def test_a_lost_seal_file_is_missed(evidence: list[Event], home: Path) -> None:
    (home / "seals.jsonl").unlink()
    found = told()[1]["first_bad"]
    assert (found["reason"], found["table"], found["seal"]) == ("seal_missing", "seals.jsonl", 1)


def test_a_seal_cut_from_both_is_missed(evidence: list[Event], owner_sql: Sql, home: Path) -> None:
    owner_sql("DELETE FROM audit_seal WHERE n = 2")
    file = home / "seals.jsonl"
    first, _, third = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + third)
    found = told()[1]["first_bad"]
    assert (found["reason"], found["seal"]) == ("seal_missing", 2)


def test_an_edited_seal_has_a_bad_signature(evidence: list[Event], owner_sql: Sql) -> None:
    owner_sql("UPDATE audit_seal SET count = count - 1 WHERE n = 2")
    found = told()[1]["first_bad"]
    assert (found["reason"], found["table"], found["seal"]) == ("bad_signature", "audit_seal", 2)


def test_an_edited_line_has_a_bad_signature(evidence: list[Event], home: Path) -> None:
    file = home / "seals.jsonl"
    first, second, third = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + second.replace(b'"count":30', b'"count":29') + third)
    found = told()[1]["first_bad"]
    assert (found["reason"], found["table"], found["seal"]) == ("bad_signature", "seals.jsonl", 2)


def test_seals_by_another_key_do_not_count(evidence: list[Event], settings: Any) -> None:
    settings.PLACET_SEAL_SEED = b"x" * 32
    assert told()[1]["first_bad"]["reason"] == "bad_signature"


def test_seals_by_a_retired_key_count(evidence: list[Event], settings: Any) -> None:
    from audit.statement import public_keys

    settings.PLACET_SEAL_OLD_PUBLIC_KEYS = [key.public_bytes_raw() for key in public_keys().values()]
    settings.PLACET_SEAL_SEED = b"x" * 32
    assert seal_new_events() is not None
    assert told()[0] == 0


def test_a_repeated_line_is_noticed(evidence: list[Event], home: Path) -> None:
    file = home / "seals.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines, lines[0]]))
    found = told()[1]["first_bad"]
    assert (found["reason"], found["table"], found["seal"]) == ("inserted", "seals.jsonl", 1)


def test_a_torn_line_is_counted_and_harmless(evidence: list[Event], home: Path) -> None:
    with (home / "seals.jsonl").open("ab") as file:
        file.write(b'{"n":4,"first_')
    code, report = told()
    assert (code, report["torn_lines"]) == (0, 1)


def test_events_that_wait_too_long_for_a_seal_are_noticed_on_request(evidence: list[Event]) -> None:
    assert verify(max_unsealed_age=timedelta(hours=1)).is_intact
    report = verify(max_unsealed_age=timedelta(0))
    assert report.first is not None
    assert (report.first.reason, report.first.id) == ("unsealed_too_old", evidence[SEALED].id)


def test_an_event_that_later_seals_left_out_is_noticed(evidence: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit.verification.LATE", timedelta(days=-1))
    report = verify()
    assert report.first is not None
    assert report.first.reason == "unsealed_too_old"


def test_of_many_lost_events_the_first_is_named(evidence: list[Event], owner_sql: Sql) -> None:
    owner_sql("DELETE FROM audit_event WHERE id > %s", evidence[3].id)
    found = told()[1]
    assert (found["first_bad"]["reason"], found["first_bad"]["id"]) == ("tail_cut", evidence[4].id)
