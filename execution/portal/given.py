"""Given: who gave a permission and when, as far as the evidence tells."""

import json
from datetime import datetime
from typing import Any

from audit.models import Event
from execution.viewer import Viewer

_EVENT = "permission.given"
MOST = 2_000  # events of one toolkit that are looked through
MOST_LATELY = 10_000  # and of all toolkits, back to a moment


def latest(viewer: Viewer, toolkit: str, holder: str) -> dict[str, Event]:
    """For each permission, the newest event that tells of this holder getting it, of those the viewer may see."""
    told = viewer.events().filter(subject_kind="toolkit", subject_id=toolkit, event=_EVENT)
    found: dict[str, Event] = {}
    for event in told.filter(detail__contains=json.dumps(holder, ensure_ascii=False)).order_by("-seq")[:MOST]:
        detail = json.loads(event.detail)
        if detail.get("holder") == holder:
            found.setdefault(str(detail.get("permission")), event)
    return found


def since(moment: datetime) -> dict[tuple[str, str, str], datetime]:
    """Toolkit, holder and permission to when it was given, of what was given since this moment."""
    found: dict[tuple[str, str, str], datetime] = {}
    columns = ("at", "subject_id", "detail")
    newest: Any = Event.objects.filter(event=_EVENT).order_by("-id").values_list(*columns)[:MOST_LATELY]
    for at, toolkit, text in newest:
        if at < moment:
            break
        detail = json.loads(text)
        found.setdefault((toolkit, str(detail.get("holder")), str(detail.get("permission"))), at)
    return found
