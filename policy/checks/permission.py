"""The agent needs the permission to call the tool's toolkit."""

from functools import lru_cache

from policy.decision import Effect, Finding
from policy.question import Question
from policy.visibility import callable_toolkits

NAME = "permission"


@lru_cache(maxsize=1_024)
def granted(toolkit: str) -> Finding:
    """What is said where the permission is there; the same for everyone, on the road of every call."""
    return Finding(check=NAME, effect=Effect.ALLOW, reason=f"May call toolkit {toolkit}")


def permission(question: Question) -> Finding:
    toolkit = question.tool.toolkit
    if question.tool.toolkit_id in callable_toolkits(question.caller):
        return granted(toolkit)
    return Finding(
        check=NAME,
        effect=Effect.DENY,
        reason=f"Agent {question.caller.name} may see toolkit {toolkit} but not call it",
        help=f"Ask the owner of {toolkit} for the permission 'call' on it: POST /api/access-requests/",
    )
