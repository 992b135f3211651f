"""What exists: toolkits, their versions, and the tools in them."""

from registry.models.capability import Capability
from registry.models.flatname import FlatName
from registry.models.source import Source
from registry.models.tool import Tool
from registry.models.toolkit import Toolkit
from registry.models.version import FrozenVersion, ToolkitVersion

__all__ = ["Capability", "FlatName", "FrozenVersion", "Source", "Tool", "Toolkit", "ToolkitVersion"]
