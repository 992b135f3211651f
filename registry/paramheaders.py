"""x-mcp-header: parameters that a client repeats in an HTTP header, so that what stands between can route by them."""

import re
from collections.abc import Iterator
from typing import Any

from registry.schemaparts import escaped, subschemas

KEYWORD = "x-mcp-header"
MAX_NAME = 64
# Narrower than what MCP allows: web servers drop headers with an underscore, and proxies those with odd signs.
_TOKEN = re.compile(r"[0-9A-Za-z]+(-[0-9A-Za-z]+)*", re.ASCII)
_TYPES = ("string", "integer", "boolean")


def marked(schema: Any) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Every marked parameter that is reached by properties alone: its path, its header's name, its type."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while waiting:
        path, here = waiting.pop(0)
        if not isinstance(here, dict):
            continue
        if path and KEYWORD in here:
            yield path, here[KEYWORD], here.get("type", "")
        properties = here.get("properties")
        if isinstance(properties, dict):
            waiting += [((*path, name), inner) for name, inner in properties.items()]


def header_problems(schema: Any) -> Iterator[tuple[str, str]]:
    """Why clients would drop the tool for its marks: each with the JSON pointer of where."""
    reached = {_pointer(path) for path, _, _ in marked(schema)}
    seen: set[str] = set()
    for pointer, part in _everywhere(schema):
        if KEYWORD not in part:
            continue
        where, name = f"{pointer}/{KEYWORD}", part[KEYWORD]
        if pointer not in reached:
            yield where, "only a parameter that is reached by properties alone can go into a header"
        elif not isinstance(name, str) or len(name) > MAX_NAME or not _TOKEN.fullmatch(name):
            yield where, f"must be part of a header's name: at most {MAX_NAME} letters, digits and dashes"
        elif part.get("type") not in _TYPES:
            yield where, f"only a parameter of type {', '.join(_TYPES)} can go into a header"
        elif part.get("writeOnly") is True or part.get("format") == "password":
            yield where, "a secret does not go into a header, which others log"
        elif name.lower() in seen:
            yield where, "another parameter has this header (case does not count)"
        else:
            seen.add(name.lower())


def _pointer(path: tuple[str, ...]) -> str:
    return "".join(f"/properties/{escaped(name)}" for name in path)


def _everywhere(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting:
        pointer, here = waiting.pop(0)
        if isinstance(here, dict):
            yield pointer, here
            waiting += [(pointer + below, part) for below, part in subschemas(here)]
