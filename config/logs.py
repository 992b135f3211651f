"""One event, one line: control characters in a message are shown, never obeyed."""

import logging
from typing import TextIO

from celery.exceptions import WorkerLostError

from audit.gathering import Gathering

_VISIBLE = {code: f"\\x{code:02x}" for code in [*range(32), 127, *range(128, 160)]}
_VISIBLE |= {0x2028: "\\u2028", 0x2029: "\\u2029"}

# Refused requests, such as one for a foreign host: the line says all, and a stranger cannot fill the log.
_CALLERS_FAULT = "django.security."
# Celery tells of it seconds later, with tracebacks of its own inside and an exit code that may be wrong.
_LOST_WORKER = "A process of the worker was lost with its task; the sweeper sees to what it held."


class LineFormatter(logging.Formatter):
    """Time, level, logger, message; a traceback follows on lines of its own, indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s  %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        first = super().format(_without_traceback(record)).rstrip("\r\n").translate(_VISIBLE)
        if record.exc_info and not record.name.startswith(_CALLERS_FAULT) and not _tells_of_a_lost_worker(record):
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

    What they tell is in the trail, so that a process which is killed may take its last lines along.
    """

    MOMENT = 0.1  # seconds

    def __init__(self) -> None:
        super().__init__()
        self._lines = Gathering(self.MOMENT, self._write)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.add(self.format(record) + self.terminator)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Writes what was gathered; at the end of the process too."""
        self._lines.flush()

    def _write(self, lines: list[str]) -> None:
        self.stream.write("".join(lines))
        self.stream.flush()


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    bare = logging.makeLogRecord(record.__dict__)
    bare.exc_info = bare.exc_text = bare.stack_info = None
    if _tells_of_a_lost_worker(record):
        bare.msg, bare.args = _LOST_WORKER, None
    return bare


def _tells_of_a_lost_worker(record: logging.LogRecord) -> bool:
    return isinstance(record.args, tuple) and any(isinstance(part, WorkerLostError) for part in record.args)
