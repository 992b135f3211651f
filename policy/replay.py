"""A revision over recorded calls: what it would decide otherwise than what was decided."""

from collections.abc import Callable
from typing import Any

import orjson

from policy.caller import Caller
from policy.masked import doubt, is_masked
from policy.models import Agent
from policy.question import Question
from policy.recordings import Recorded, newest
from policy.replaytally import Tally
from policy.rulesets import RuleSet
from registry import revision
from registry.models import Tool
from registry.toolspec import ToolSpec, spec_of

Progress = Callable[[int, int], None]  # evaluated, total


def replayed(rules: RuleSet, last: int, *, on_progress: Progress) -> dict[str, Any]:
    """The report, as JSON, on what these rules say about the last calls that were judged."""
    total, batches = newest(last)
    judged, tally = _Judge(rules), Tally()
    on_progress(0, total)
    for batch in batches:
        with revision.pinned():  # each batch by one state of the registry, and not a query per call to ask for it
            for call in batch:
                judged.into(tally, call)
        on_progress(tally.evaluated, max(total, tally.evaluated))
    return tally.report()


class _Judge:
    """Asks the rules about recorded calls; each agent and tool is looked up once."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._callers: dict[int, Caller] = {}
        self._tools: dict[int, ToolSpec] = {}

    def into(self, tally: Tally, call: Recorded) -> None:
        arguments = orjson.loads(call.arguments)
        question = Question(
            caller=self._callers.get(call.agent_id) or self._caller(call.agent_id),
            tool=self._tools.get(call.tool_id) or self._tool(call.tool_id),
            arguments=arguments if isinstance(arguments, dict) else {},
            user_id=call.user_id,
        )
        decision = self._rules.judge(question, now=call.at)
        if is_masked(call.arguments) and (reason := doubt(self._rules, question, arguments, decision)):
            tally.undecidable(call, question, reason)
        else:
            tally.add(call, question, decision)

    def _caller(self, id: int) -> Caller:
        agent = Agent.objects.get(pk=id)
        found = Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="")
        self._callers[id] = found
        return found

    def _tool(self, id: int) -> ToolSpec:
        """The tool as it was called, though its version may have been withdrawn since."""
        rows = Tool.objects.select_related("version__toolkit").prefetch_related("capabilities")
        found = self._tools[id] = spec_of(rows.get(pk=id))
        return found
