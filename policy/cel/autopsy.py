"""Why judging failed, in words: names of fields and kinds of values, never a value itself."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from policy.cel.checking import Checker
from policy.cel.shapes import Shape, of_kinds, of_schemas
from policy.cel.tree import Node, Select, walk

_MAX_DEPTH = 8
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_PLAIN = {
    ZeroDivisionError: "it divides by zero",
    OverflowError: "a number or a moment grows out of range",
    IndexError: "a list is shorter than the condition expects",
}
_OTHERWISE = {
    KeyError: "a field that it reads is not given",
    TypeError: "it joins values of kinds that do not go together",
    ValueError: "the call holds a value that no condition can read",
    RuntimeError: "a text cannot be read as the number, moment or duration it should be",
}


def cause(error: BaseException, text: str, tree: Node, variables: Mapping[str, Any]) -> str:
    """What was wrong with these values, as far as it can be told."""
    for kind, words in _PLAIN.items():
        if isinstance(error, kind):
            return words
    found = Checker(text, tree, {name: _shape(value) for name, value in variables.items()}, is_autopsy=True).problems
    fitting = [problem for problem in found if problem.is_about_absence == isinstance(error, KeyError)]
    if fitting:
        return fitting[0].sentence.rstrip(".")
    if isinstance(error, KeyError) and error.args and error.args[0] in _fields(tree):
        return f"a field `{error.args[0]}` that it reads is not given"
    return next((words for kind, words in _OTHERWISE.items() if isinstance(error, kind)), "the engine gave up")


def _fields(tree: Node) -> set[object]:
    """The names that the expression spells itself; any other may be a value."""
    return {node.field for node in walk(tree) if isinstance(node, Select)}


def kind_of(value: Any) -> str:
    """The kind of a value in words."""
    return _shape(value).words


def _shape(value: Any) -> Shape:
    return of_kinds("timestamp") if isinstance(value, datetime) else of_schemas([_schema(value, 0)])


def _schema(value: Any, depth: int) -> dict[str, Any]:
    """A schema that says of a value what its fields are and of which kinds; lists are told by the kinds they hold."""
    if value is None:
        return {"type": "null"}
    if isinstance(value, Mapping) and depth < _MAX_DEPTH:
        fields = {name: _schema(field, depth + 1) for name, field in value.items()}
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    if isinstance(value, list):
        kinds = sorted({_TYPES.get(type(item), "null") for item in value})
        return {"type": "array", "items": {"type": kinds} if kinds else {}}
    name = _TYPES.get(type(value))
    return {"type": name} if name else {}
