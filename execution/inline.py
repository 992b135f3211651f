"""Which tools run in the web process: those that declare it, are of small risk, and have not overrun."""

import logging
from threading import Lock

from django.conf import settings
from django.db import transaction

from audit import trail
from execution.models import Demotion
from execution.sessions import KIND
from registry import revision
from registry.risk import RiskLevel
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)

MAX_TIMEOUT = 5.0

_demoted: frozenset[int] = frozenset()
_read_at = -1
_lock = Lock()


def is_allowed(tool: ToolSpec) -> bool:
    return (
        settings.PLACET_INLINE
        and tool.runtime.type != KIND
        and tool.runtime.dispatch == "inline"
        and tool.risk < RiskLevel.HIGH
        and tool.runtime.timeout <= MAX_TIMEOUT
        and tool.id not in _demotions()
    )


def demote(tool: ToolSpec, reason: str) -> None:
    """From now on the queue serves this tool; the row says so in the admin, the event in the trail."""
    subject = f"{tool.toolkit}@{tool.version}"
    with transaction.atomic():
        _, is_new = Demotion.objects.get_or_create(tool_id=tool.id, defaults={"reason": reason[:200]})
        if is_new:
            detail = {"tool": tool.tool_id, "reason": reason}
            trail.record("version", subject, "tool.demoted", actor="system", outcome="failed", detail=detail)
            logger.warning("%s %s: the queue serves it from now on", tool.tool_id, reason)


def promote(demotion: Demotion, *, actor: str) -> None:
    """An operator lets the tool run inline again."""
    tool = demotion.tool
    with transaction.atomic():
        demotion.delete()
        trail.record("version", str(tool.version), "tool.promoted", actor=actor, detail={"tool": tool.name})


def _demotions() -> frozenset[int]:
    """Read once per revision: the demotion table is among those that move it."""
    global _demoted, _read_at
    now = revision.current()
    if now != _read_at:
        found = frozenset(Demotion.objects.values_list("tool_id", flat=True))
        with _lock:
            _demoted, _read_at = found, now
    return _demoted
