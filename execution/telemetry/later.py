"""Later: what is told of a call is told a moment after its answer, for the caller need not wait for the operator."""

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings

from audit.gathering import Gathering

logger = logging.getLogger(__name__)

MOMENT = 0.02  # seconds; short, so that what is told of it at once stops nobody for long


def tell(teller: Callable[..., None], *facts: Any) -> None:
    """Has it told soon; whoever waits for an answer gets it, even if telling goes wrong."""
    if settings.PLACET_TELL_AT_ONCE:
        _tell([(teller, facts)])
    else:
        _gathering.add((teller, facts))


def flush() -> None:
    """Tells what is known by now, for those who are about to look."""
    _gathering.flush()


def _tell(gathered: list[tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
    """Handlers, exporters and disks are the operator's and fail in their own ways; a call never fails for that."""
    for teller, facts in gathered:
        try:
            teller(*facts)
        except Exception as error:
            logger.warning("something could not be told of", exc_info=error)


_gathering = Gathering(MOMENT, _tell)
