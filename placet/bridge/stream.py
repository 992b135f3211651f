"""The stream that the older wire keeps open for what the server says unasked, such as that its tools changed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from placet.bridge.session import Lost, Session
from placet.bridge.wire import Exchange, Unreachable, one_line

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds before it is opened again
_NOT_OFFERED = frozenset({400, 401, 403, 405, 406, 501})


class Listener:
    """Listens as long as the server lets it, and begins again where it ended."""

    def __init__(
        self,
        session: Session,
        exchange: Callable[[], Exchange],
        write: Callable[[str], None],
        log: Callable[[str], None],
    ) -> None:
        self._session, self._new, self._write, self._log = session, exchange, write, log
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._current: Exchange | None = None
        self._last_event = ""
        self._pause = FIRST_PAUSE
        self._stop = threading.Event()

    def start(self) -> None:
        """In a thread of its own, once."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._listen, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._current is not None:
            self._current.close()

    def _listen(self) -> None:
        wait = FIRST_PAUSE
        while not self._stop.is_set():
            try:
                if not self._hear():
                    return
                wait = self._pause
            except Unreachable:
                wait = min(wait * 2, LONGEST_PAUSE)
            except Lost as error:
                self._log(str(error))
                wait = LONGEST_PAUSE
            self._stop.wait(wait)

    def _hear(self) -> bool:
        """One stream to its end; False if the server offers none."""
        session = self._session.id
        headers = {"Accept": "text/event-stream", **self._session.headers()}
        if self._last_event:
            headers["Last-Event-ID"] = self._last_event
        exchange = self._current = self._new()
        status = exchange.send("GET", headers)
        if status == 404 and session and self._session.renew(session):
            exchange.close()
            self._last_event, self._pause = "", 0.0
            return True
        self._pause = FIRST_PAUSE
        if status != 200 or not exchange.is_stream:
            exchange.close()
            return status not in _NOT_OFFERED and status != 404 and status != 200
        for event in exchange.events():
            if event.id:
                self._last_event = event.id
            if event.retry is not None:
                self._pause = min(event.retry / 1000, LONGEST_PAUSE)
            if event.data and (line := one_line(event.data)) is not None:
                self._write(line)
        return True
