"""A call of a tool to copy: for a shell, for Python, and for MCP clients; every value is quoted for where it stands."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from execution.protocols.mcp.calling import ARGUMENTS
from execution.protocols.mcp.examples import arguments
from execution.protocols.mcp.wording import CONTEXT
from registry.models import Tool

KEY = "PLACET_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One text to copy."""

    key: str
    title: str
    note: str
    text: str


def snippets(tool: Tool, url: str) -> list[Snippet]:
    """The ways to call this version of a tool at this address."""
    given = arguments(tool.input_schema)
    return [
        Snippet(
            key="curl",
            title="curl",
            note=f"The agent's key is in the variable {KEY}.",
            text=_curl(url, _envelope(tool, given)),
        ),
        Snippet(
            key="python",
            title="Python",
            note="Nothing to install; prints the answer, or the refusal with its reason.",
            text=_python(url, _envelope(tool, given)),
        ),
        Snippet(
            key="mcp-config",
            title="MCP client",
            note="Its configuration, for clients that speak Streamable HTTP; put the agent's key in.",
            text=_json(
                {
                    "mcpServers": {
                        "placet": {
                            "type": "http",
                            "url": f"{url}/mcp",
                            "headers": {"Authorization": f"Bearer <{KEY}>"},
                        }
                    }
                }
            ),
        ),
        Snippet(
            key="mcp-call",
            title="MCP tools/call",
            note="What such a client sends; MCP always calls the newest published version.",
            text=_json(_mcp_call(tool, given)),
        ),
    ]


def _envelope(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {"tool_id": tool.tool_id, "input": given}
    if context := _context(tool.requirements):
        asked["context"] = context
    return {"request": asked}


def _context(needs: Mapping[str, Any]) -> dict[str, Any]:
    """What the caller has to bring besides the input, with a mark where its value goes."""
    told: dict[str, Any] = {}
    for kind, name in (("authorization", "token"), ("secrets", "value")):
        if needs.get(kind):
            told[kind] = [{"id": need["id"], name: f"<{need['id']}>"} for need in needs[kind]]
    if needs.get("user_id"):
        told["user_id"] = "<user id>"
    return told


def _curl(url: str, body: Mapping[str, Any]) -> str:
    return (
        f"curl -s {shlex.quote(f'{url}/tools/call')} \\\n"
        f'  -H "OXP-API-Key: ${KEY}" -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body))}"
    )


def _python(url: str, body: Mapping[str, Any]) -> str:
    return f"""\
import json, os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

body = json.loads({json.dumps(body)!r})
headers = {{"OXP-API-Key": os.environ[{KEY!r}], "Content-Type": "application/json"}}
try:
    answer = urlopen(Request({f"{url}/tools/call"!r}, json.dumps(body).encode(), headers))
except HTTPError as refusal:
    answer = refusal
print(json.dumps(json.load(answer), indent=2))
"""


def _mcp_call(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    hidden = {name: value for name, value in given.items() if name in tool.non_inferrable}
    shown = {name: value for name, value in given.items() if name not in hidden}
    params: dict[str, Any] = {"name": tool.flat_name, "arguments": shown}
    meta = {ARGUMENTS: hidden, CONTEXT: _context(tool.requirements)}
    if any(meta.values()):
        params["_meta"] = {name: value for name, value in meta.items() if value}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2)
