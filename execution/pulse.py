"""The pulse: one thread per process keeps the leases of what runs here, and hears who should stop."""

import logging
import os
import threading
from uuid import UUID

from django.conf import settings
from django.db import connection

from execution import bell
from execution.claim import Claim
from execution.models import Call, State
from execution.runtimes.python import PATIENCE
from registry.clock import Later

logger = logging.getLogger(__name__)

_lock = threading.Lock()
_beating: dict[UUID, Claim] = {}
_pid = 0


class kept:
    """While inside, the claim's lease is renewed, and a cancellation reaches it at once."""

    __slots__ = ("_claim", "_ear", "_is_short")

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._ear = bell.listening(f"cancel:{claim.chain.id}", claim.cancel.set)
        # Then it ends long before its lease does.
        self._is_short = (
            claim.where.startswith("inline") and PATIENCE + claim.tool.runtime.timeout < settings.PLACET_LEASE
        )

    def __enter__(self) -> None:
        if not self._is_short:
            _start()
        self._ear.__enter__()  # a cancellation between the claim and our listening is found by the next beat
        if not self._is_short:
            with _lock:
                _beating[self._claim.id] = self._claim

    def __exit__(self, *_: object) -> None:
        if not self._is_short:
            with _lock:
                _beating.pop(self._claim.id, None)
        self._ear.__exit__()


def _start() -> None:
    global _pid
    with _lock:
        if _pid != os.getpid():
            _beating.clear()
            threading.Thread(target=_beat_for_ever, name="placet-pulse", daemon=True).start()
            _pid = os.getpid()


def _beat_for_ever() -> None:
    rest = threading.Event()
    while True:
        rest.wait(settings.PLACET_LEASE / 3)
        with _lock:
            claims = list(_beating.values())
        for claim in claims:
            try:
                _beat(claim)
            except Exception as error:  # whatever it is: a pulse that stops costs every call its lease
                logger.warning("the pulse of call %s missed a beat: %s", claim.id, type(error).__name__)
                connection.close()


def _beat(claim: Claim) -> None:
    held = Call.objects.filter(pk=claim.id, state=State.RUNNING, fence=claim.fence)
    if not held.update(lease_until=Later(settings.PLACET_LEASE)):
        claim.cancel.set()  # our result could no longer be written: stop working on it
    elif held.filter(cancel_requested=True).exists():
        claim.cancel.set()
