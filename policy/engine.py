"""Question to Decision: the live rules answer, and an error inside them denies."""

import logging

from policy import rulesets
from policy.caller import Caller
from policy.decision import Decision, Effect, Finding
from policy.question import Question
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)


def decide(question: Question) -> Decision:
    """What the live revision says; what cannot be judged is denied."""
    try:
        return rulesets.live_rules().judge(question)
    except Exception:
        logger.exception("policy failed")
        failure = Finding(
            check="error",
            effect=Effect.DENY,
            reason="The policy could not be judged, and what cannot be judged is denied",
            help="Try again; if it stays so, tell the operator",
        )
        return Decision(
            effect=Effect.DENY,
            rule=failure.check,
            reason=failure.reason,
            help=failure.help,
            revision=rulesets.DEFAULTS,
            findings=(failure,),
        )


def is_barred(caller: Caller, tool: ToolSpec) -> bool:
    """Whether the live rules forbid this agent this tool whatever it says, so that it need not be listed."""
    return rulesets.live_rules().is_barred(caller, tool)
