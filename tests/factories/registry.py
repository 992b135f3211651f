"""The smallest valid toolkits, versions and tools."""

from itertools import count
from typing import Any

from django.contrib.auth.models import User

from registry.manifests import import_manifest
from registry.models import Tool, Toolkit, ToolkitVersion
from registry.publishing import publish
from registry.risk import RiskLevel

_numbers = count(1)


def manifest(
    name: str = "Calculator", version: str = "1.0.0", *tools: dict[str, Any], **metadata: str
) -> dict[str, Any]:
    """A manifest with these tools, or with Add; each runs at an address unless it says otherwise."""
    return {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {"name": name, "version": version, **metadata},
        "spec": {"tools": [tool(**each) for each in tools or ({},)]},
    }


def tool(name: str = "Add", **fields: Any) -> dict[str, Any]:
    """One tool of a manifest: adds a and b at an address on loopback."""
    return {
        "name": name,
        "description": "Adds two numbers together.",
        "input": numbers("a", "b"),
        "output": {"type": "number"},
        "runtime": {"type": "http", "endpoint": "http://127.0.0.1:9/add"},
        **fields,
    }


def numbers(*names: str, **more: Any) -> dict[str, Any]:
    """An input schema of required numbers and whatever else."""
    properties = {name: {"type": "number"} for name in names} | more
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


def draft(*args: Any, by: User | None = None, **fields: Any) -> ToolkitVersion:
    """A version that may still change; arguments are those of a manifest."""
    return import_manifest(manifest(*args, **fields), by=by).version


def published(*args: Any, by: User | None = None, reviewed_by: User | None = None, **fields: Any) -> ToolkitVersion:
    """A version whose tools can be called."""
    version = draft(*args, by=by, **fields)
    if reviewed_by is None and RiskLevel(version.risk).needs_review:
        reviewed_by = person()
    return publish(version, by=by, reviewed_by=reviewed_by)


def bare_version(toolkit: Toolkit, major: int = 1, minor: int = 0, patch: int = 0) -> ToolkitVersion:
    """A draft without tools."""
    return ToolkitVersion.objects.create(toolkit=toolkit, major=major, minor=minor, patch=patch)


def bare_tool(version: ToolkitVersion, name: str = "Add", **fields: Any) -> Tool:
    """A tool row that no manifest described."""
    return Tool.objects.create(version=version, name=name, **fields)


def person(username: str = "") -> User:
    """Someone who can log in."""
    return User.objects.create_user(username or f"person{next(_numbers)}")
