"""What an approval is bound to: change any of it, and the answer no longer counts."""

import hashlib
from collections.abc import Iterable

from audit.canonical import canonical
from policy.question import Question

_VERSION = "placet-approval-1"


def digest_of(question: Question, *, brought: Iterable[str], revision: int) -> str:
    """SHA-256 over agent, tool, exact arguments, secret references, endpoint and policy revision.

    Arguments count byte by byte in their canonical form: 1 and 1.0 differ, and so do texts that only look alike.
    """
    tool = question.tool
    facts = [
        _VERSION,
        question.caller.agent_id,
        question.caller.name,
        question.user_id,
        tool.tool_id,
        tool.digest,
        tool.auth,
        tool.runtime.type,
        tool.runtime.options,
        sorted(brought),
        revision,
        dict(question.arguments),
    ]
    return hashlib.sha256(canonical(facts)).hexdigest()
