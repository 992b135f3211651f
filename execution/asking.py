"""A call that needs a person: parked with its question, or let through by a grant given before."""

from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.canonical import canonical
from execution import opening
from execution.claim import redactor_for
from execution.errors import CallError, ErrorCode
from execution.fingerprint import arguments_digest
from execution.messages import CallContext, CallRequest
from policy import approvals, grants
from policy.approvals import Asked
from policy.binding import digest_of
from policy.decision import Decision
from policy.models import Agent
from policy.question import Question
from registry.ids import new_id

TOO_MANY_RETRY = 60_000  # ms


class NoGrant(Exception):
    """Nobody has agreed to this call in advance."""


def park(request: CallRequest, question: Question, decision: Decision) -> UUID | None:
    """The call's row and the question to people, both or neither; None if the call_id was used before."""
    approval = new_id()
    with transaction.atomic():
        call = opening.open_parked(request, question.tool, decision, approval=approval)
        if call is not None:
            _refuse_flood(request.caller.agent_id)
            approvals.ask(approval, _asked(request, question, decision, call))
    return call


def run_on_grant(request: CallRequest, question: Question, decision: Decision) -> UUID | None:
    """The call, queued, with one use taken off a grant that covers it; None if the call_id was used before."""
    grant = grants.usable(question)
    if grant is None:
        raise NoGrant
    with transaction.atomic():
        call = opening.open_queued(request, question.tool, grants.allowed(decision, grant), grant=grant.pk)
        if call is not None and not grants.use(grant, call):
            raise NoGrant
    return call


def bound(question: Question, context: CallContext, revision: int) -> str:
    """The digest that an answer is bound to, worked out when asking and again before running."""
    return digest_of(question, brought=[*context.authorization, *context.secrets], revision=revision)


def _refuse_flood(agent_id: int) -> None:
    """Nobody can look at thousands of questions. Calls of one agent count one after the other, so the cap is exact."""
    Agent.objects.select_for_update(no_key=True).get(pk=agent_id)
    if approvals.pending_of(agent_id) >= settings.PLACET_MAX_PENDING:
        raise CallError(
            ErrorCode.RATE_LIMITED,
            "Too many calls of this agent wait for a person",
            developer_message=f"At most {settings.PLACET_MAX_PENDING} may wait at once; cancel some, or wait",
            can_retry=True,
            retry_after_ms=TOO_MANY_RETRY,
        )


def _asked(request: CallRequest, question: Question, decision: Decision, call: UUID) -> Asked:
    tool = question.tool
    shown = redactor_for(request.context).for_deciders(dict(request.arguments), tool.input_schema)
    return Asked(
        call=call,
        call_id=request.call_id or str(call),
        door=request.door,
        question=question,
        decision=decision,
        arguments_digest=arguments_digest(tool.digest, canonical(request.arguments)),
        digest=bound(question, request.context, decision.revision),
        shown=canonical(shown),
        trace_id=request.trace_id,
    )
