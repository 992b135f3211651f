"""x-mcp-header in an input schema: checked when a tool is saved, since clients drop a tool whose marks are wrong."""

from typing import Any

import pytest

from registry.fields import ManifestError
from registry.manifestshape import parse
from registry.paramheaders import marked
from tests.factories.registry import manifest

REGION = {"type": "string", "x-mcp-header": "Region"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_marks_on_parameters_and_on_nested_ones_are_taken_and_found() -> None:
    takes = schema(
        region=REGION,
        count={"type": "integer", "x-mcp-header": "Count"},
        where=schema(is_far={"type": "boolean", "x-mcp-header": "Far"}),
    )
    assert parse(manifest("Calculator", "1.0.0", {"input": takes})).tools[0].input == takes
    assert list(marked(takes)) == [
        (("region",), "Region", "string"),
        (("count",), "Count", "integer"),
        (("where", "is_far"), "Far", "boolean"),
    ]


@pytest.mark.parametrize(
    ("takes", "path"),
    [
        (schema(a={"type": "number", "x-mcp-header": "A"}), "properties.a"),
        (schema(a={"type": ["string", "null"], "x-mcp-header": "A"}), "properties.a"),
        (schema(a={"x-mcp-header": "A"}), "properties.a"),
        (schema(a={"type": "string", "x-mcp-header": ""}), "properties.a"),
        (schema(a={"type": "string", "x-mcp-header": "A B"}), "properties.a"),
        (schema(a={"type": "string", "x-mcp-header": "A:\r\nB"}), "properties.a"),
        (schema(a={"type": "string", "x-mcp-header": 5}), "properties.a"),
        (schema(a={"type": "string", "x-mcp-header": "A_B"}), "properties.a"),
        (schema(a={"type": "string", "x-mcp-header": "-A"}), "properties.a"),
        (schema(a={"type": "string", "x-mcp-header": "a" * 65}), "properties.a"),
        (schema(a=REGION, b={"type": "string", "x-mcp-header": "rEGION"}), "properties.b"),
        (schema(a={"type": "string", "x-mcp-header": "Key", "writeOnly": True}), "properties.a"),
        (schema(a={"type": "array", "items": REGION}), "properties.a.items"),
        (schema(a={"anyOf": [REGION]}), "properties.a.anyOf[0]"),
        ({**schema(a={"$ref": "#/$defs/R"}), "$defs": {"R": REGION}}, "$defs.R"),
        ({**schema(), "x-mcp-header": "Root"}, ""),
    ],
)
def test_a_mark_that_clients_would_not_take_is_refused_by_its_path(takes: Any, path: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse(manifest("Calculator", "1.0.0", {"input": takes}))
    where = ".".join(each for each in ("spec.tools[0].input", path, "x-mcp-header") if each)
    assert refused.value.path == where
