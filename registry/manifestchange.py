"""What a new version does to each tool of the one before: added, removed, or changed, with the lines that differ."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from registry import yamlwriting
from registry.manifestshape import Manifest, ToolManifest
from registry.sidebyside import MAX_LINES, Row, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChange:
    """One tool that is not as it was."""

    name: str
    kind: str  # added | removed | changed
    risk: str
    fields: tuple[str, ...] = ()  # of a changed one: which of its fields differ
    rows: list[Row] | None = field(default=None, compare=False)  # None: there is too much to be shown


def tool_changes(old: Manifest | None, new: Manifest) -> list[ToolChange]:
    """Changed tools first, then added and removed ones, in the order of their manifest; without an old, all are new."""
    before = {tool.name.lower(): tool for tool in (old.tools if old is not None else ())}
    after = {tool.name.lower(): tool for tool in new.tools}
    changed = list(_changed(before, after))
    added = [_whole(tool, "added") for name, tool in after.items() if name not in before]
    removed = [_whole(tool, "removed") for name, tool in before.items() if name not in after]
    return changed + added + removed


def head_rows(old: Manifest, new: Manifest) -> list[Row]:
    """The lines that differ in title and description of the version."""
    return rows(*(yamlwriting.write(_head(each)) for each in (old, new))) or []


def _changed(before: dict[str, ToolManifest], after: dict[str, ToolManifest]) -> Iterator[ToolChange]:
    left = MAX_LINES  # for all tools together: writing and comparing them takes time
    for name, tool in after.items():
        if name not in before or before[name] == tool:
            continue
        old, new = before[name].document(), tool.document()
        fields = tuple(key for key in {**old, **new} if old.get(key) != new.get(key) or (key in old) != (key in new))
        told = None
        if left > 0:
            texts = yamlwriting.write(old), yamlwriting.write(new)
            left -= sum(text.count("\n") for text in texts)
            told = rows(*texts)
        yield ToolChange(name=tool.name, kind="changed", risk=tool.risk.word, fields=fields, rows=told)


def _whole(tool: ToolManifest, kind: str) -> ToolChange:
    return ToolChange(name=tool.name, kind=kind, risk=tool.risk.word)


def _head(manifest: Manifest) -> dict[str, str]:
    return {"title": manifest.title, "description": manifest.description}
