"""A session with an MCP server: which of the protocol's two eras it speaks, and whether the tool is what it was."""

import base64
import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from audit.canonical import canonical
from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation
from execution.runtimes.mcpwire import RpcError, Wire

MODERN = "2026-07-28"  # stateless: every request says all there is to know
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")  # those with a handshake, the newest first
LOOK_AGAIN = 300.0  # seconds for which a tool that was looked at is believed to be the same
MAX_SESSIONS = 256
MAX_PAGES = 100
MAX_LIST = 4_000_000  # bytes of one page

_CLIENT = {"name": "placet", "version": "1"}
_META = "io.modelcontextprotocol/"
_SESSION_ID = re.compile(r"[!-~]{1,1000}")
_PLAIN = re.compile(r"[!-~]([ -~]*[!-~])?")
_PARAMETER = re.compile(r"[A-Za-z0-9_-]{1,60}")
_DIGESTED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(slots=True)
class Session:
    """What every further request of it must say."""

    version: str
    id: str = ""
    looked: dict[str, float] = field(default_factory=dict)  # when each tool was last seen to be the same
    headers_of: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = field(default_factory=dict)

    @property
    def is_modern(self) -> bool:
        return self.version == MODERN

    def params(self, given: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
        if self.is_modern:
            meta |= {f"{_META}protocolVersion": MODERN, f"{_META}clientInfo": _CLIENT, f"{_META}clientCapabilities": {}}
        return {**given, "_meta": meta} if meta else dict(given)

    def headers(self, method: str, name: str = "") -> dict[str, str]:
        headers = {"MCP-Protocol-Version": self.version}
        if self.is_modern:
            headers["Mcp-Method"] = method
            return headers | {"Mcp-Name": header_text(name)} if name else headers
        return headers | {"Mcp-Session-Id": self.id} if self.id else headers


_sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()
_lock = threading.Lock()


def session_for(invocation: Invocation, wire: Wire) -> Session:
    """One that was opened before with the same credentials, or a new one; its tool is the one that was pinned."""
    key = _key(invocation)
    with _lock:
        session = _sessions.get(key)
    try:
        if session is None:
            session = _open(wire)
        _look(session, invocation, wire)
    except RpcError as error:
        if session is not None and session.id and error.status == 404:
            raise SessionLost from error
        raise
    except CallError as error:
        if session is not None and session.id and error.failure.details.get("http_status") == "404":
            raise SessionLost from error
        raise
    with _lock:
        _sessions[key] = session
        _sessions.move_to_end(key)
        while len(_sessions) > MAX_SESSIONS:
            _sessions.popitem(last=False)
    return session


class SessionLost(Exception):
    """The server has forgotten it; a new one must be opened."""


def forget(invocation: Invocation) -> None:
    with _lock:
        _sessions.pop(_key(invocation), None)


def _key(invocation: Invocation) -> tuple[str, str]:
    """A session belongs to whoever opened it: other credentials open their own."""
    brought = canonical(dict(invocation.credentials.headers))
    return invocation.tool.runtime.options["endpoint"], hashlib.sha256(brought).hexdigest()


def _open(wire: Wire) -> Session:
    """Asked in the stateless way first; a server that does not know it is greeted as before."""
    modern = Session(MODERN)
    try:
        answer = wire.request("tools/list", modern.params({}), modern.headers("tools/list"), max_bytes=MAX_LIST)
        if "resultType" in answer.result:
            return modern
    except RpcError:
        pass
    except CallError as error:
        if error.failure.details.get("http_status") not in ("400", "404", "405", "406", "415", "422"):
            raise
    return _greet(wire)


def _greet(wire: Wire) -> Session:
    params = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": _CLIENT}
    result, headers, traffic = wire.request("initialize", params, {}, max_bytes=MAX_LIST)
    version, id = result.get("protocolVersion"), headers.get("mcp-session-id", "")
    if version not in LEGACY:
        message = "The MCP server speaks no version of the protocol that Placet does"
        raise CallError(ErrorCode.RUNTIME_INVALID, message, is_sent=False, traffic=traffic)
    if id and not _SESSION_ID.fullmatch(id):
        message = "The MCP server's session has an id that cannot be sent back"
        raise CallError(ErrorCode.EXECUTION_FAILED, message, is_sent=False, traffic=traffic)
    session = Session(str(version), id)
    wire.notify("notifications/initialized", {}, session.headers("notifications/initialized"))
    return session


def _look(session: Session, invocation: Invocation, wire: Wire) -> None:
    """CallError if the tool upstream is not what it was when this version was first used."""
    tool = invocation.tool
    if time.monotonic() - session.looked.get(tool.tool_id, -LOOK_AGAIN) < LOOK_AGAIN:
        return
    wanted = tool.runtime.options["tool"]
    found = next((each for each in _listed(session, wire) if each.get("name") == wanted), None)
    if found is None:
        message, details = "The MCP server has no such tool", {"tool": tool.tool_id, "upstream_tool": wanted}
        raise CallError(ErrorCode.UNSUPPORTED_TOOL, message, details=details, is_sent=False)
    digest = hashlib.sha256(canonical({name: found[name] for name in _DIGESTED if name in found})).hexdigest()
    pinned = invocation.pinned(digest)
    if pinned != digest:
        raise CallError(
            ErrorCode.RUNTIME_INVALID,
            "The tool was changed by its server after this version was first used",
            developer_message="Its description or schemas are no longer those that were agreed to; look at it and "
            "publish a new version",
            details={"refused": "changed_upstream", "was": pinned, "is": digest, "tool": tool.tool_id},
            is_sent=False,
        )
    session.headers_of[tool.tool_id] = tuple(_annotated(found.get("inputSchema"), ()))
    session.looked[tool.tool_id] = time.monotonic()


def _listed(session: Session, wire: Wire) -> Iterator[dict[str, Any]]:
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        headers = session.headers("tools/list")
        result = wire.request("tools/list", session.params(params), headers, max_bytes=MAX_LIST).result
        tools = result.get("tools")
        yield from (tool for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, dict))
        if not isinstance(result.get("nextCursor"), str):
            return
        params = {"cursor": result["nextCursor"]}


def parameter_headers(session: Session, invocation: Invocation) -> dict[str, str]:
    """Arguments that the server wants to see in a header too, as the stateless era allows it to."""
    headers = {}
    for path, name in session.headers_of.get(invocation.tool.tool_id, ()) if session.is_modern else ():
        value: Any = invocation.arguments
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{name}"] = "true" if value else "false"
        elif isinstance(value, str | int):
            headers[f"Mcp-Param-{name}"] = header_text(str(value))
    return headers


def _annotated(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, inner in properties.items() if isinstance(properties, dict) and len(path) < 8 else ():
        wanted = inner.get("x-mcp-header") if isinstance(inner, dict) else None
        if isinstance(wanted, str) and _PARAMETER.fullmatch(wanted):
            yield (*path, name), wanted
        yield from _annotated(inner, (*path, name))


def header_text(text: str) -> str:
    """As it is where a header can hold it, else in the protocol's own encoding."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
