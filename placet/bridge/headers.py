"""What a message says in its headers: on the modern wire they repeat the body, so that no one has to read it."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

VERSION = "io.modelcontextprotocol/protocolVersion"
BASE = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
# Which parameter names what a method is about.
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
Path = tuple[str, ...]


def modern_version(message: Mapping[str, Any]) -> str:
    """The revision that a message of the modern wire carries with it; empty for one of the older wire."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else ""


def modern(message: Mapping[str, Any], version: str) -> dict[str, str]:
    method, params = message.get("method"), message.get("params") or {}
    headers = {"MCP-Protocol-Version": encoded(version)}
    if isinstance(method, str):
        headers["Mcp-Method"] = encoded(method)
        name = params.get(_NAMED.get(method) or ("taskId" if method.startswith("tasks/") else ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = encoded(name)
    return headers


def encoded(value: str) -> str:
    """As a header can carry it: what would not survive the way is wrapped."""
    if _PLAIN.fullmatch(value) and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}?="


class Mirrored:
    """The parameters that tools want repeated in headers, learned from the lists that pass by."""

    def __init__(self) -> None:
        self._tools: dict[str, dict[Path, str]] = {}
        self._lock = threading.Lock()

    def learn(self, result: Any) -> None:
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else []:
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                with self._lock:
                    self._tools[tool["name"]] = dict(_annotated(tool.get("inputSchema")))

    def headers(self, params: Mapping[str, Any]) -> dict[str, str]:
        with self._lock:
            wanted = self._tools.get(str(params.get("name")), {})
        found = ((name, _at(params.get("arguments"), path)) for path, name in wanted.items())
        return {f"Mcp-Param-{name}": _written(value) for name, value in found if isinstance(value, str | int)}


def _annotated(schema: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(inner, dict):
            continue
        header = inner.get("x-mcp-header")
        if isinstance(header, str) and _TOKEN.fullmatch(header):
            yield (*path, name), header
        if len(path) < 16:
            yield from _annotated(inner, (*path, name))


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _written(value: str | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return encoded(str(value))
