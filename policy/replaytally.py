"""Tally: what a replay found, counted exactly and listed up to a bound."""

from collections import Counter, defaultdict
from typing import Any

from policy.decision import Decision
from policy.question import Question
from policy.recordings import Recorded

MAX_LISTED = 200  # entries of each list
KINDS = {"deny": "newly_denied", "allow": "newly_allowed", "ask": "newly_asked"}
FINDINGS = (*KINDS.values(), "undecidable")

_Counts = dict[str, int]


def _none_yet() -> _Counts:
    return dict.fromkeys(("evaluated", *FINDINGS), 0)


class Tally:
    """Takes one judged call after another; its size does not grow with their number."""

    def __init__(self) -> None:
        self._all = _none_yet()
        self._agents: dict[str, _Counts] = defaultdict(_none_yet)
        self._tools: dict[str, _Counts] = defaultdict(_none_yet)
        self._turns: Counter[tuple[str, str]] = Counter()  # what was decided, and what would be
        self._lists: dict[str, list[dict[str, Any]]] = {kind: [] for kind in FINDINGS}

    @property
    def evaluated(self) -> int:
        return self._all["evaluated"]

    def add(self, call: Recorded, question: Question, decision: Decision) -> None:
        effect = decision.effect.value
        kind = None if effect == call.effect else KINDS[effect]
        self._turns[call.effect, effect] += 1
        if self._count(question, kind) and kind is not None:
            now = {"effect": effect, "rule": decision.rule, "reason": decision.reason}
            self._lists[kind].append(_entry(call, question) | {"now": now})

    def undecidable(self, call: Recorded, question: Question, reason: str) -> None:
        self._turns[call.effect, "undecidable"] += 1
        if self._count(question, "undecidable"):
            self._lists["undecidable"].append(_entry(call, question) | {"reason": reason})

    def report(self) -> dict[str, Any]:
        changed = sum(self._all[kind] for kind in FINDINGS)
        turns = sorted(self._turns.items())
        return {
            "evaluated": self.evaluated,
            **self._lists,
            "summary": {
                **{kind: self._all[kind] for kind in FINDINGS},
                "unchanged": self.evaluated - changed,
                "turns": [{"was": was, "now": now, "count": count} for (was, now), count in turns],
                "agents": _ranked("agent", self._agents),
                "tools": _ranked("tool_id", self._tools),
            },
        }

    def _count(self, question: Question, kind: str | None) -> bool:
        """Counts it; says whether the list still has room."""
        agent, tool = self._agents[question.caller.name], self._tools[question.tool.tool_id]
        for counts in (self._all, agent, tool):
            counts["evaluated"] += 1
            if kind is not None:
                counts[kind] += 1
        return kind is not None and len(self._lists[kind]) < MAX_LISTED


def _entry(call: Recorded, question: Question) -> dict[str, Any]:
    return {
        "call": str(call.id),
        "agent": question.caller.name,
        "tool_id": question.tool.tool_id,
        "at": call.at.isoformat(),
        "was": {"effect": call.effect, "rule": call.rule, "revision": call.revision},
    }


def _ranked(name: str, counted: dict[str, _Counts]) -> list[dict[str, Any]]:
    """Those with the most changes first, the busiest among equals; no more than a reader can use."""

    def weight(item: tuple[str, _Counts]) -> tuple[int, int, str]:
        who, counts = item
        return -sum(counts[kind] for kind in FINDINGS), -counts["evaluated"], who

    return [{name: who, **counts} for who, counts in sorted(counted.items(), key=weight)[:MAX_LISTED]]
