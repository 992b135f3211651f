"""Where manifests come from: a text, a file, or a folder; YAML, JSON or Python."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from placet.errors import ToolkitError
from placet.toolkit import collect
from registry import sources, yamlreading
from registry.fields import ManifestError
from registry.manifestshape import parse
from registry.strictjson import StrictJSONError
from registry.strictjson import loads as load_json
from registry.yamlreading import Lines, YAMLError

MAX_BYTES = 1_000_000


class ManifestFileError(ManifestError):
    """A ManifestError that also names the file."""

    def __init__(self, path: str, reason: str, line: int | None, file: str) -> None:
        super().__init__(path, reason, line)
        self.file = file

    def __str__(self) -> str:
        return f"{self.file}: {super().__str__()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A document and what is known about where it stood."""

    document: Any
    name: str = ""
    folder: Path | None = None
    lines: Lines | None = None
    json: bytes = b""  # the text of a document whose lines nobody has counted yet

    def located(self, error: ManifestError) -> ManifestError:
        """The same error with its line, or that of the nearest place around it, and the file."""
        line = error.line
        if line is None and error.path and (lines := self.with_lines().lines) is not None:
            line = lines.nearest(error.path)
        if self.name:
            return ManifestFileError(error.path, error.reason, line, self.name)
        return ManifestError(error.path, error.reason, line)

    def with_lines(self) -> "ManifestFile":
        """The same with its lines counted, for who locates more than one error."""
        return replace(self, lines=_lines_of_json(self.json), json=b"") if self.json else self


def read(text: bytes) -> ManifestFile:
    """The document of a text: JSON if it starts with a brace, else YAML."""
    if text.lstrip()[:1] == b"{":
        try:
            return ManifestFile(document=load_json(text, max_bytes=MAX_BYTES), json=text)
        except StrictJSONError as error:
            raise ManifestError("", error.message, error.line) from None
    try:
        document, lines = yamlreading.read(text)
    except YAMLError as error:
        raise ManifestError("", error.reason, error.line) from None
    return ManifestFile(document=document, lines=lines)


def read_file(path: Path) -> ManifestFile:
    """The document of a file; the code of its Python tools lies beside it."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ManifestError("", f"is larger than {MAX_BYTES} bytes")
        file = read(path.read_bytes())
    except OSError as error:
        raise ManifestFileError("", error.strerror or "cannot be read", None, str(path)) from None
    except ManifestError as error:
        raise ManifestFileError(error.path, error.reason, error.line, str(path)) from None
    return replace(file, name=str(path), folder=path.parent)


def in_folder(folder: Path) -> list[ManifestFile]:
    """The manifests of a folder in the order of their versions, or else the one that its Python tools make."""
    files = [read_file(path) for path in sorted(folder.iterdir()) if _is_manifest(path)]
    if not files:
        return [_collected(folder)]
    ordered: dict[tuple[str, tuple[int, int, int]], ManifestFile] = {}
    for file in files:
        try:
            manifest = parse(file.document)
        except ManifestError as error:
            raise file.located(error) from None
        other = ordered.setdefault((manifest.name.lower(), manifest.version), file)
        if other is not file:
            raise file.located(ManifestError("metadata.version", f"{manifest} also stands in {other.name}"))
    return [ordered[key] for key in sorted(ordered)]


def _lines_of_json(text: bytes) -> Lines | None:
    """JSON is YAML as well, and our reader of that one counts lines; what it cannot read has none."""
    try:
        return yamlreading.read(text)[1]
    except YAMLError:
        return None


def _is_manifest(path: Path) -> bool:
    if path.suffix not in {".yaml", ".yml", ".json"} or not path.is_file():
        return False
    with path.open("rb") as file:
        return sources.is_manifest(path, file.read(MAX_BYTES))


def _collected(folder: Path) -> ManifestFile:
    """The manifest of a folder of Python tools; their code is loaded in a process of its own."""
    try:
        return ManifestFile(document=collect(folder), name=str(folder), folder=folder)
    except ToolkitError as error:
        raise ManifestFileError("", str(error), None, str(folder)) from None
