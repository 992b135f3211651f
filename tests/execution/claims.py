"""A claim made up from an invocation, for what only looks at claims."""

from audit import trail
from execution.claim import Claim
from execution.messages import CallContext
from execution.runtimes.base import Invocation
from registry.ids import new_id


def claim_of(invocation: Invocation) -> Claim:
    id = new_id()
    return Claim(
        id=id,
        call_id=invocation.call_id,
        fence=invocation.attempt,
        agent=invocation.agent,
        tool=invocation.tool,
        arguments=invocation.arguments,
        context=CallContext(),
        trace_id=invocation.trace_id,
        where="inline@test",
        chain=trail.new_chain("call", str(id)),
    )
