"""YAML from strangers: plain data with line numbers; no tags, no aliases, no second meaning."""

import math
import re
from dataclasses import dataclass
from typing import Any

import yaml

MAX_BYTES = 1_000_000
MAX_DEPTH = 64
MAX_VALUES = 100_000

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,20}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_PLACE = re.compile(r"\[([0-9]{1,6})\]")
_UNSPEAKABLE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class YAMLError(ValueError):
    """The text is not YAML that we accept."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(slots=True)
class Lines:
    """The line of a value, and the lines of its parts; what has no parts is only a number."""

    line: int
    parts: "dict[str, Lines | int] | list[Lines | int]"

    def __getitem__(self, path: str) -> int:
        """The line of a path such as spec.tools[0].name; KeyError if there is none."""
        line, rest = self._followed(path)
        if rest or line is None:
            raise KeyError(path)
        return line

    def nearest(self, path: str) -> int | None:
        """The line of a path, or of the nearest place around it; None if that is the whole."""
        return self._followed(path)[0]

    def _followed(self, path: str) -> tuple[int | None, str]:
        """The line of as much of a path as is there, and the rest of it."""
        here: Lines | int = self
        line, rest = None, path if path[:1] in {"", "["} else f".{path}"
        while rest and isinstance(here, Lines) and (step := _step(here.parts, rest)) is not None:
            here, rest = step
            line = here.line if isinstance(here, Lines) else here
        return line, rest


def _step(parts: "dict[str, Lines | int] | list[Lines | int]", path: str) -> "tuple[Lines | int, str] | None":
    """The part through which a path goes on, and the rest of the path; the longest, as names may hold dots."""
    if isinstance(parts, list):
        place = _PLACE.match(path)
        is_there = place is not None and int(place[1]) < len(parts)
        return (parts[int(place[1])], path[place.end() :]) if place and is_there else None
    names = [name for name in parts if path.startswith(name, 1) and path[len(name) + 1 :][:1] in {"", ".", "["}]
    name = max(names, key=len, default=None) if path.startswith(".") else None
    return None if name is None else (parts[name], path[len(name) + 1 :])


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    value: Any
    lines: Lines
    line: int = 0  # of the key
    key: str | None = None


def read(text: bytes) -> tuple[Any, Lines]:
    """The value of one document, and the lines on which its parts stand."""
    if len(text) > MAX_BYTES:
        raise YAMLError(f"is larger than {MAX_BYTES} bytes")
    try:
        source = text.decode()
    except UnicodeDecodeError:
        raise YAMLError("is not UTF-8") from None
    try:
        return _Builder().build(source)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise YAMLError(f"is not YAML: {error.problem}", line) from None
    except yaml.YAMLError:
        raise YAMLError("is not YAML") from None


class _Builder:
    """Builds the value event by event, so that nothing large or deep is ever built before it is judged."""

    def __init__(self) -> None:
        self._stack: list[_Open] = []
        self._count = 0
        self._result: list[tuple[Any, Lines]] = []

    def build(self, source: str) -> tuple[Any, Lines]:
        documents = 0
        for event in yaml.parse(source, Loader=yaml.CSafeLoader):
            line = event.start_mark.line + 1
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        raise YAMLError("holds more than one document", line)
                case yaml.AliasEvent():
                    raise YAMLError("uses an alias; write the content out", line)
                case yaml.ScalarEvent():
                    _refuse_extras(event, line)
                    self._scalar(event, line)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    _refuse_extras(event, line)
                    self._open({} if isinstance(event, yaml.MappingStartEvent) else [], line)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self._stack.pop()
        if not self._result:
            raise YAMLError("is empty")
        return self._result[0]

    def _open(self, container: Any, line: int) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise YAMLError(f"is nested more than {MAX_DEPTH} levels deep", line)
        lines = Lines(line, [] if isinstance(container, list) else {})
        self._place(container, lines, line)
        self._stack.append(_Open(container, lines))

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        holder = self._stack[-1] if self._stack else None
        if holder is not None and isinstance(holder.value, dict) and holder.key is None:
            if event.value == "<<" and not event.style:
                raise YAMLError("uses a merge key; write the content out", line)
            if event.value in holder.value:
                raise YAMLError(f"holds the key {event.value[:100]!r} twice", line)
            holder.key, holder.line = event.value, line
        else:
            self._place(event.value if event.style else _plain(event.value, line), line, line)

    def _place(self, value: Any, lines: Lines | int, line: int) -> None:
        """Puts a value where it belongs, and its line beside it."""
        self._count += 1
        if self._count > MAX_VALUES:
            raise YAMLError(f"holds more than {MAX_VALUES} values", line)
        if not self._stack:
            self._result.append((value, lines if isinstance(lines, Lines) else Lines(lines, [])))
            return
        holder = self._stack[-1]
        if isinstance(holder.lines.parts, list):
            holder.value.append(value)
            holder.lines.parts.append(lines)
            return
        if holder.key is None:
            raise YAMLError("has a key that is not a text", line)
        if isinstance(lines, Lines):
            lines.line = holder.line  # a field stands where its name does
        holder.value[holder.key] = value
        holder.lines.parts[holder.key] = lines if isinstance(lines, Lines) else holder.line
        holder.key = None


def _refuse_extras(event: Any, line: int) -> None:
    if event.tag is not None and event.tag != "!":
        raise YAMLError("uses a tag; only plain data is read", line)
    if event.anchor is not None:
        raise YAMLError("uses an anchor; write the content out", line)


def _plain(text: str, line: int) -> Any:
    """What an unquoted word means: null, true, false, a number, or itself."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _INTEGER.fullmatch(text):
        number = int(text)
        if not -(2**63) <= number < 2**64:
            raise YAMLError("holds an integer beyond 64 bits", line)
        return number
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            raise YAMLError("holds a number that is too large", line)
        return value
    if _UNSPEAKABLE.fullmatch(text):
        raise YAMLError("holds infinity or not-a-number, which JSON cannot say", line)
    return text


def means_itself(text: str) -> bool:
    """Whether an unquoted word is read as the text it is."""
    try:
        return isinstance(_plain(text, 0), str)
    except YAMLError:
        return False
