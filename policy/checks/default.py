"""What holds where no rule speaks: low and medium risk run, high needs one person, critical needs two."""

from policy.decision import Ask, Effect, Finding
from policy.rulesentence import people
from registry.risk import RiskLevel

NAME = "default"
ASKS = {RiskLevel.HIGH: Ask(quorum=1), RiskLevel.CRITICAL: Ask(quorum=2)}


def default(risk: RiskLevel) -> Finding:
    """The answer for a risk; `ASKS` says whom to ask where it is not yes."""
    ask = ASKS.get(risk)
    if ask is None:
        return Finding(check=NAME, effect=Effect.ALLOW, reason=f"{risk.label} risk runs without a person")
    return Finding(
        check=NAME,
        effect=Effect.ASK,
        reason=f"{risk.label} risk runs once {people(ask)}",
        help="Wait for the answer, or use a tool of low or medium risk",
    )
