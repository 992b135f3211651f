"""A manifest from a form: what somebody filled in, row by row, becomes a document that goes the road of all others."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from registry import strictjson
from registry.manifestshape import API_VERSION
from registry.models.capability import CONTRACT_LABELS

MOST_TOOLS = 20
MOST_PARAMETERS = 50
PARAMETER_TYPES = ("string", "integer", "number", "boolean", "array", "object")
# Which settings a runtime has in the form; the rest of a manifest's fields can be written into the manifest itself.
SETTINGS: dict[str, tuple[str, ...]] = {
    "http": ("endpoint",),
    "external": ("endpoint",),
    "grpc": ("endpoint",),
    "webhook-callback": ("endpoint",),
    "mcp": ("endpoint", "tool"),
    "container": ("image", "command", "memory"),
    "python": ("entrypoint", "source"),
    "wasm": ("module", "entrypoint", "memory", "source"),
    "session": (),
}
EVERY_SETTING = tuple(dict.fromkeys(name for names in SETTINGS.values() for name in names))
_HEAD = ("name", "version", "title", "description")
_WORDS = ("name", "title", "description", "risk", "idempotency", "own", "runtime", "timeout", "dispatch", "schema")
_OF_A_ROW = {*_WORDS, *EVERY_SETTING} - {"schema"}
_OF_A_TOOL = re.compile(r"spec\.tools\[(\d{1,3})\]\.?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRow:
    """One parameter of a tool; a row without a name is left out."""

    name: str = ""
    type: str = "string"
    description: str = ""
    is_required: bool = False

    def schema(self) -> dict[str, Any]:
        return {"type": self.type} | ({"description": self.description} if self.description else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool as it was filled in."""

    name: str = ""
    title: str = ""
    description: str = ""
    risk: str = "low"
    idempotency: str = "non_idempotent"
    capabilities: tuple[str, ...] = ()  # of the contract's labels
    own: str = ""  # further capabilities, with spaces or commas between them
    runtime: str = "http"
    timeout: str = ""
    dispatch: str = "queue"
    settings: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[ParameterRow, ...] = (ParameterRow(),)
    schema: str = ""  # JSON; if there is one, the rows are left out
    faults: Mapping[str, str] = field(default_factory=dict)  # what is wrong, by field; "rest" belongs to none

    def document(self) -> dict[str, Any]:
        words = {"title": self.title, "description": self.description}
        return {
            "name": self.name,
            **{name: text for name, text in words.items() if text},
            "risk": self.risk,
            "capabilities": [*self.capabilities, *self.own.replace(",", " ").split()],
            "idempotency": self.idempotency,
            "input": strictjson.loads(self.schema.encode()) if self.schema.strip() else self._input(),
            "runtime": self._runtime(),
        }

    @property
    def problem(self) -> str:
        """What is wrong with the schema's text; everything else is judged in the manifest."""
        try:
            self.document()
        except strictjson.StrictJSONError as error:
            return f"The input schema was not taken. {error.message.replace('The body', 'It')}"
        return ""

    def _input(self) -> dict[str, Any]:
        named = [row for row in self.parameters if row.name]
        required = [row.name for row in named if row.is_required]
        return {
            "type": "object",
            "properties": {row.name: row.schema() for row in named},
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }

    def _runtime(self) -> dict[str, Any]:
        given = {name: self.settings.get(name, "") for name in SETTINGS.get(self.runtime, ())}
        found: dict[str, Any] = {name: text for name, text in given.items() if text}
        if "command" in found:
            found["command"] = [line for line in found["command"].splitlines() if line.strip()]
        more = {"timeout": self.timeout, "dispatch": self.dispatch if self.dispatch != "queue" else ""}
        return {"type": self.runtime, **found, **{name: text for name, text in more.items() if text}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The whole form."""

    name: str = ""
    version: str = "1.0.0"
    title: str = ""
    description: str = ""
    tools: tuple[ToolRow, ...] = (ToolRow(),)
    faults: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: Any) -> "Filled":
        """From what a browser sent; a field that is not there is empty."""
        count = _count(data, "tools", MOST_TOOLS)
        return cls(
            **{name: _text(data, name) for name in _HEAD},
            tools=tuple(_tool(data, f"t{number}-") for number in range(count)),
            faults={},
        )

    def document(self) -> dict[str, Any]:
        words = {"title": self.title, "description": self.description}
        return {
            "apiVersion": API_VERSION,
            "kind": "Toolkit",
            "metadata": {
                "name": self.name,
                "version": self.version,
                **{name: text for name, text in words.items() if text},
            },
            "spec": {"tools": [tool.document() for tool in self.tools]},
        }

    def with_faults(self, found: Iterable[tuple[str, str]]) -> "Filled":
        """The same form, each fault (its path in the manifest, and why) at the field that it came from."""
        own: dict[str, str] = {}
        rows: list[dict[str, str]] = [{} for _ in self.tools]
        for path, reason in found:
            match = _OF_A_TOOL.fullmatch(path)
            row = rows[int(match[1])] if match and int(match[1]) < len(rows) else own
            place = match[2] if match else path.removeprefix("metadata.")
            name = place.removeprefix("runtime.").partition(".")[0].partition("[")[0]
            name = {"capabilities": "own", "type": "runtime"}.get(name, name)
            if name not in (_OF_A_ROW if match else _HEAD):
                name, reason = "rest", f"{place} {reason}"
            row[name] = f"{row[name]}; {reason}" if name in row else reason
        tools = tuple(replace(tool, faults=faults) for tool, faults in zip(self.tools, rows, strict=True))
        return replace(self, tools=tools, faults=own)

    def after(self, wish: str) -> "Filled":
        """With a tool or a row more or less: add-tool, drop-tool-1, add-parameter-0, drop-parameter-0-2."""
        verb, *numbers = wish.replace("-tool", "").replace("-parameter", "_row").split("-")
        places = [int(number) for number in numbers if number.isdecimal() and len(number) < 4]
        tools = list(self.tools)
        match verb, places:
            case "add", [] if len(tools) < MOST_TOOLS:
                tools.append(ToolRow())
            case "drop", [place] if place < len(tools) and len(tools) > 1:
                del tools[place]
            case "add_row", [place] if place < len(tools) and len(tools[place].parameters) < MOST_PARAMETERS:
                tools[place] = replace(tools[place], parameters=(*tools[place].parameters, ParameterRow()))
            case "drop_row", [place, row] if place < len(tools):
                kept = tuple(each for number, each in enumerate(tools[place].parameters) if number != row)
                tools[place] = replace(tools[place], parameters=kept)
        return replace(self, tools=tuple(tools))


def _tool(data: Any, prefix: str) -> ToolRow:
    chosen = set(data.getlist(f"{prefix}capability"))
    return ToolRow(
        **{name: _text(data, f"{prefix}{name}") for name in _WORDS},
        faults={},
        capabilities=tuple(label for label in CONTRACT_LABELS if label in chosen),
        settings={name: _text(data, f"{prefix}{name}") for name in EVERY_SETTING},
        parameters=tuple(
            ParameterRow(
                name=_text(data, f"{prefix}p{number}-name"),
                type=_text(data, f"{prefix}p{number}-type"),
                description=_text(data, f"{prefix}p{number}-description"),
                is_required=f"{prefix}p{number}-required" in data,
            )
            for number in range(_count(data, f"{prefix}parameters", MOST_PARAMETERS))
        ),
    )


def _text(data: Any, name: str) -> str:
    return str(data.get(name, "")).replace("\r\n", "\n").strip()


def _count(data: Any, name: str, most: int) -> int:
    text = _text(data, name)
    return min(int(text), most) if text.isdecimal() and len(text) < 4 else 1
