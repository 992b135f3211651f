"""A manifest's document as YAML that a person can read and the importer reads back unchanged."""

import re
from typing import Any

import yaml

from registry.manifests import export_manifest
from registry.models import ToolkitVersion

# Our reader takes 1e5 for a number where PyYAML's writer does not; such a text needs quotes.
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class _Writer(yaml.SafeDumper):
    """Block style, no anchors, and quotes around every text that would read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(writer: _Writer, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else '"' if _NUMBER.fullmatch(text) else None
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _text)


def as_yaml(document: dict[str, Any]) -> str:
    """The document as YAML, its fields in the document's order."""
    written: str = yaml.dump(document, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=100)
    return written


def manifest_text(version: ToolkitVersion) -> str:
    """A version's manifest as YAML."""
    return as_yaml(export_manifest(version))
