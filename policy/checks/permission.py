"""The agent needs the permission to call the tool's toolkit."""

from policy.decision import Effect, Finding
from policy.question import Question
from policy.visibility import callable_toolkits

NAME = "permission"


def permission(question: Question) -> Finding:
    toolkit = question.tool.toolkit
    if question.tool.toolkit_id in callable_toolkits(question.caller):
        return Finding(check=NAME, effect=Effect.ALLOW, reason=f"May call toolkit {toolkit}")
    return Finding(
        check=NAME,
        effect=Effect.DENY,
        reason=f"Agent {question.caller.name} may see toolkit {toolkit} but not call it",
        help=f"Ask the owner of {toolkit} for the permission 'call' on it: POST /api/access-requests/",
    )
