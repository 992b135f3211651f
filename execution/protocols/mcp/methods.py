"""Methods: the one table of what can be asked by JSON-RPC, at /mcp and at /rpc."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from execution.protocols.mcp.exchange import Era, Exchange, Stream

Answering = Callable[[Exchange], Mapping[str, Any] | Stream]

LEGACY = frozenset({Era.LEGACY})
MODERN = frozenset({Era.MODERN})
BOTH = LEGACY | MODERN
EVERY = frozenset(Era)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Who answers, in which eras, and which parameter a modern client repeats in the header Mcp-Name."""

    answer: Answering
    eras: frozenset[Era]
    name_param: str = ""
    since: str = ""  # the first legacy revision that has it


def _in(module: str, function: str) -> Answering:
    def answer(exchange: Exchange) -> Mapping[str, Any] | Stream:
        found = cast(Answering, getattr(import_module(f"execution.protocols.mcp.{module}"), function))
        return found(exchange)

    return answer


METHODS: Mapping[str, Method] = {
    "initialize": Method(answer=_in("discovery", "initialize"), eras=LEGACY),
    "ping": Method(answer=_in("discovery", "ping"), eras=LEGACY),
    "logging/setLevel": Method(answer=_in("discovery", "set_level"), eras=LEGACY),
    "server/discover": Method(answer=_in("discovery", "discover"), eras=MODERN),
    "subscriptions/listen": Method(answer=_in("subscriptions", "listen"), eras=MODERN),
    "tools/list": Method(answer=_in("listing", "tools_list"), eras=EVERY),
    "tools/call": Method(answer=_in("calling", "tools_call"), eras=EVERY, name_param="name"),
    "tasks/get": Method(answer=_in("tasks", "tasks_get"), eras=BOTH, name_param="taskId", since="2025-11-25"),
    "tasks/cancel": Method(answer=_in("tasks", "tasks_cancel"), eras=BOTH, name_param="taskId", since="2025-11-25"),
    "tasks/update": Method(answer=_in("tasks", "tasks_update"), eras=MODERN, name_param="taskId"),
    "tasks/result": Method(answer=_in("tasks", "tasks_result"), eras=LEGACY, since="2025-11-25"),
    "tasks/list": Method(answer=_in("tasks", "tasks_list"), eras=LEGACY, since="2025-11-25"),
}
