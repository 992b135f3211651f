"""Stack: what the product stands on, a database and a broker, and the ways in which each can fail."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import psycopg
from redis import Redis

from tests.services import postgres, redis
from tests.stories.product import wait_until
from tests.stories.restartable import Restartable


class Stack(Protocol):
    """Both ways to run fail in their own manner; the stories are the same."""

    environment: dict[str, str]

    def empty_broker(self) -> None:
        """Every message is gone; the broker works."""

    @contextmanager
    def no_broker(self) -> Iterator[None]:
        """The broker is gone with all it held, and comes back empty."""

    @contextmanager
    def no_database(self) -> Iterator[None]:
        """Nothing can be written."""


class OneMachine:
    """SQLite and a folder of messages."""

    def __init__(self, home: Path) -> None:
        self.environment: dict[str, str] = {}
        self._broker = home / "broker"
        self._database = home / "placet.sqlite3"

    def empty_broker(self) -> None:
        for message in (self._broker / "messages").iterdir():
            message.unlink(missing_ok=True)

    @contextmanager
    def no_broker(self) -> Iterator[None]:
        shutil.rmtree(self._broker)
        yield

    @contextmanager
    def no_database(self) -> Iterator[None]:
        """Another program writes, and does not finish."""
        writer = sqlite3.connect(self._database, isolation_level=None, timeout=20)
        writer.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            writer.execute("ROLLBACK")
            writer.close()


class Company:
    """PostgreSQL and Redis, both servers of this stack alone."""

    def __init__(self, database: str, broker: str) -> None:
        self.environment = {"DATABASE_URL": database, "CELERY_BROKER_URL": broker}
        with psycopg.connect(database) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        self._postgres = Restartable(int(Path(row[0], "postmaster.pid").read_text().split()[0]))
        self._broker = Redis.from_url(broker)
        self._redis = _restartable(self._broker)

    def empty_broker(self) -> None:
        self._broker.flushall()

    @contextmanager
    def no_broker(self) -> Iterator[None]:
        self._redis.kill(signal.SIGKILL)
        yield
        self._redis.start()

    @contextmanager
    def no_database(self) -> Iterator[None]:
        """An immediate shutdown: no client is waited for, nothing is written any more."""
        self._postgres.kill(signal.SIGQUIT)
        yield
        self._postgres.start()
        assert wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.environment["DATABASE_URL"], connect_timeout=1).close()
        except psycopg.OperationalError:
            return False
        return True

    def close(self) -> None:
        self._broker.close()
        self._redis.close()
        self._postgres.close()


def _restartable(broker: Redis) -> Restartable:
    """Redis writes a title over its own command, so the command is put together again."""
    pid, settings = broker.info("server")["process_id"], broker.config_get("*")
    kept = {name: settings[name] for name in ("bind", "port", "dir", "save", "appendonly")}
    options = [word for name, value in kept.items() for word in (f"--{name}", str(value))]
    return Restartable(pid, [os.readlink(f"/proc/{pid}/exe"), *options])


@contextmanager
def company() -> Iterator[Company]:
    # What PostgreSQL has said yes to must survive its end, so here it writes before it says so.
    with postgres(synchronous_commit="on") as database, redis() as broker:
        stack = Company(database, broker)
        try:
            yield stack
        finally:
            stack.close()
