"""Methods: the one table of what can be asked by JSON-RPC, at /mcp and at /rpc."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from execution.protocols.mcp import calling, discovery, listing, subscriptions, tasks
from execution.protocols.mcp.emptylists import empty, unknown
from execution.protocols.mcp.exchange import Era, Exchange, Stream
from policy.scopes import CALL, READ

Answering = Callable[[Exchange], Mapping[str, Any] | Stream]

LEGACY = frozenset({Era.LEGACY})
MODERN = frozenset({Era.MODERN})
BOTH = LEGACY | MODERN
EVERY = frozenset(Era)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Who answers, in which eras; what a limited token must hold; and which parameter the header Mcp-Name repeats."""

    answer: Answering
    eras: frozenset[Era]
    scope: str = ""
    name_param: str = ""
    since: str = ""  # the first legacy revision that has it


METHODS: Mapping[str, Method] = {
    "initialize": Method(answer=discovery.initialize, eras=LEGACY),
    "ping": Method(answer=discovery.ping, eras=LEGACY),
    "logging/setLevel": Method(answer=discovery.set_level, eras=LEGACY),
    "server/discover": Method(answer=discovery.discover, eras=MODERN),
    "subscriptions/listen": Method(answer=subscriptions.listen, eras=MODERN, scope=READ),
    "tools/list": Method(answer=listing.tools_list, eras=EVERY, scope=READ),
    "tools/call": Method(answer=calling.tools_call, eras=EVERY, scope=CALL, name_param="name"),
    "prompts/list": Method(answer=empty("prompts"), eras=BOTH, scope=READ),
    "resources/list": Method(answer=empty("resources"), eras=BOTH, scope=READ),
    "resources/templates/list": Method(answer=empty("resourceTemplates"), eras=BOTH, scope=READ),
    "prompts/get": Method(answer=unknown("prompt", "name"), eras=BOTH, scope=READ, name_param="name"),
    "resources/read": Method(answer=unknown("resource", "uri"), eras=BOTH, scope=READ, name_param="uri"),
    "tasks/get": Method(answer=tasks.tasks_get, eras=BOTH, scope=CALL, name_param="taskId", since="2025-11-25"),
    "tasks/cancel": Method(answer=tasks.tasks_cancel, eras=BOTH, scope=CALL, name_param="taskId", since="2025-11-25"),
    "tasks/update": Method(answer=tasks.tasks_update, eras=MODERN, scope=CALL, name_param="taskId"),
    "tasks/result": Method(answer=tasks.tasks_result, eras=LEGACY, scope=CALL, since="2025-11-25"),
    "tasks/list": Method(answer=tasks.tasks_list, eras=LEGACY, scope=CALL, since="2025-11-25"),
}
