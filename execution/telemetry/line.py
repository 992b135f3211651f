"""One line of JSON for each finished attempt, under a logger of its own."""

import logging
from typing import Any

import orjson

NAME = "placet.telemetry"
LOGGER = logging.getLogger(NAME)


def write(facts: dict[str, Any]) -> None:
    """The facts as one line; handlers that want fields instead of text find them in the record as `facts`."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    # Made by hand: where in the source it was logged is always here, and looking for that costs more than the line.
    record = logging.LogRecord(NAME, logging.INFO, "", 0, orjson.dumps(facts).decode(), None, None)
    record.facts = facts
    LOGGER.handle(record)


def flush() -> None:
    """Has handlers write down what they have gathered."""
    for handler in LOGGER.handlers:
        handler.flush()
