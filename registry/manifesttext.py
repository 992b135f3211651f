"""A version's manifest as the YAML that people read, compare and edit."""

from registry import yamlwriting
from registry.manifests import export_manifest
from registry.models import ToolkitVersion


def manifest_text(version: ToolkitVersion) -> str:
    """The text whose import changes nothing."""
    return yamlwriting.write(export_manifest(version))
