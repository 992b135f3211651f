"""Filters for text from outside: `visible` for a line, `visible_lines` for a block, `pretty` for a JSON value."""

import json
from typing import Any

from django import template

from audit.visible import visible as made_visible

register = template.Library()


@register.filter
def visible(value: Any) -> str:
    """Escaping stays with the template engine: this returns plain text."""
    return made_visible(str(value))


@register.filter
def visible_lines(value: Any) -> str:
    return made_visible(str(value), keep="\n\t")


@register.filter
def pretty(value: Any) -> str:
    """A JSON value, or a text that holds one, over several lines."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return visible_lines(value)
    return visible_lines(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True))
