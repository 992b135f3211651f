"""All that is wrong with a manifest's text, for who is still writing it; an import names the first thing only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from registry import manifestfiles
from registry.fields import Fields, ManifestError
from registry.manifestfiles import ManifestFile
from registry.manifestshape import Manifest, items_of, metadata_of, name_of, parse, tool_of, top_of, version_of

MOST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A text that was read once: its manifest, or its faults with their lines."""

    file: ManifestFile
    manifest: Manifest | None = None
    faults: tuple[ManifestError, ...] = ()


def reading(text: bytes) -> Reading:
    """At most one fault for each field of the head and one for each tool; none if an import would take the text."""
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
    yield from filter(None, (_fault(read, top) for read in (_name, _version, items_of)))
    if _fault(items_of, top) is None:
        for path, item in items_of(top):
            if (fault := _fault(tool_of, item, path, "")) is not None:
                yield fault


def _fault(read: Callable[..., Any], *given: Any) -> ManifestError | None:
    try:
        read(*given)
    except ManifestError as error:
        return error
    return None


def _name(top: Fields) -> str:
    return name_of(metadata_of(top))


def _version(top: Fields) -> tuple[int, int, int]:
    return version_of(metadata_of(top))
