"""What sessions are offered: the queued calls of the toolkits they serve, and the bell that tells of new ones."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from execution import bell
from execution.models import OPEN, Call, State
from execution.sessions import KIND
from registry.models import Tool
from registry.toolspec import ToolSpec


def is_pulled(tool: ToolSpec) -> bool:
    return tool.runtime.type == KIND


def topic(toolkit: int) -> str:
    return f"pull:{toolkit}"


def announce(toolkit: int) -> None:
    """Every session that waits for calls of this toolkit looks, in whichever process, once this is committed."""
    bell.ring(topic(toolkit))


def announce_call(call: Call) -> None:
    """The same for who has only the call at hand."""
    assert call.tool_id is not None  # it was queued
    announce(Tool.objects.values_list("version__toolkit_id", flat=True).get(pk=call.tool_id))


def pending(toolkits: Collection[int]) -> QuerySet[Call]:
    """Queued, due, wanted and in time, oldest first."""
    due = Q(not_before=None) | Q(not_before__lte=Now())
    queued = Call.objects.filter(due, state=State.QUEUED, state__in=OPEN, cancel_requested=False, deadline__gt=Now())
    return _of(queued, toolkits).order_by("pk")


def is_due(call: Call) -> bool:
    """Whether a retry's pause is over, by the database's clock."""
    return call.not_before is None or Call.objects.filter(pk=call.pk, not_before__lte=Now()).exists()


def request(id: str, toolkits: Collection[int]) -> Call | None:
    """The call that a request's id names: its own id, or its caller's call_id where only one call has it."""
    if "\0" in id:
        return None
    calls = _of(Call.objects.all(), toolkits)
    if (key := key_of(id)) is not None and (call := calls.filter(pk=key).first()) is not None:
        return call
    found = list(calls.filter(call_id=id)[:2])
    return found[0] if len(found) == 1 else None


def key_of(id: str) -> UUID | None:
    """A call's key, if the text is exactly how we write one."""
    try:
        key = UUID(id)
    except ValueError:
        return None
    return key if str(key) == id else None


def _of(calls: QuerySet[Call], toolkits: Collection[int]) -> QuerySet[Call]:
    return calls.filter(dispatch=KIND, tool__version__toolkit_id__in=toolkits)
