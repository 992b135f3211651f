"""Insisting: the tool has run, so what it returned is written again and again while the database is away."""

import logging
import time
from collections.abc import Callable

from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction

from audit import trail
from audit.trail import Chain
from execution.claim import Claim

logger = logging.getLogger(__name__)

_PAUSES = (0.0, 0.1, 0.2, 0.5, *[1.0] * 30)  # seconds between tries
_REFUSALS = 8  # tries that the tables may refuse: some 4 seconds; twice that is well within a lease


def insist(claim: Claim, write: Callable[[], bool]) -> bool:
    """What `write` answers in the end: neither a broken connection nor a neighbour's event must lose a result."""
    refusals = 0
    for pause in _PAUSES:
        try:
            return write()
        except IntegrityError as error:  # a neighbour's event, or whoever guards the tables says no for a while
            refusals += 1
            if refusals == _REFUSALS:
                raise
            if pause and not connection.in_atomic_block:
                _wait(claim, error, pause)
            claim.chain.move_to(_tail(claim))
        except (OperationalError, InterfaceError) as error:
            if connection.in_atomic_block:
                raise
            connection.close()
            _wait(claim, error, pause)
    return write()


def _wait(claim: Claim, error: Exception, pause: float) -> None:
    logger.warning("the end of call %s cannot be written yet: %s", claim.id, type(error).__name__)
    time.sleep(pause)


def _tail(claim: Claim) -> Chain:
    with transaction.atomic():
        return trail.chain_of("call", str(claim.id), is_locked=True)
