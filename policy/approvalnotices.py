"""What people are told about approvals: those who may decide, and whoever answers for the agent."""

from policy import notices
from policy.approvers import people_to_ask
from policy.models import Approval
from registry.risk import RiskLevel

State = Approval.State

_OUTCOMES = {
    State.APPROVED: ("approval.decided", "was approved", "It runs by itself, at the latest when a worker is free."),
    State.DENIED: ("approval.decided", "was denied", "It did not run."),
    State.REVOKED: ("approval.decided", "is no longer approved", "The approval was taken back; it did not run."),
    State.EXPIRED: ("approval.expired", "was not decided in time", "It did not run; the agent has to call again."),
    State.LAPSED: ("approval.expired", "could not run in time", "It was approved and did not run."),
}


def asked(approval: Approval) -> None:
    """To everyone who could decide it."""
    risk = RiskLevel(approval.risk).label.lower()
    notices.tell(
        "approval.asked",
        people=people_to_ask(approval),
        subject=f"{approval.agent} asks to call {approval.tool_ref}",
        text=(
            f"Agent {approval.agent} wants to call {approval.tool_ref} ({risk} risk).\n"
            f"Why you are asked: {approval.reason}.\nDecide by {approval.decide_by:%Y-%m-%d %H:%M} UTC."
        ),
        path=_path(approval),
        facts={
            "agent": approval.agent.name,
            "tool": approval.tool_ref,
            "risk": risk,
            "rule": approval.rule,
            "decide_by": approval.decide_by.isoformat(),
        },
    )


def moved(approval: Approval) -> None:
    """To the agent's owner: what came of the question; nothing while it is open or was withdrawn."""
    told = _OUTCOMES.get(State(approval.state))
    owner = approval.agent.owner
    if told is None:
        return
    kind, outcome, more = told
    notices.tell(
        kind,
        people=[owner] if owner is not None else [],
        subject=f"The call of {approval.tool_ref} by {approval.agent} {outcome}",
        text=f"The call of {approval.tool_ref} by agent {approval.agent} {outcome}.\n{more}",
        path=_path(approval),
        facts={"agent": approval.agent.name, "tool": approval.tool_ref, "outcome": approval.state},
    )


def _path(approval: Approval) -> str:
    return f"/approvals/{approval.pk}/"
