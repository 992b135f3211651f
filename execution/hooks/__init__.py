"""Lifecycle hooks: an operator's own callables, named in PLACET_HOOKS, watch every attempt and change none."""

import threading
import time
from logging import getLogger

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from execution.claim import Claim
from execution.errors import Failure
from execution.hooks.events import Completed, Event, Failed, Invoking
from execution.hooks.finding import Hook, find

logger = getLogger(__name__)

SLOW = 0.25  # seconds; a hook runs in the thread of its call, and the caller waits for it
QUIET = 60.0  # seconds between two complaints about one slow hook

_hooks: tuple[tuple[str, Hook], ...] | None = None
_complained: dict[str, float] = {}
_lock = threading.Lock()

__all__ = ["Completed", "Event", "Failed", "Invoking", "ended", "invoking", "load"]


def load() -> None:
    """Import every hook now; ImproperlyConfigured says which path is wrong."""
    global _hooks
    with _lock:
        _hooks = tuple((path, find(path)) for path in settings.PLACET_HOOKS)


def invoking(claim: Claim) -> None:
    """An attempt begins."""
    if _hooks != ():
        _tell(claim, Invoking, {})


def ended(claim: Claim, failure: Failure | None, duration_ms: float) -> None:
    """An attempt is over and on record."""
    if _hooks == ():
        return
    told: dict[str, object] = {"duration_ms": duration_ms}
    if failure is None:
        _tell(claim, Completed, told)
    else:
        _tell(claim, Failed, told | {"error": failure.code.wire})


def _tell(claim: Claim, kind: type[Event], more: dict[str, object]) -> None:
    """One event for all hooks, once it is committed: nothing that a hook does can undo what it is told of."""
    hooks = _hooks if _hooks is not None else _load_late()
    if hooks:
        event = kind(**_known(claim), **more)  # type: ignore[arg-type]
        transaction.on_commit(lambda: _deliver(hooks, event))


def _deliver(hooks: tuple[tuple[str, Hook], ...], event: Event) -> None:
    """Whatever one of them does, the call and the next hook go on."""
    for path, hook in hooks:
        began = time.perf_counter()
        try:
            hook(event)
        except BaseException:  # one that calls sys.exit() ends itself, neither the call nor the process
            logger.warning("the hook %s failed at %s of %s", path, type(event).__name__, event.tool_id, exc_info=True)
        if time.perf_counter() - began > SLOW:
            _complain(path, time.perf_counter() - began)


def _known(claim: Claim) -> dict[str, object]:
    # The caller chose its call_id, and may have chosen badly.
    call_id = claim.redactor.text(claim.call_id) if claim.holds_secrets else claim.call_id
    return {
        "tool_id": claim.tool.tool_id,
        "agent": claim.agent,
        "call": str(claim.id),
        "call_id": call_id,
        "door": claim.door,
        "attempt": claim.fence,
    }


def _load_late() -> tuple[tuple[str, Hook], ...]:
    """In a process that did not load them at its start; what cannot be imported here is left out, and said once."""
    global _hooks
    with _lock:
        if _hooks is None:
            found = []
            for path in settings.PLACET_HOOKS:
                try:
                    found.append((path, find(path)))
                except ImproperlyConfigured as error:
                    logger.error("%s", error)
            _hooks = tuple(found)
        return _hooks


def _complain(path: str, took: float) -> None:
    now = time.monotonic()
    if now - _complained.get(path, -QUIET) >= QUIET:
        _complained[path] = now
        logger.warning("the hook %s took %.2f s, for which its caller waited", path, took)
