"""Loops: a tool that is ourselves would call us, who call it, until something breaks."""

from urllib.parse import urlsplit

from django.conf import settings

from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation

_PORTS = {"http": 80, "https": 443}


def refuse_loop(invocation: Invocation) -> None:
    """CallError if the tool's endpoint is Placet's own address."""
    if _place(invocation.tool.runtime.options["endpoint"]) == _place(settings.PLACET_URL):
        raise CallError(
            ErrorCode.RUNTIME_INVALID,
            "The tool's address may not be used",
            developer_message="The endpoint is Placet itself: the call would come back as another call",
            details={"refused": "loop", "tool": invocation.tool.tool_id},
            is_sent=False,
        )


def _place(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    return (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)
