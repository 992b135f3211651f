"""Events are written with their fact or not at all, in one insert, each linked to the one before."""

import hashlib
import hmac
import threading
import time
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from audit import trail
from audit.chain import ORIGIN
from audit.models import Event
from audit.trail import Entry
from audit.verification import verify
from tests.audit.threads import in_threads

pytestmark = pytest.mark.django_db

THREE = (
    Entry(
        event="call.received", actor="agent:demo", detail={"tool": "Calculator.Add@1.0.0", "input": {"a": 1, "b": 2}}
    ),
    Entry(event="call.decided", actor="system", detail={"effect": "allow", "reason": "low risk"}),
    Entry(event="call.finished", actor="worker", detail={"duration_ms": 3}),
)


def events(kind: str, id: str) -> list[Event]:
    return list(Event.objects.filter(subject_kind=kind, subject_id=id).order_by("seq"))


def test_entries_become_one_insert_and_a_linked_chain() -> None:
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        chain = trail.new_chain("call", "c1")
        trail.append(chain, *THREE, trace_id="t1")
    assert len([query for query in queries if "INSERT" in query["sql"]]) == 1
    first, second, third = events("call", "c1")
    assert [event.seq for event in (first, second, third)] == [1, 2, 3]
    assert [bytes(event.prev_hash) for event in (first, second, third)] == [
        ORIGIN,
        bytes(first.hash),
        bytes(second.hash),
    ]
    assert (chain.seq, chain.hash) == (3, bytes(third.hash))
    assert (first.event, first.actor, first.outcome, first.trace_id) == ("call.received", "agent:demo", "ok", "t1")
    assert first.detail == '{"input":{"a":1,"b":2},"tool":"Calculator.Add@1.0.0"}'


def test_the_hash_is_keyed_and_not_a_plain_digest() -> None:
    trail.record("user", "ada", "user.login", actor="user:ada")
    (event,) = events("user", "ada")
    at = event.at.replace(tzinfo=None).isoformat(" ", "microseconds")
    facts = (
        f'["placet.audit.event.v1","{event.key_id}","user","ada",1,"user.login","user:ada","{at}","ok","{{}}","",'
        f'"{"00" * 32}"]'
    ).encode()
    assert bytes(event.hash) == hmac.digest(settings.PLACET_AUDIT_KEY, facts, "sha256")
    assert bytes(event.hash) != hashlib.sha256(facts).digest()


def test_a_chain_is_taken_up_where_it_ended() -> None:
    for number in range(3):
        trail.record("agent", "bot", f"agent.changed{number}", actor="shell", detail={"n": number})
    with transaction.atomic():
        chain = trail.chain_of("agent", "bot")
    found = events("agent", "bot")
    assert [event.seq for event in found] == [1, 2, 3]
    assert (chain.seq, chain.hash) == (3, bytes(found[-1].hash))


@pytest.mark.django_db(transaction=True)
def test_nothing_is_written_outside_a_transaction() -> None:
    with pytest.raises(TransactionManagementError, match="open one first"):
        trail.append(trail.new_chain("call", "c"), THREE[0])
    with pytest.raises(TransactionManagementError, match="open one first"):
        trail.chain_of("call", "c")
    assert not Event.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_record_alone_opens_its_own_transaction() -> None:
    trail.record("toolkit", "Mail", "toolkit.created", actor="user:ada")
    assert [event.event for event in events("toolkit", "Mail")] == ["toolkit.created"]


@pytest.mark.django_db(transaction=True)
def test_an_event_disappears_with_the_fact_that_was_rolled_back() -> None:
    @transaction.atomic
    def fail() -> None:
        trail.record("call", "c", "call.received", actor="agent:a")
        raise RuntimeError("the fact fails")

    with pytest.raises(RuntimeError):
        fail()
    assert not Event.objects.exists()


def test_a_stale_chain_cannot_write_a_sequence_number_twice() -> None:
    stale = trail.new_chain("call", "c")
    trail.record("call", "c", "call.received", actor="agent:a")
    with pytest.raises(IntegrityError), transaction.atomic():
        trail.append(stale, THREE[0])
    assert len(events("call", "c")) == 1


@pytest.mark.parametrize("detail", [{"a": float("nan")}, {"a": "\ud800"}, {"a": object()}])
def test_a_detail_that_is_not_json_stops_the_fact(detail: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Not a JSON value"):
        trail.record("call", "c", "call.received", actor="agent:a", detail=detail)
    assert not Event.objects.exists()


def test_control_characters_cannot_break_a_line_of_evidence() -> None:
    trail.record("call", "c", "call.failed", actor="agent:a", detail={"error": 'a\r\n{"event":"fake"}\x1b[31m\0'})
    (event,) = events("call", "c")
    assert event.detail.isprintable()


def test_appending_three_events_takes_little_time() -> None:
    def once(number: int) -> float:
        chain = trail.new_chain("call", f"speed-{number}")
        start = time.perf_counter()
        trail.append(chain, *THREE, trace_id="t")
        return time.perf_counter() - start

    with transaction.atomic():
        best = min(once(number) for number in range(200))
    assert best < 0.002, f"{best * 1e6:.0f} µs"


@pytest.mark.django_db(transaction=True)
def test_writers_of_one_subject_take_turns() -> None:
    writers = 6 if connection.vendor == "postgresql" else 1  # the in-memory SQLite of tests knows one connection

    def work(number: int) -> None:
        for turn in range(20):
            trail.record("policy", "current", "policy.changed", actor=f"user:{number}", detail={"turn": turn})

    in_threads(writers, work)
    assert [event.seq for event in events("policy", "current")] == list(range(1, writers * 20 + 1))
    assert verify().is_intact


@pytest.mark.django_db(transaction=True)
def test_writers_of_many_subjects_do_not_wait_for_each_other() -> None:
    if connection.vendor != "postgresql":
        trail.record("call", "c", "call.received", actor="agent:a")
        return
    held = threading.Event()
    is_done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            with transaction.atomic():
                trail.record("call", "slow", "call.received", actor="agent:a")
                held.set()
                assert is_done.wait(10)
        else:
            assert held.wait(10)
            trail.record("call", "fast", "call.received", actor="agent:a")
            is_done.set()

    in_threads(2, work)
    assert verify().events == 2
