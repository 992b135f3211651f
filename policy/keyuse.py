"""When keys were last used: sole writer of it. A call only notes it in memory; who has time writes it down.

A key is written at most once in five minutes by each process, so the moment that is kept may be that much too early.
"""

import time
from datetime import UTC, datetime
from threading import Lock

from django.db import DatabaseError, transaction
from django.utils.timezone import now

from policy.caller import Caller
from policy.models import Credential, KeyUse

EVERY = 300.0
_MOST = 10_000
_KIND = "key:"

_written: dict[str, float] = {}  # a key's prefix to when this process last wrote it down
_waiting: dict[str, float] = {}
_lock = Lock()


def note(caller: Caller) -> None:
    """On the road of every call: no question to the database, and nothing at all while the last note is young."""
    if not caller.credential.startswith(_KIND):
        return
    prefix, moment = caller.credential.removeprefix(_KIND), time.time()
    if moment - _written.get(prefix, 0.0) >= EVERY:
        with _lock:
            if len(_waiting) < _MOST:
                _waiting[prefix] = moment


def write_down() -> int:
    """What was noted since the last time, for a thread that nobody waits for; how many keys it was."""
    global _waiting
    if not _waiting:
        return 0
    with _lock:
        noted, _waiting = _waiting, {}
        if len(_written) > _MOST:
            _written.clear()
        _written.update(noted)
    try:
        return _write(noted)
    except DatabaseError:
        with _lock:
            for prefix in noted:  # the next use is noted again
                _written.pop(prefix, None)
        raise


@transaction.atomic
def _write(noted: dict[str, float]) -> int:
    there = Credential.objects.filter(prefix__in=noted).values_list("prefix", flat=True)
    latest = now()
    rows = [
        KeyUse(credential_id=prefix, used_at=min(datetime.fromtimestamp(noted[prefix], UTC), latest))
        for prefix in sorted(there)
    ]
    KeyUse.objects.bulk_create(rows, update_conflicts=True, unique_fields=["credential"], update_fields=["used_at"])
    return len(rows)
