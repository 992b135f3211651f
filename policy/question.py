"""Question: may this agent call this tool with these arguments?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policy.caller import Caller
from registry.toolspec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """All that a check may look at."""

    caller: Caller
    tool: ToolSpec
    arguments: Mapping[str, Any]
    user_id: str = ""  # on whose behalf the agent says it asks
