"""ToolRef to the tool it means today, or None; asked once per revision."""

from collections.abc import Collection
from dataclasses import dataclass, field

from django.db.models import QuerySet, Value
from django.db.models.functions import Concat, Lower

from registry import revision
from registry.models import Tool, ToolkitVersion
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec, spec_of

MAX_REMEMBERED = 20_000  # names that strangers ask for must not fill the memory


@dataclass(slots=True)
class _Book:
    """What was looked up under one revision."""

    revision: int
    found: dict[ToolRef, ToolSpec | None] = field(default_factory=dict)
    listed: dict[frozenset[int], tuple[ToolSpec, ...]] = field(default_factory=dict)


_book = _Book(revision=-1)


def resolve(ref: ToolRef) -> ToolSpec | None:
    """The published or deprecated tool a reference means, without regard to case.

    Without a version it is the numerically highest published one that has the tool, or else the highest deprecated one.
    """
    book = _current_book()
    try:
        return book.found[ref]
    except KeyError:
        pass
    if len(book.found) >= MAX_REMEMBERED:
        book.found.clear()
    spec = book.found[ref] = _find(ref)
    return spec


def callable_tools(toolkit_ids: Collection[int]) -> tuple[ToolSpec, ...]:
    """Every published or deprecated tool of these toolkits, ordered by name, then by version."""
    book = _current_book()
    key = frozenset(toolkit_ids)
    tools = book.listed.get(key)
    if tools is None:
        if len(book.listed) >= 100:
            book.listed.clear()
        rows = _callable().filter(version__toolkit_id__in=key) if key else ()
        specs = [(_order(tool), _frozen_spec(tool)) for tool in rows]
        tools = book.listed[key] = tuple(spec for _, spec in sorted(specs, key=lambda pair: pair[0]))
    return tools


def _current_book() -> _Book:
    global _book
    number = revision.current()
    book = _book
    if book.revision != number:
        book = _book = _Book(revision=number)
    return book


def _find(ref: ToolRef) -> ToolSpec | None:
    tools = _named(ref)
    if ref.version is not None:
        major, minor, patch = ref.version
        tools = tools.filter(version__major=major, version__minor=minor, version__patch=patch)
    best = max(tools, key=_preference, default=None)
    return None if best is None else _frozen_spec(best)


def _named(ref: ToolRef) -> QuerySet[Tool]:
    toolkit, tool = "version__toolkit__name", ref.tool.lower()
    if not ref.toolkit:
        holder = _callable().filter(version__toolkit__flat_names=tool)
        return holder.annotate(flat=Lower(Concat(toolkit, Value("_"), "name"))).filter(flat=tool)
    named = _callable().annotate(toolkit_key=Lower(toolkit), key=Lower("name"))
    return named.filter(toolkit_key=ref.toolkit.lower(), key=tool)


def _callable() -> QuerySet[Tool]:
    return Tool.objects.callable().select_related("version__toolkit").prefetch_related("capabilities").order_by()


def _preference(tool: Tool) -> tuple[bool, int, int, int]:
    version = tool.version
    return version.state == ToolkitVersion.State.PUBLISHED, version.major, version.minor, version.patch


def _order(tool: Tool) -> tuple[str, int, int, int]:
    version = tool.version
    return f"{version.toolkit.name}.{tool.name}".lower(), version.major, version.minor, version.patch


_specs: dict[tuple[object, ...], ToolSpec] = {}


def _frozen_spec(tool: Tool) -> ToolSpec:
    """The spec of a published tool outlives revisions: its content never changes, only its state does."""
    version = tool.version
    lifecycle = (version.state, version.sunset_on)
    key = (tool.pk, *lifecycle, tool.digest, version.digest, version.toolkit_id, version.edited_by_id)
    spec = _specs.get(key)
    if spec is None:
        if len(_specs) >= MAX_REMEMBERED:
            _specs.clear()
        spec = _specs[key] = spec_of(tool)
    return spec
