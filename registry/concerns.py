"""Concerns: texts in a version that a second person should read before models and callers do."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from audit.patterns import redacted
from registry.manifestshape import Manifest

# Letters that are there but cannot be seen, or that turn the direction of what can.
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instruction|prompt|rule|polic)"
    r"|\b(?:do not|don't|never) (?:tell|inform|mention|show|ask)\b.{0,40}\b(?:user|human|person|anyone)"
    r"|\bsystem prompt\b|<\s*+/?\s*+(?:system|important|instructions?)\s*>"
    r"|\bbefore (?:using|calling) (?:this|any) tool\b|\bwithout (?:asking|approval|confirmation)\b",
    re.IGNORECASE | re.DOTALL,
)
_DATA = ("default", "const", "enum", "examples", "example")
_SECRET_MARKS = (("writeOnly", True), ("format", "password"), ("x-secret", True))


@dataclass(frozen=True, slots=True)
class Concern:
    """A place in a manifest and what is odd about it; the text itself is not repeated."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def concerns(manifest: Manifest) -> list[Concern]:
    """Every text that looks like a secret, like an order to a model, or that hides something."""
    found = [*_judged("metadata.title", manifest.title), *_judged("metadata.description", manifest.description)]
    for index, tool in enumerate(manifest.tools):
        document = tool.document()
        for field in ("title", "description", "input", "output", "annotations"):
            for path, text in _texts(document.get(field), f"spec.tools[{index}].{field}"):
                found += _judged(path, text)
        for field in ("input", "output"):
            found += _given_secrets(document[field], f"spec.tools[{index}].{field}")
    return found


def _judged(path: str, text: str) -> Iterator[Concern]:
    if redacted(text) != text:
        yield Concern(path, "looks like it holds a secret")
    if _ORDERS.search(text):
        yield Concern(path, "reads like an order to a model")
    if _HIDDEN.search(text):
        yield Concern(path, "holds characters that cannot be seen")


def _given_secrets(schema: Any, path: str) -> Iterator[Concern]:
    """Values that a schema gives away for what it marks as secret itself."""
    for where, part in _mappings(schema, path):
        if any(part.get(mark) == value for mark, value in _SECRET_MARKS):
            for keyword in _DATA:
                if part.get(keyword):
                    yield Concern(f"{where}.{keyword}", "gives a value for a secret")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield f"{path}.{name}", str(name)
            yield from _texts(part, f"{path}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _texts(part, f"{path}[{index}]")


def _mappings(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for name, part in value.items():
            yield from _mappings(part, f"{path}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _mappings(part, f"{path}[{index}]")
