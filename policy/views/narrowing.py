"""A condition that holds for exactly these arguments: where a grant starts from, before a person widens it."""

import json
from collections.abc import Mapping
from typing import Any

from audit.marks import is_mark
from policy import conditions

MAX_CONDITION = 600


def narrow(arguments: Any, schema: Mapping[str, Any]) -> str:
    """Each plain argument equals what it is now; empty where that cannot be said as a condition."""
    if not isinstance(arguments, Mapping):
        return ""
    sure = schema.get("required", ())
    told = [
        f"{'' if name in sure else f'has(input.{name}) && '}input.{name} == {json.dumps(value)}"
        for name, value in sorted(arguments.items())
        if _is_plain(name, value)
    ]
    text = " && ".join(told)
    if not text or len(text) > MAX_CONDITION or conditions.problems(text, input_schemas=[schema]):
        return ""
    return text


def _is_plain(name: str, value: Any) -> bool:
    if not (name.isidentifier() and name.isascii()):
        return False
    if isinstance(value, str):
        return value.isascii() and value.isprintable() and not is_mark(value)  # a mark is not what the call brings
    return isinstance(value, int | float)
