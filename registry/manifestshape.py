"""Manifest: a checked document in its one normal form, and the digests computed over it."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from audit.canonical import canonical
from registry import bindings
from registry.fields import Fields, ManifestError, text_at
from registry.icons import icons
from registry.models.capability import CAPABILITY_PATTERN
from registry.models.flatname import MAX_FLAT_NAME
from registry.models.tool import Tool, no_parameters
from registry.models.toolkit import NAME_PATTERN
from registry.risk import RiskLevel
from registry.schemas import input_problems, problems

API_VERSION = "placet.dev/v1"
MAX_TOOLS = 500
MAX_DESCRIPTION = 20_000

_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})", re.ASCII)
_NAME = re.compile(NAME_PATTERN)
_CAPABILITY = re.compile(CAPABILITY_PATTERN)
_TOOL_FIELDS = (
    "name",
    "title",
    "description",
    "risk",
    "capabilities",
    "idempotency",
    "input",
    "output",
    "nonInferrable",
    "annotations",
    "requirements",
    "runtime",
    "auth",
    "icons",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolManifest:
    """One tool of a manifest, every default said."""

    name: str
    title: str
    description: str
    risk: RiskLevel
    capabilities: tuple[str, ...]
    idempotency: str
    input: dict[str, Any]
    output: dict[str, Any] | None
    non_inferrable: tuple[str, ...]
    annotations: dict[str, Any]
    requirements: dict[str, Any]
    runtime: dict[str, Any]
    auth: dict[str, Any]
    icons: tuple[dict[str, Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """The tool as a manifest writes it; what is empty is left out."""
        requirements = {"userId" if name == "user_id" else name: value for name, value in self.requirements.items()}
        optional = {
            "nonInferrable": list(self.non_inferrable),
            "annotations": self.annotations,
            "requirements": requirements,
            "auth": self.auth,
            "icons": list(self.icons),
        }
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "risk": self.risk.word,
            "capabilities": list(self.capabilities),
            "idempotency": self.idempotency,
            "input": self.input,
            "output": self.output,
            **{name: value for name, value in optional.items() if value},
            "runtime": self.runtime,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One toolkit version, described completely."""

    name: str
    version: tuple[int, int, int]
    title: str
    description: str
    tools: tuple[ToolManifest, ...]

    def __str__(self) -> str:
        return f"{self.name}@{'.'.join(map(str, self.version))}"

    @property
    def risk(self) -> RiskLevel:
        """The highest risk of its tools."""
        return max((tool.risk for tool in self.tools), default=RiskLevel.LOW)

    @property
    def digest(self) -> str:
        """The name of this exact content; the order of the tools does not count."""
        document = self.document()
        document["spec"]["tools"].sort(key=lambda tool: tool["name"])
        return _sha256(document)

    def tool_digest(self, tool: ToolManifest) -> str:
        """The name of one tool of this exact version."""
        return _sha256({"version": str(self), "tool": tool.document()})

    def document(self) -> dict[str, Any]:
        """The manifest as it is exported."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Toolkit",
            "metadata": {
                "name": self.name,
                "version": ".".join(map(str, self.version)),
                "title": self.title,
                "description": self.description,
            },
            "spec": {"tools": [tool.document() for tool in self.tools]},
        }

    @property
    def needs_source(self) -> bool:
        """Whether some tool runs files that are not named yet."""
        return any(_runs_files(tool) and "source" not in tool.runtime for tool in self.tools)

    @property
    def named_sources(self) -> dict[str, str]:
        """The sources its tools name, each with the path of where."""
        return {
            tool.runtime["source"]: f"spec.tools[{index}].runtime.source"
            for index, tool in enumerate(self.tools)
            if "source" in tool.runtime
        }

    def with_source(self, digest: str) -> "Manifest":
        """The same manifest, its files named."""
        tools = [
            replace(tool, runtime=_with_source(tool.runtime, digest)) if _runs_files(tool) else tool
            for tool in self.tools
        ]
        return replace(self, tools=tuple(tools))


def parse(document: Any) -> Manifest:
    """The manifest in a document, or a ManifestError that names the first thing wrong with it."""
    top = top_of(document)
    metadata = metadata_of(top)
    name = name_of(metadata)
    tools = tuple(tool_of(item, path, name) for path, item in items_of(top))
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        other = seen.setdefault(tool.name.lower(), index)
        if other != index:
            raise ManifestError(
                f"spec.tools[{index}].name", f"is the name of spec.tools[{other}] (case does not count)"
            )
    return Manifest(
        name=name,
        version=version_of(metadata),
        title=metadata.text("title", name),
        description=metadata.text("description", "", most=MAX_DESCRIPTION),
        tools=tools,
    )


def toolkit_in(document: Any) -> str:
    """The name of the toolkit that a document is about; nothing else in it is judged."""
    return name_of(metadata_of(top_of(document)))


def top_of(document: Any) -> Fields:
    """The outermost fields of a document that says it is a manifest."""
    fields = Fields(document, "", ("apiVersion", "kind", "metadata", "spec"))
    fields.choice("apiVersion", (API_VERSION,))
    fields.choice("kind", ("Toolkit",))
    return fields


def metadata_of(top: Fields) -> Fields:
    """What names and describes the version."""
    return Fields(top.need("metadata"), "metadata", ("name", "version", "title", "description"))


def items_of(top: Fields) -> list[tuple[str, Any]]:
    """The tools as they are, each with its path; there is at least one."""
    items = Fields(top.need("spec"), "spec", ("tools",)).items("tools", most=MAX_TOOLS)
    if not items:
        raise ManifestError("spec.tools", "a toolkit has at least one tool")
    return items


def tool_of(value: Any, path: str, toolkit: str) -> ToolManifest:
    """One tool of a document, or a ManifestError that names the first thing wrong with it."""
    fields = Fields(value, path, _TOOL_FIELDS)
    name = name_of(fields)
    if len(toolkit) + 1 + len(name) > MAX_FLAT_NAME:
        raise ManifestError(fields.at("name"), f"{toolkit}_{name} is longer than {MAX_FLAT_NAME} characters")
    risk = RiskLevel.from_word(fields.choice("risk", [level.word for level in RiskLevel], "low"))
    takes = fields.raw("input", no_parameters())
    gives = value.get("output", {})
    if isinstance(gives, bool):
        raise ManifestError(fields.at("output"), "must be an object: {} for anything, or null for no output")
    for where, found in (("input", input_problems(takes)), ("output", [] if gives is None else problems(gives))):
        if found:
            raise ManifestError(_below(fields.at(where), found[0].path), found[0].reason)
    runtime = bindings.runtime(fields.need("runtime"), fields.at("runtime"), risk)
    return ToolManifest(
        name=name,
        title=fields.text("title", ""),
        description=fields.text("description", "", most=MAX_DESCRIPTION),
        risk=risk,
        capabilities=_capabilities(fields),
        idempotency=fields.choice("idempotency", Tool.Idempotency.values, Tool.Idempotency.NON_IDEMPOTENT.value),
        input=takes,
        output=gives,
        non_inferrable=_non_inferrable(fields, takes),
        annotations=_annotations(fields),
        requirements=bindings.requirements(fields.raw("requirements"), fields.at("requirements")),
        runtime=runtime,
        auth=bindings.auth(fields.raw("auth"), fields.at("auth"), runtime["type"]),
        icons=icons(fields),
    )


def name_of(fields: Fields) -> str:
    """The name of a toolkit or a tool."""
    value = fields.text("name", most=62)
    if not _NAME.fullmatch(value):
        raise ManifestError(fields.at("name"), "must be an ASCII letter, then ASCII letters, digits and underscores")
    return value


def version_of(fields: Fields) -> tuple[int, int, int]:
    """The three numbers of a version."""
    value = fields.need("version")
    match = _VERSION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ManifestError(fields.at("version"), "must be three whole numbers, such as 1.0.0")
    return int(match[1]), int(match[2]), int(match[3])


def _capabilities(fields: Fields) -> tuple[str, ...]:
    found = fields.texts("capabilities")
    for index, name in enumerate(found):
        if len(name) > 64 or not _CAPABILITY.fullmatch(name):
            raise ManifestError(f"{fields.at('capabilities')}[{index}]", "must be dotted lower-case words: mail.send")
    return tuple(sorted(found))


def _non_inferrable(fields: Fields, takes: Mapping[str, Any]) -> tuple[str, ...]:
    found = fields.texts("nonInferrable")
    for index, name in enumerate(found):
        if name not in takes.get("properties", {}):
            raise ManifestError(f"{fields.at('nonInferrable')}[{index}]", "is not a parameter of this tool")
    return tuple(sorted(found))


def _annotations(fields: Fields) -> dict[str, Any]:
    value = fields.raw("annotations", {})
    path = fields.at("annotations")
    if not isinstance(value, Mapping):
        raise ManifestError(path, "must be a mapping of fields")
    for name, hint in value.items():
        text_at(f"{path}.{name}", name, most=100)
        if isinstance(hint, str):
            text_at(f"{path}.{name}", hint, most=1000, is_empty_allowed=True)
        elif not isinstance(hint, bool | int | float):
            raise ManifestError(f"{path}.{name}", "must be a text, a number, true or false")
    return dict(value)


def _runs_files(tool: ToolManifest) -> bool:
    return tool.runtime["type"] in bindings.WITH_SOURCE


def _with_source(runtime: dict[str, Any], digest: str) -> dict[str, Any]:
    """The binding with its files named, the field always at the same place."""
    shared = {name: runtime[name] for name in ("dispatch", "timeout", "retry")}
    options = {name: value for name, value in runtime.items() if name not in shared}
    return {**options, "source": digest, **shared}


def _below(path: str, pointer: str) -> str:
    """A JSON pointer inside a schema as the rest of a manifest's path."""
    for step in pointer.split("/")[1:]:
        path += f"[{step}]" if step.isdigit() else f".{step.replace('~1', '/').replace('~0', '~')}"
    return path


def _sha256(value: Any) -> str:
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()
