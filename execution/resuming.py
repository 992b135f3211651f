"""Resuming: an attempt that went on outside of any process of ours, taken up again so that its end can be written."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from audit import trail
from execution.claim import Claim, unseal_what_runs
from execution.credentials import Unseen
from execution.errors import CallError, ErrorCode
from execution.messages import CallContext
from execution.models import Call
from policy import acting
from policy.sealedbox import Unsealable
from registry.models import Tool
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec, spec_of


def taken_up(
    call: Call,
    fence: int,
    *,
    began: datetime,
    where: str,
    actor: str = "",
    needles: Callable[[], Mapping[str, str]] = dict,
) -> tuple[Claim, CallError | None]:
    """The claim of the attempt with this fence, and why no answer to it may be shown, if so."""
    unreadable, hidden = None, {}
    try:
        arguments, context = unseal_what_runs(call.pk, call.sealed or b"\0")
        hidden = dict(needles())
    except Unsealable:  # without it nobody knows what in an answer is secret
        arguments, context = {}, CallContext()
        unreadable = CallError(ErrorCode.INTERNAL, "What the call brought can no longer be read, nor shown its answer")
    claim = Claim(
        id=call.pk,
        call_id=call.call_id,
        fence=fence,
        agent=acting.agent(call.agent_id).name,
        tool=tool_as_called(call),
        arguments=arguments,
        context=context,
        trace_id=call.trace_id,
        where=where,
        chain=trail.new_chain("call", str(call.pk)),
        door=call.door,
        actor=actor,
        needles=Unseen(hidden),
        started_at=began,
        started=time.perf_counter() - (datetime.now(UTC) - began).total_seconds(),
    )
    return claim, unreadable


def tool_as_called(call: Call) -> ToolSpec:
    """The tool of a call that began, even if it was withdrawn while it worked."""
    ref = ToolRef.parse(call.tool_ref)
    tool = resolve(ref) if ref is not None else None
    if tool is not None and tool.id == call.tool_id:
        return tool
    tools = Tool.objects.select_related("version__toolkit").prefetch_related("capabilities")
    assert call.tool_id is not None  # it was asked
    return spec_of(tools.get(pk=call.tool_id))
