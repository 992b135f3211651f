"""A hook that writes a line for people at each beginning and end of an attempt, under a logger of its own."""

from logging import INFO, WARNING, getLogger

from execution.hooks.events import Completed, Event, Failed

LOGGER = getLogger("placet.hooks")


def observe(event: Event) -> None:
    """Failures at WARNING, all else at INFO; handlers that want fields find the event in the record as `event`."""
    about = (
        f"{event.tool_id} for {event.agent} by {event.door or 'no door'}, call {event.call}, attempt {event.attempt}"
    )
    match event:
        case Failed():
            level, text = WARNING, f"failed ({event.error}) after {event.duration_ms:.1f} ms: {about}"
        case Completed():
            level, text = INFO, f"completed after {event.duration_ms:.1f} ms: {about}"
        case _:
            level, text = INFO, f"invoking {about}"
    LOGGER.log(level, "%s", text, extra={"event": event})
