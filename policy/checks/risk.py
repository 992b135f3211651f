"""The default for a tool's risk: low and medium run, high and critical need a person."""

from policy.decision import Effect, Finding
from policy.question import Question
from registry.risk import RiskLevel


def risk(question: Question) -> Finding:
    level = RiskLevel(question.tool.risk)
    if level < RiskLevel.HIGH:
        return Finding(check="risk", effect=Effect.ALLOW, reason=f"{level.label} risk runs without a person")
    return Finding(
        check="risk",
        effect=Effect.DENY,
        reason=f"{level.label} risk needs a person to agree, and no one can be asked yet",
        help="Use a tool of low or medium risk, or ask the toolkit's owner",
    )
