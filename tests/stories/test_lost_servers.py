"""Brokers and databases that lose everything, stop or refuse: a caller hears of it, and no call is lost or doubled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.stories.laboratory import Laboratory, Reply, at_work, lines, together
from tests.stories.prepared import Prepared
from tests.stories.product import wait_until
from tests.stories.stack import OneMachine, Stack, company

pytestmark = pytest.mark.story

RECOVERED = 15.0  # seconds after which everything that waited for a broker has run, with a margin for a slow machine
MANY = 50
SWEEP = 3.0  # seconds; long enough to tell a call that had to wait for the sweeper from one that was only slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack")


@pytest.fixture(scope="module")
def stack(database_url: str, folder: Path) -> Iterator[Stack]:
    if not database_url:
        yield OneMachine(folder / "home")
        return
    with company() as servers:
        yield servers


@pytest.fixture(scope="module")
def laboratory(stack: Stack, folder: Path, prepared: Prepared) -> Iterator[Laboratory]:
    settings = {"PLACET_SWEEP": str(SWEEP), **stack.environment}
    yield from at_work(folder, settings, None if stack.environment else prepared)  # a server of its own is empty


def queue(laboratory: Laboratory, ledger: Path, number: int) -> list[str]:
    return [laboratory.post("Ring", ledger=str(ledger))["id"] for _ in range(number)]


def states(laboratory: Laboratory, ids: list[str]) -> set[str]:
    return {laboratory.get(id)["state"] for id in ids}


def test_a_broker_that_forgot_everything_costs_a_delay(laboratory: Laboratory, stack: Stack) -> None:
    ledger = laboratory.ledger()
    with laboratory.frozen_workers():
        ids = queue(laboratory, ledger, MANY)
        stack.empty_broker()
    assert wait_until(lambda: lines(ledger) == MANY, RECOVERED + 5), lines(ledger)
    assert wait_until(lambda: states(laboratory, ids) == {"succeeded"})
    assert lines(ledger) == MANY


def test_a_broker_that_dies_and_comes_back_costs_a_delay(laboratory: Laboratory, stack: Stack) -> None:
    ledger = laboratory.ledger()
    with laboratory.frozen_workers():
        ids = queue(laboratory, ledger, MANY)
        with stack.no_broker():
            began = time.monotonic()
            ids += queue(laboratory, ledger, 3)
            assert time.monotonic() - began < 8  # a caller does not wait for a broker that is away
            time.sleep(2)
    assert wait_until(lambda: lines(ledger) == MANY + 3, RECOVERED + 5), laboratory.product.output
    assert wait_until(lambda: states(laboratory, ids) == {"succeeded"})
    assert lines(ledger) == MANY + 3
    assert laboratory.post("Ring", wait=10, ledger=str(ledger))["state"] == "succeeded"


def test_a_database_that_stops_under_load_loses_no_answer_it_gave(laboratory: Laboratory, stack: Stack) -> None:
    ledger = laboratory.ledger()
    with loaded(laboratory, ledger) as replies:
        time.sleep(1)
        with stack.no_database():
            time.sleep(0.5)
            asked = time.monotonic()
            refused = laboratory.oxp("RingInline", call_id="refused", ledger=str(ledger))
            assert time.monotonic() - asked < 20
            assert (refused.status, refused.code) == (400, "unavailable")
            body = {"tool_id": "Lab.RingInline", "input": {"ledger": str(ledger)}}
            refused = laboratory.send("POST", "/api/calls/", body, headers={"Idempotency-Key": "refused"})
            assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "unavailable", "2")
            if laboratory.database_url:
                assert laboratory.health() == 503
        assert wait_until(laboratory.is_healthy, 15)
        again = together(16, *[lambda: laboratory.oxp("Echo", value=1)] * 48)
        assert {reply.status for reply in again} == {200}  # no thread holds on to a connection that is gone
        began = time.monotonic()
        queued = together(4, *[lambda: laboratory.oxp("Ring", ledger=str(laboratory.ledger()))] * 4)
        assert {reply.status for reply in queued} == {200}  # nor does a worker, which would cost a sweep
        assert time.monotonic() - began < SWEEP
    told = {call_id: reply for call_id, reply in replies.items() if reply is not None}
    assert {(reply.status, reply.code) for reply in told.values()} <= {(200, ""), (400, "unavailable")}
    acknowledged = {call_id for call_id, reply in told.items() if reply.status == 200}
    kept = dict(laboratory.query("SELECT call_id, state FROM execution_call WHERE call_id LIKE 'load-%%'"))
    assert acknowledged
    assert {kept[call_id] for call_id in acknowledged} == {"succeeded"}
    assert laboratory.query("SELECT count(*) FROM execution_call WHERE call_id = 'refused'") == [(0,)]
    laboratory.verify_audit()


@contextmanager
def loaded(laboratory: Laboratory, ledger: Path) -> Iterator[dict[str, Reply | None]]:
    """While inside, four callers call without a pause; what each call was answered, or None if nothing."""
    is_over = Event()
    replies: dict[str, Reply | None] = {}

    def load(name: str) -> None:
        for number in count():
            if is_over.is_set():
                return
            call_id = f"{name}-{number}"
            replies[call_id] = None
            with suppress(OSError, HTTPException):
                replies[call_id] = laboratory.oxp("RingInline", call_id=call_id, ledger=str(ledger), timeout=30)

    callers = [Thread(target=load, args=(f"load-{number}",), daemon=True) for number in range(4)]
    for caller in callers:
        caller.start()
    try:
        yield replies
    finally:
        is_over.set()
        for caller in callers:
            caller.join(40)


def test_a_result_in_hand_is_written_when_the_database_is_back(laboratory: Laboratory, stack: Stack) -> None:
    """The tool ran once and must not run again: its worker holds on to what it returned."""
    ledger = laboratory.ledger()
    call = laboratory.post("Slow", ledger=str(ledger), seconds=1.0)
    assert wait_until(lambda: lines(ledger) == 1)
    with stack.no_database():
        time.sleep(1.5)
    assert wait_until(laboratory.is_healthy, 15)
    after = laboratory.ended(call["id"])
    assert (after["state"], after["result"]) == ("succeeded", "done")
    assert lines(ledger) == 1


def test_without_its_event_nothing_happens(laboratory: Laboratory) -> None:
    ledger = laboratory.ledger()
    with refusing_events(laboratory):
        inline = laboratory.oxp("RingInline", call_id="unheard", ledger=str(ledger))
        assert inline.status in (400, 500)
        call = laboratory.post("Ring", ledger=str(ledger))
        time.sleep(2)
        assert laboratory.get(call["id"])["state"] == "queued"
        assert lines(ledger) == 0
    assert laboratory.query("SELECT count(*) FROM execution_call WHERE call_id = 'unheard'") == [(0,)]
    assert laboratory.ended(call["id"])["state"] == "succeeded"
    assert lines(ledger) == 1


@contextmanager
def refusing_events(laboratory: Laboratory) -> Iterator[None]:
    """While inside, the database does not take the event that a tool is about to run."""
    if laboratory.database_url:
        laboratory.query(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the disk of the evidence is full'; END $$"
        )
        laboratory.query(
            "CREATE TRIGGER refusing BEFORE INSERT ON audit_event FOR EACH ROW "
            "WHEN (NEW.event = 'call.started') EXECUTE FUNCTION refuse()"
        )
    else:
        laboratory.query(
            "CREATE TRIGGER refusing BEFORE INSERT ON audit_event WHEN NEW.event = 'call.started' "
            "BEGIN SELECT RAISE(ABORT, 'the disk of the evidence is full'); END"
        )
    try:
        yield
    finally:
        laboratory.query("DROP TRIGGER refusing" + (" ON audit_event" if laboratory.database_url else ""))


def test_many_callers_of_one_call_id_get_one_answer(laboratory: Laboratory) -> None:
    ledger = laboratory.ledger()

    def ask() -> Reply:
        return laboratory.oxp("Ring", call_id="sixteen", ledger=str(ledger))

    replies = together(16, *[ask] * 16)
    assert {(reply.status, reply.body["result"]["value"]) for reply in replies} == {(200, 1)}
    assert lines(ledger) == 1
