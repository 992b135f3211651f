"""Shadow mode: a second revision is asked about real calls, and where it disagrees is written down."""

import logging
from uuid import UUID

from django.db import transaction

from policy import rulesets
from policy.decision import Decision, Effect
from policy.models import Difference
from policy.question import Question

logger = logging.getLogger(__name__)


def compare(question: Question, decision: Decision, call: UUID) -> None:
    """Records where the shadow differs from what was decided; whatever goes wrong here, the call does not notice."""
    try:
        rules = rulesets.shadow_rules()
        if rules is None or rules.number == decision.revision:
            return
        shadow = rules.judge(question)
        if _meaning(shadow) != _meaning(decision):
            _record(question, decision, shadow, call)
    except Exception:
        logger.exception("the shadow could not be asked about call %s", call)


def _meaning(decision: Decision) -> tuple[object, ...]:
    """What a caller would notice: yes, no, or how many of whom have to agree. By which rule is not among it."""
    if decision.effect is Effect.ASK and decision.ask is not None:
        return decision.effect, decision.ask.quorum, decision.ask.approvers
    return (decision.effect,)


def _record(question: Question, live: Decision, shadow: Decision, call: UUID) -> None:
    with transaction.atomic():  # a refused row must not spoil a transaction that we may be called in
        Difference.objects.create(
            call=call,
            agent_id=question.caller.agent_id,
            tool_ref=question.tool.tool_id,
            live_revision=live.revision,
            live_effect=live.effect.value,
            live_rule=live.rule[:120],
            shadow_revision=shadow.revision,
            shadow_effect=shadow.effect.value,
            shadow_rule=shadow.rule[:120],
            shadow_reason=shadow.reason,
        )
