"""Docstrings in Google style: the description of a function and of its parameters."""

import re
from inspect import cleandoc

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Return|Raises|Yields|Examples?|Notes?|Attributes|Warnings?|See Also|Todo):\s*"
)
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


def read(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Gives the description before the first section, and what `Args:` says of each parameter."""
    lines = cleandoc(docstring or "").splitlines()
    first = next((number for number, line in enumerate(lines) if _SECTION.fullmatch(line)), len(lines))
    return _paragraphs(lines[:first]), _parameters(lines[first:])


def _paragraphs(lines: list[str]) -> str:
    paragraphs = "\n".join(line.strip() for line in lines).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())


def _parameters(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name, indent, is_inside = "", 0, False
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth == 0:
            is_inside = line.startswith(("Args", "Arguments", "Parameters"))
            name, indent = "", 0
        elif is_inside and line.strip():
            indent = indent or depth
            match = _PARAMETER.fullmatch(line.strip()) if depth == indent else None
            if match:
                name = match[1]
                found[name] = match[2]
            elif name:
                found[name] = f"{found[name]} {line.strip()}".strip()
    return found
