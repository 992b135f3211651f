"""What a tool author needs: mark functions as tools, name the toolkit, return values or content, fail clearly."""

from typing import TYPE_CHECKING, Any

from placet.content import Audio, Image, Resource, ResourceLink, Text
from placet.context import ToolContext
from placet.errors import FatalToolError, InvalidInputError, RetryableToolError, ToolError, ToolkitError
from placet.tool import tool
from placet.toolkit import Toolkit

if TYPE_CHECKING:
    from placet.serving import ServingError, serve

__all__ = [
    "Audio",
    "FatalToolError",
    "Image",
    "InvalidInputError",
    "Resource",
    "ResourceLink",
    "RetryableToolError",
    "ServingError",
    "Text",
    "ToolContext",
    "ToolError",
    "Toolkit",
    "ToolkitError",
    "serve",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Only who serves loads what speaks HTTP: the processes that run tools start by the dozen."""
    if name in ("ServingError", "serve"):
        from placet import serving

        return getattr(serving, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
