"""The watchman: a thread in each web process that sweeps and seals too, so that recovery never hangs on one process.

It also writes down which keys were used here, so that no call has to.
"""

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from audit.sealing import seal_new_events
from execution.sessions import hearing
from execution.sweeping import sweep
from policy import keyuse

logger = logging.getLogger(__name__)


def start() -> None:
    hearing.begin()
    threading.Thread(target=_walk, name="placet-watchman", daemon=True).start()


def _walk() -> None:
    rest = threading.Event()
    while True:
        rest.wait(settings.PLACET_SWEEP)
        _make_a_round()


def _make_a_round() -> None:
    for duty in (sweep, seal_new_events, keyuse.write_down):
        try:
            duty()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("%s: the database is away (%s)", duty.__name__, type(error).__name__)
            connection.close()
            if isinstance(error, OperationalError | InterfaceError):
                hearing.begin()  # no heartbeat could be written down either
        except Exception:
            logger.exception("%s failed", duty.__name__)
            connection.close()
