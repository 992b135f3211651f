"""Laboratory: the whole product at work with the toolkit of misbehaving tools, an agent at its doors, and a witness."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.stories.prepared import Prepared, import_lab, run
from tests.stories.product import Product, processes_in, wait_until
from tests.stories.restartable import is_running

LEASE = 3.0  # seconds; a worker renews it each second, and on a busy machine may be late by nearly two
SWEEP = 1.0  # seconds between two rounds of a sweeper, and before it doubts a broker
OPEN = ("queued", "running", "awaiting_approval", "waiting_callback")

PUBLISH = """
import django; django.setup()
from config.celery import app
with app.connection_for_write() as connection, connection.channel() as channel:
    producer = app.amqp.Producer(channel)
    for _ in range(int(sys.argv[2])):
        app.send_task("execution.perform_call", args=[sys.argv[1]], producer=producer)
"""


@dataclass(frozen=True)
class Reply:
    """One answer of a door."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class Laboratory:
    """A product with its database and broker, as its callers and its operator see it."""

    def __init__(self, folder: Path, environment: Mapping[str, str], prepared: Prepared | None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.ledgers = folder / "ledgers"  # not beside the home: tools reach no folder that the home lies in
        self.ledgers.mkdir(exist_ok=True)
        self.environment = {"PLACET_LEASE": str(LEASE), "PLACET_SWEEP": str(SWEEP), **environment}
        self.database_url = environment.get("DATABASE_URL", "")
        if prepared:
            prepared.furnish(self.home)
        self.product = Product(self.home, environment=self.environment).ready()
        self.key = prepared.key if prepared else import_lab(self.home, self.environment)

    # What a caller does

    def send(
        self, method: str, path: str, body: Any = None, *, timeout: float = 60, headers: Mapping[str, str] | None = None
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.product.port, timeout=timeout)
        try:
            content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
            given = {"OXP-API-Key": self.key, "Content-Type": "application/json"}
            connection.putrequest(method, path)
            for name, value in (given | dict(headers or {}) | {"Content-Length": str(len(content or b""))}).items():
                connection.putheader(name, value)
            connection.endheaders()
            with suppress(BrokenPipeError):  # a body that is refused by its length is not read; the answer is there
                connection.send(content or b"")
            response = connection.getresponse()
            told = response.read()
            return Reply(response.status, json.loads(told) if told else None, dict(response.getheaders()))
        finally:
            connection.close()

    def oxp(self, tool: str, *, call_id: str | None = None, timeout: float = 60, **arguments: Any) -> Reply:
        """POST /tools/call: holds until the call ends."""
        asked = {"tool_id": f"Lab.{tool}", "input": arguments} | ({"call_id": call_id} if call_id else {})
        return self.send("POST", "/tools/call", {"request": asked}, timeout=timeout)

    def post(self, tool: str, *, wait: float = 0, key: str = "", **arguments: Any) -> Any:
        """POST /api/calls/: the call's own representation, at once unless `wait` says otherwise."""
        headers = {"Prefer": f"wait={wait}"} | ({"Idempotency-Key": key} if key else {})
        reply = self.send("POST", "/api/calls/", {"tool_id": f"Lab.{tool}", "input": arguments}, headers=headers)
        assert reply.status in (200, 202), reply
        return reply.body

    def get(self, id: str, *, wait: float = 0) -> Any:
        reply = self.send("GET", f"/api/calls/{id}/" + (f"?wait={wait}" if wait else ""))
        assert reply.status == 200, reply
        return reply.body

    def is_healthy(self) -> bool:
        return self.health() == 200

    def health(self) -> int | None:
        try:
            return self.send("GET", "/health", timeout=10).status
        except (OSError, http.client.HTTPException):
            return None

    def until(self, id: str, *states: str, seconds: float = 60) -> Any:
        """The call, once it is in one of these states."""
        deadline = time.monotonic() + seconds
        while (call := self.get(id))["state"] not in states:
            assert time.monotonic() < deadline, f"{call['state']} instead of {states} after {seconds} s"
            time.sleep(0.05)
        return call

    def ended(self, id: str, *, seconds: float = 60) -> Any:
        deadline = time.monotonic() + seconds
        while (call := self.get(id, wait=1))["state"] in OPEN:
            assert time.monotonic() < deadline, f"still {call['state']} after {seconds} s"
        return call

    # What the witness saw

    def ledger(self, name: str = "") -> Path:
        return self.ledgers / (name or uuid.uuid4().hex)

    # What an operator does

    def script(self, code: str, *arguments: str) -> str:
        """A program beside the product, with its settings."""
        return self._run([sys.executable, "-c", f"import sys\n{code}", *arguments])

    def verify_audit(self) -> None:
        """Every chain and seal holds."""
        told = json.loads(self._run([sys.executable, "manage.py", "verify_audit", "--json"]))
        assert told["ok"], told

    def _run(self, command: list[str]) -> str:
        return run(command, self.home, self.environment)

    # Processes

    def processes(self, program: str) -> dict[int, int]:
        """The living processes of the web or the worker, each with its parent."""
        found = {}
        for pid, command in self.product.processes().items():
            if program in command and is_running(pid):
                found[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return found

    def leader(self, program: str) -> int:
        """The one that the supervisor started; waits while there is none."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [pid for pid, parent in self.processes(program).items() if parent == self.product.process.pid]
            return bool(found)

        assert wait_until(look), self.product.output
        return found[0]

    def kill(self, program: str) -> None:
        """kill -9 of a whole program, its leader first."""
        leader = self.leader(program)
        for pid in [leader, *(other for other in self.processes(program) if other != leader)]:
            send_signal(pid, signal.SIGKILL)

    def restart(self, *, after: float) -> None:
        """Ends the whole product, and after so many seconds starts it as it was."""
        assert self.product.finish() == 0, self.product.output[-4000:]
        time.sleep(after)
        self.product = Product(self.home, port=self.product.port, environment=self.environment).ready()

    @contextmanager
    def frozen_workers(self) -> Iterator[None]:
        """While inside, nobody takes a message."""
        workers = list(self.processes("celery"))
        for pid in workers:
            send_signal(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in workers:
                send_signal(pid, signal.SIGCONT)

    def runner_of(self, id: str) -> int:
        """The worker's process that runs a call."""
        where = self.query(
            "SELECT detail FROM audit_event WHERE subject_id = %s AND event = 'call.started' ORDER BY seq DESC", [id]
        )
        return int(json.loads(where[0][0])["where"].rpartition(":")[2])

    # What the database says

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self.database_url:
            with psycopg.connect(self.database_url, autocommit=True) as connection:
                cursor = connection.execute(sql, values)
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.home / "placet.sqlite3", timeout=20, isolation_level=None)) as file:
            return file.execute(sql.replace("%s", "?"), values).fetchall()

    def events(self, id: str) -> list[str]:
        rows = self.query(
            "SELECT event FROM audit_event WHERE subject_kind = 'call' AND subject_id = %s ORDER BY seq", [id]
        )
        return [row[0] for row in rows]

    def close(self) -> None:
        code = self.product.finish()
        left = self.product.processes()
        assert (code, left) == (0, {}), self.product.output[-4000:]


def at_work(folder: Path, environment: Mapping[str, str], prepared: Prepared | None = None) -> Iterator[Laboratory]:
    """A laboratory; when its stories are told, its whole trail must hold and nothing may be left running.

    It begins with a copy of what is prepared; without that, its product makes everything at its first start.
    """
    try:
        laboratory = Laboratory(folder, environment, prepared)
        yield laboratory
        laboratory.verify_audit()
        laboratory.close()
    finally:
        for pid in processes_in(folder / "home"):
            send_signal(pid, signal.SIGKILL)


def lines(ledger: Path) -> int:
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def send_signal(pid: int, number: int) -> None:
    if is_running(pid):
        os.kill(pid, number)


def together(number: int, *tasks: Any) -> list[Any]:
    """Every task at once, in so many threads; their results in order."""
    with ThreadPoolExecutor(number) as threads:
        futures: Iterable[Future[Any]] = [threads.submit(task) for task in tasks]
        return [future.result() for future in futures]
