"""One event, one line: control characters in a message are shown, never obeyed."""

import logging
import os
import threading
import time
from contextlib import suppress
from typing import TextIO

_VISIBLE = {code: f"\\x{code:02x}" for code in [*range(32), 127, *range(128, 160)]}
_VISIBLE |= {0x2028: "\\u2028", 0x2029: "\\u2029"}

# Refused requests, such as one for a foreign host: the line says all, and a stranger cannot fill the log.
_CALLERS_FAULT = "django.security."


class LineFormatter(logging.Formatter):
    """Time, level, logger, message; a traceback follows on lines of its own, indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s  %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        first = super().format(_without_traceback(record)).translate(_VISIBLE)
        if record.exc_info and not record.name.startswith(_CALLERS_FAULT):
            trace = self.formatException(record.exc_info)
            return "\n".join([first, *(f"    {line.translate(_VISIBLE)}" for line in trace.splitlines())])
        return first


class FactsFormatter(logging.Formatter):
    """A message that is a line of JSON already, and tells its own time."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        is_plain = text.isascii() and "\x7f" not in text  # JSON has escaped the other control characters itself
        return text if is_plain else text.translate(_VISIBLE)


class GatheringHandler(logging.StreamHandler[TextIO]):
    """Writes the lines of a moment at once: one write for each would wake whoever reads them at each call.

    A process that is killed takes the lines of its last moment along; what they tell is in the trail.
    """

    MOMENT = 0.1  # seconds

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._is_due = threading.Event()
        self._pid = 0  # of the process that gathers: a fork has the lines of its parent, but not the thread

    def emit(self, record: logging.LogRecord) -> None:
        if self._pid != os.getpid():
            self._begin()
        try:
            self._lines.append(self.format(record) + self.terminator)
        except Exception:
            self.handleError(record)
        if not self._is_due.is_set():
            self._is_due.set()

    def flush(self) -> None:
        """Writes what was gathered; at the end of the process too."""
        if self._pid != os.getpid():
            return
        self.acquire()
        try:
            if text := "".join(self._lines):
                self._lines.clear()  # first: what nobody takes must not pile up
                self.stream.write(text)
                super().flush()
        finally:
            self.release()

    def _begin(self) -> None:
        self._lines, self._is_due, self._pid = [], threading.Event(), os.getpid()
        threading.Thread(target=self._write_on, name="placet-log", daemon=True).start()

    def _write_on(self) -> None:
        while self._is_due.wait():
            time.sleep(self.MOMENT)
            self._is_due.clear()
            with suppress(OSError, ValueError):  # whoever read the lines is gone
                self.flush()


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    bare = logging.makeLogRecord(record.__dict__)
    bare.exc_info = bare.exc_text = bare.stack_info = None
    return bare
