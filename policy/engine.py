"""Question to Decision: asks every check in order, adds nothing."""

import logging
from collections.abc import Callable

from policy.checks import CHECKS
from policy.decision import Decision, Effect, Finding
from policy.question import Question

DEFAULTS = 0  # the revision before anyone has written a rule

logger = logging.getLogger(__name__)

_STRICTNESS = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}


def decide(question: Question) -> Decision:
    """The strictest finding decides; among equals, the one that spoke first. An error inside a check denies."""
    findings = tuple(_ask(check, question) for check in CHECKS)
    decisive = max(findings, key=lambda finding: _STRICTNESS[finding.effect])
    return Decision(
        effect=decisive.effect,
        rule=decisive.check,
        reason=decisive.reason,
        help=decisive.help,
        revision=DEFAULTS,
        findings=findings,
    )


def _ask(check: Callable[[Question], Finding], question: Question) -> Finding:
    try:
        return check(question)
    except Exception:
        logger.exception("check %s failed", check.__name__)
        return Finding(check=check.__name__, effect=Effect.DENY, reason=f"The check '{check.__name__}' failed")
