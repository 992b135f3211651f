"""What a tool author needs: mark functions as tools, name the toolkit, return values or content, fail clearly."""

from placet.content import Audio, Image, Resource, ResourceLink, Text
from placet.context import ToolContext
from placet.errors import FatalToolError, InvalidInputError, RetryableToolError, ToolError, ToolkitError
from placet.tool import tool
from placet.toolkit import Toolkit

__all__ = [
    "Audio",
    "FatalToolError",
    "Image",
    "InvalidInputError",
    "Resource",
    "ResourceLink",
    "RetryableToolError",
    "Text",
    "ToolContext",
    "ToolError",
    "Toolkit",
    "ToolkitError",
    "tool",
]
