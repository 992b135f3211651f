"""All that is wrong with a manifest's text, for who is still writing it; an import names the first thing only."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from registry import manifestfiles
from registry.fields import Fields, ManifestError
from registry.manifestshape import items_of, metadata_of, name_of, parse, tool_of, top_of, version_of

MOST = 50


def faults(text: bytes) -> list[ManifestError]:
    """At most one for each field of the head and one for each tool, with their lines; none if an import takes it."""
    try:
        file = manifestfiles.read(text)
    except ManifestError as error:
        return [error]
    found = {str(fault): fault for fault in islice(_faults(file.document), MOST)}
    return sorted(map(file.located, found.values()), key=lambda fault: fault.line or 0)


def _faults(document: Any) -> Iterator[ManifestError]:
    first = _fault(parse, document)
    if first is None:
        return
    yield first  # what an import would say
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
