"""All that is wrong with a manifest's text, for who is still writing it; an import names the first thing only."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

from registry import manifestfiles
from registry.fields import Fields, ManifestError
from registry.manifestfiles import ManifestFile
from registry.manifestshape import (
    MAX_DESCRIPTION,
    Manifest,
    items_of,
    metadata_of,
    name_of,
    parse,
    tool_of,
    top_of,
    version_of,
)

MOST = 50
_WHOLE = ("input", "output")  # of a schema one fault is told; what follows from it would confuse
# What stands in for a field that has to be there, while the rest is read.
_GOOD: dict[str, Any] = {
    "name": "Name",
    "version": "1.0.0",
    "runtime": {"type": "http", "endpoint": "https://example.invalid"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text that was read once: its manifest, or its faults with their lines."""

    file: ManifestFile
    manifest: Manifest | None = None
    faults: tuple[ManifestError, ...] = ()


def reading(text: bytes) -> Reading:
    """Every fault of the head and of each tool, one for each field; none if an import would take the text."""
    try:
        file = manifestfiles.read(text)
    except ManifestError as error:
        return Reading(file=ManifestFile(document=None), faults=(error,))
    try:
        return Reading(file=file, manifest=parse(file.document))
    except ManifestError as error:
        first = error  # what an import would say
    found = {str(fault): fault for fault in (first, *islice(_others(file.document), MOST - 1))}
    file = file.with_lines()
    located = sorted(map(file.located, found.values()), key=lambda fault: fault.line or 0)
    return Reading(file=file, faults=tuple(located))


def _others(document: Any) -> Iterator[ManifestError]:
    try:
        top = top_of(document)
    except ManifestError:
        return
    if top.has("metadata"):
        yield from _all(_head, top.raw("metadata"), "metadata")
    try:
        items = items_of(top)
    except ManifestError as error:
        yield error
        return
    for path, item in items:
        yield from _all(_tool, item, path)


def _all(read: Callable[[Any, str], object], value: Any, path: str) -> Iterator[ManifestError]:
    """Every fault of one part: what is found wrong is taken out or made good in a copy, which is then read again."""
    value, seen = deepcopy(value), set[str]()
    for _ in range(2 * MOST):
        try:
            read(value, path)
        except ManifestError as error:
            if error.path not in seen:
                yield error
            taken = _mend(value, error.path.removeprefix(path)) if isinstance(value, dict) else None
            if taken is None:
                return
            seen |= {error.path, path + taken}  # what we took out is not missing
        else:
            return


def _mend(part: dict[Any, Any], place: str) -> str | None:
    """Take out the smallest field that holds the fault, or put a good one where one is needed; which, or None."""
    around, taken = part, ""
    while (key := _step(around, place)) is not None:
        taken, place = f"{taken}.{key}", place[len(str(key)) + 1 :]
        inner = around[key]
        if taken[1:] in _WHOLE or not isinstance(inner, dict) or _step(inner, place) is None:
            break
        around = inner
    if key is not None:
        del around[key]
        if taken == ".input":
            part.pop("nonInferrable", None)  # it names parameters, and those are gone
        return taken
    missing = place.removeprefix(".")
    if missing not in _GOOD:
        return None
    part[missing] = deepcopy(_GOOD[missing])
    return f".{missing}"


def _step(fields: dict[Any, Any], place: str) -> Any:
    """The field through which a path goes on; the longest, as names may hold dots."""
    names = [name for name in fields if f"{place}.".startswith((f".{name}.", f".{name}["))]
    return max(names, key=lambda name: len(str(name)), default=None)


def _head(value: Any, path: str) -> None:
    fields = metadata_of(Fields({path: value}, "", (path,)))
    name_of(fields)
    version_of(fields)
    fields.text("title", "")
    fields.text("description", "", most=MAX_DESCRIPTION)


def _tool(value: Any, path: str) -> None:
    tool_of(value, path, "")
