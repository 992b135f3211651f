"""Stopping: the web server was told to end, so whoever holds a connection for long lets go of it by itself."""

import os
import signal
import threading

ENDS = (signal.SIGINT, signal.SIGTERM)

_is_stopping = threading.Event()


def is_stopping() -> bool:
    return _is_stopping.is_set()


def watch() -> None:
    """Hear of signals beside the server's own handlers; where it listens in this way itself, leave it alone."""
    ear, mouth = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(ear, True)
    try:
        before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    except ValueError:  # only the main thread may
        before = mouth
    if before != -1:
        if before != mouth:
            signal.set_wakeup_fd(before)
        os.close(ear)
        os.close(mouth)
        return
    threading.Thread(target=_hear, args=(ear,), name="placet-stopping", daemon=True).start()


def _hear(ear: int) -> None:
    while told := os.read(ear, 64):
        if any(number in told for number in ENDS):
            _is_stopping.set()
