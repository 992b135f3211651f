"""Find tools by what they are called, what they say, and what their parameters are called and say."""

import json
from collections.abc import Iterator
from typing import Any

from django.db.models import CharField, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat

from registry.models import Tool

MAX_WORDS = 8


def matching(tools: QuerySet[Tool], text: str) -> QuerySet[Tool]:
    """The tools in which every word of the text occurs, without regard to case; no words, all tools."""
    for word in text.replace("\0", " ").split()[:MAX_WORDS]:
        full_name = Concat("version__toolkit__name", Value("."), "name", output_field=CharField())
        tools = tools.annotate(full_name=full_name).filter(
            Q(full_name__icontains=word)
            | Q(title__icontains=word)
            | Q(description__icontains=word)
            | Q(pk__in=_with_parameter(tools, word))
        )
    return tools


def of_runtime(tools: QuerySet[Tool], kind: str) -> QuerySet[Tool]:
    """The tools that run there; the stored text has one spelling, so a look at the text is exact."""
    return tools.annotate(runtime_text=Cast("runtime", TextField())).filter(
        runtime_text__contains=f'"type":{json.dumps(kind)}'
    )


def _with_parameter(tools: QuerySet[Tool], word: str) -> list[int]:
    """The database narrows by the schema's text; only parameter names and descriptions count in the end."""
    escaped = json.dumps(word, ensure_ascii=False)[1:-1]
    candidates = tools.annotate(schema_text=Cast("input_schema", TextField())).filter(schema_text__icontains=escaped)
    return [
        pk
        for pk, schema in candidates.order_by().values_list("pk", "input_schema")
        if any(word.lower() in told.lower() for told in _told(schema))
    ]


def _told(schema: Any) -> Iterator[str]:
    """Names, titles and descriptions of parameters, however deep they lie."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            properties = node.get("properties")
            if isinstance(properties, dict):
                yield from properties
            yield from (node[key] for key in ("title", "description") if isinstance(node.get(key), str))
            waiting.extend(node.values())
