"""A document as YAML that our own reader, and any other, reads back as it was."""

from typing import Any

import yaml

from registry.yamlreading import means_itself

_RARE_BREAKS = "\r\x85\u2028\u2029"  # a reader may take them for spaces or for each other


class _Writer(yaml.SafeDumper):
    """Writes a list or mapping out wherever it stands: what reads it accepts no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Quotes a text that would mean something else without quotes, such as 1e5 or one with a rare line break."""
    is_odd = any(character in text for character in _RARE_BREAKS)
    style = '"' if is_odd else "|" if "\n" in text else None if means_itself(text) else '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _text)


def write(document: Any) -> str:
    """The YAML of a document, its keys in their order."""
    return yaml.dump(document, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=100)
