"""What a filled-in form says as arguments; what is wrong with a field stands in the field afterwards."""

from typing import Any

from django.http import QueryDict

from execution.portal.tryform import Field, every
from registry import strictjson
from registry.strictjson import StrictJSONError

_ABSENT = object()


def read(drawn: list[Field], posted: QueryDict) -> dict[str, Any]:
    """The arguments that a filled-in form says; what is wrong with a field stands in the field afterwards."""
    found: dict[str, Any] = {}
    for each in drawn:
        value = _value(each, posted)
        if value is not _ABSENT:
            found[each.label] = value
    return found


def read_json(text: str) -> dict[str, Any]:
    """The whole input as JSON; ValueError in words if it is none."""
    try:
        value = strictjson.loads(text.encode())
    except StrictJSONError as error:
        raise ValueError(error.message.replace("The body", "The input")) from None
    if not isinstance(value, dict):
        raise ValueError("The input is a JSON object: parameters by name, in curly brackets.")
    return value


def blame(drawn: list[Field], pointer: str, message: str) -> bool:
    """Puts a violation to the innermost field that it concerns; False if there is none."""
    fit = [each for each in every(drawn) if pointer == each.pointer or pointer.startswith(f"{each.pointer}/")]
    if not fit:
        return False
    guilty = max(fit, key=lambda each: len(each.pointer))
    guilty.error = guilty.error or message
    return True


def _value(each: Field, posted: QueryDict) -> Any:
    if each.kind == "group":
        is_touched = any(_is_touched(inner, posted) for inner in every(each.children))
        return read(each.children, posted) if is_touched or each.is_required else _ABSENT
    each.text, each.chosen = _typed(each, posted)
    try:
        value = _read_one(each)
    except ValueError as error:
        each.error = str(error)
        return _ABSENT
    if value is _ABSENT and each.is_required:
        may_be_empty = each.pointer and each.kind in ("text", "long", "secret")
        each.error = "Is required." + (" To send an empty text, write the input as JSON." if may_be_empty else "")
    return value


def _typed(each: Field, posted: QueryDict) -> tuple[str, list[str]]:
    chosen = [key for key in posted.getlist(each.name) if key]
    is_choice = each.kind in ("choice", "several")
    return ("", chosen) if is_choice else (posted.get(each.name, "").replace("\r\n", "\n"), [])


def _is_touched(each: Field, posted: QueryDict) -> bool:
    """Whether something else stands in it than what it was drawn with."""
    return each.kind != "group" and each.name in posted and _typed(each, posted) != (each.text, each.chosen)


def _read_one(each: Field) -> Any:
    match each.kind:
        case "choice" | "several":
            known = {key: value for key, _, value in each.options}
            values = [known[key] for key in each.chosen if key in known]
            if each.kind == "several":
                return values or ([] if each.is_required else _ABSENT)
            return values[0] if values else _ABSENT
        case "lines":
            lines = [line for line in each.text.split("\n") if line.strip()]
            if each.items == "string":
                values = [_text(line) for line in lines]
            else:
                values = [_numeral(line, is_whole=each.items == "integer") for line in lines]
            return values or ([] if each.is_required else _ABSENT)
        case "number" if each.text.strip():
            return _numeral(each.text, is_whole=each.is_whole)
        case "json" if each.text.strip():
            try:
                return strictjson.loads(each.text.encode())
            except StrictJSONError as error:
                raise ValueError(error.message.replace("The body", "This")) from None
        case "text" | "long" | "secret" if each.text:
            return _text(each.text)
    return _ABSENT


def _text(text: str) -> str:
    if "\0" in text:
        raise ValueError("Must not hold a NUL.")
    return text


def _numeral(text: str, *, is_whole: bool) -> int | float:
    """A number in the spelling of JSON, read as the doors read it."""
    wanted = "Must be a whole number, such as 3." if is_whole else "Must be a number, such as 2.5."
    try:
        value = strictjson.loads(text.strip().encode())
    except StrictJSONError:
        raise ValueError(wanted) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(wanted)
    if is_whole and float(value).is_integer():
        return int(value)
    if is_whole:
        raise ValueError(wanted)
    return value
