"""The bell: news about a call reaches whoever waits for it, in whichever process, without anyone asking the database.

On PostgreSQL a NOTIFY rides on the transaction. On SQLite everything is on one machine: a datagram goes to the socket
of each listening process. A lost ring costs a second, never an answer: waiting doors look at the row now and then.

A ring may carry a few words, such as how far a tool has come; who loses them has lost nothing that is kept.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

logger = logging.getLogger(__name__)

CHANNEL = "placet"
MAX_WORDS = 7_000  # bytes; a notice of PostgreSQL holds 8,000
_lock = threading.Lock()
_ears: dict[str, list[Callable[[str], None]]] = {}
_listening_pid = 0


def ring(topic: str, *, is_local: bool = False) -> None:
    """Tell all processes, once the current transaction has committed; `is_local`: this process only."""
    if is_local:
        if connection.in_atomic_block:
            transaction.on_commit(lambda: _heard(topic))
        else:
            _heard(topic)
    elif connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, topic])
    else:
        transaction.on_commit(lambda: _send(topic))


def say(topic: str, words: str, *, is_local: bool = False) -> None:
    """A ring with a few words, at once: it tells of nothing that could still be rolled back."""
    assert len(words.encode()) <= MAX_WORDS
    message = f"{topic}\n{words}"
    if is_local:
        _heard(message)
    elif connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, message])
    else:
        _send(message)


class hearing:
    """While inside, `on_words` is called with the words of every ring of `topic`, from another thread: be quick.

    The words are empty where a ring has none.
    """

    __slots__ = ("_on_words", "_topic")

    def __init__(self, topic: str, on_words: Callable[[str], None]) -> None:
        self._topic, self._on_words = topic, on_words

    def __enter__(self) -> None:
        _start()
        with _lock:
            _ears.setdefault(self._topic, []).append(self._on_words)

    def __exit__(self, *_: object) -> None:
        with _lock:
            ears = _ears[self._topic]
            ears.remove(self._on_words)
            if not ears:
                del _ears[self._topic]


def listening(topic: str, on_ring: Callable[[], None]) -> hearing:
    """The same for whoever wants no words."""
    return hearing(topic, lambda words: on_ring())


def _heard(message: str) -> None:
    topic, _, words = message.partition("\n")
    with _lock:
        ears = list(_ears.get(topic, ()))
    for on_words in ears:
        on_words(words)


def _start() -> None:
    """One listener thread per process; a fork starts its own."""
    global _listening_pid
    if _listening_pid == os.getpid():
        return
    with _lock:
        if _listening_pid == os.getpid():
            return
        _ears.clear()
        is_ready = threading.Event()
        target = _listen_postgresql if connection.vendor == "postgresql" else _listen_local
        threading.Thread(target=target, args=(is_ready,), name="placet-bell", daemon=True).start()
        is_ready.wait(2)
        _listening_pid = os.getpid()


def _sockets() -> Path:
    folder: Path = settings.PLACET_HOME / "bells"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _listen_local(is_ready: threading.Event) -> None:
    folder = _sockets()
    path = folder / f"{os.getpid()}.sock"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        handle = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        ear.bind(f"/proc/self/fd/{handle}/{path.name}")  # a socket's path may not be long, a home folder may
        os.close(handle)
        is_ready.set()
        while True:
            _heard(ear.recv(MAX_WORDS + 256).decode("utf-8", "replace"))


_mouth: tuple[int, socket.socket, int] | None = None


def _open_mouth() -> tuple[int, socket.socket, int]:
    """One per process, and a fork has its own."""
    global _mouth
    with _lock:
        if _mouth is None or _mouth[0] != os.getpid():
            mouth = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            _mouth = (os.getpid(), mouth, os.open(_sockets(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        return _mouth


def _send(message: str) -> None:
    _heard(message)
    pid, mouth, handle = _open_mouth()
    own = f"{pid}.sock"
    for name in os.listdir(handle):
        if name == own or not name.endswith(".sock"):
            continue
        try:
            mouth.sendto(message.encode(), f"/proc/self/fd/{handle}/{name}")
        except ConnectionRefusedError:  # its process is gone
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=handle)
        except OSError:  # a full ear hears the next ring
            continue


def _listen_postgresql(is_ready: threading.Event) -> None:
    import psycopg

    while True:
        try:
            known = connection.get_connection_params()
            parameters = {key: known[key] for key in ("dbname", "user", "password", "host", "port") if known.get(key)}
            with psycopg.connect(**parameters, autocommit=True, connect_timeout=3) as ear:
                ear.execute(f"LISTEN {CHANNEL}")
                is_ready.set()
                for notice in ear.notifies():
                    _heard(notice.payload)
        except psycopg.Error as error:
            logger.warning("the bell lost its connection: %s", type(error).__name__)
            time.sleep(1)
