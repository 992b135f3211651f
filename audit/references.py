"""References: where a `$ref` inside a JSON Schema leads, read as the validator of inputs reads it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_MAX_DIGITS = 9  # of a place in a list


def pointer_of(reference: str) -> str:
    """The JSON pointer that a reference within a schema means; KeyError if it leads elsewhere."""
    if reference != "#" and not reference.startswith("#/"):
        raise KeyError(reference)
    # It is part of an address, so it is decoded, once and before it is taken apart: "%41" is the name "A".
    return unquote(reference[1:])


def find(root: Any, pointer: str) -> Any:
    """What a JSON pointer points at; KeyError if nothing."""
    here = root
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping):
            here = here[name]
        elif isinstance(here, list) and _is_place(name) and int(name) < len(here):
            here = here[int(name)]
        else:
            raise KeyError(pointer)
    return here


def followed(root: Any, reference: str) -> Any:
    """What a reference within a schema leads to; KeyError if nothing."""
    return find(root, pointer_of(reference))


def _is_place(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= _MAX_DIGITS
