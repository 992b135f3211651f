"""A toolkit manifest to rows and back; running it twice changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from audit import trail
from registry import sources, toolkits
from registry.actors import actor
from registry.fields import ManifestError
from registry.manifestfiles import ManifestFile, in_folder, read, read_file
from registry.manifestshape import Manifest, ToolManifest, parse
from registry.models import Capability, FlatName, Source, Tool, Toolkit, ToolkitVersion
from registry.risk import RiskLevel

__all__ = [
    "ImportResult",
    "ManifestError",
    "export_manifest",
    "import_folder",
    "import_manifest",
    "manifest_of",
    "stored_as",
]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A version as it is after an import, and what the import did: created, updated or unchanged."""

    version: ToolkitVersion
    outcome: str


def import_manifest(manifest: Mapping[str, Any] | bytes | str | Path, *, by: User | None) -> ImportResult:
    """One version from a document, its text, or its file; all of it is written or nothing.

    `by` is the person who imports, None at the shell. A file's folder brings the code of its Python tools; a document
    without a folder names code that the toolkit already has.
    """
    if isinstance(manifest, Path):
        return _import_file(read_file(manifest), by=by)
    if isinstance(manifest, Mapping):
        return _import_file(ManifestFile(document=manifest), by=by)
    return _import_file(read(manifest.encode() if isinstance(manifest, str) else manifest), by=by)


@transaction.atomic
def import_folder(folder: Path, *, by: User | None) -> list[ImportResult]:
    """Every manifest of a folder by version, or else the version that its Python tools make; all or nothing."""
    return [_import_file(file, by=by) for file in in_folder(folder)]


def export_manifest(version: ToolkitVersion) -> dict[str, Any]:
    """The document that describes a version completely; importing it changes nothing."""
    return manifest_of(version).document()


def manifest_of(version: ToolkitVersion) -> Manifest:
    """A version as its rows describe it."""
    tools = Tool.objects.filter(version=version).prefetch_related("capabilities").order_by("position", "name")
    return Manifest(
        name=version.toolkit.name,
        version=(version.major, version.minor, version.patch),
        title=version.title,
        description=version.description,
        tools=tuple(
            ToolManifest(
                name=tool.name,
                title=tool.title,
                description=tool.description,
                risk=RiskLevel(tool.risk),
                capabilities=tuple(sorted(capability.name for capability in tool.capabilities.all())),
                idempotency=tool.idempotency,
                input=tool.input_schema,
                output=tool.output_schema,
                non_inferrable=tuple(tool.non_inferrable),
                annotations=tool.annotations,
                requirements=tool.requirements,
                runtime=tool.runtime,
                auth=tool.auth,
                icons=tuple(tool.icons or ()),
            )
            for tool in tools
        ),
    )


def stored_as(manifest: Manifest) -> ToolkitVersion | None:
    """The version that a manifest without a folder would change, None if it would make one; only reads.

    Raises ManifestError where an import would find something against it.
    """
    toolkit = _spelled_so(Toolkit.objects.filter(name__iexact=manifest.name).first(), manifest)
    _with_files(manifest, ManifestFile(document=None), toolkit or Toolkit(name=manifest.name))
    _refuse_taken_names(manifest)
    major, minor, patch = manifest.version
    versions = ToolkitVersion.objects.select_related("toolkit")
    found = versions.filter(toolkit__name=manifest.name, major=major, minor=minor, patch=patch).first()
    if found is not None and not found.is_draft and manifest_of(found).digest != manifest.digest:
        raise _is_taken(found)
    return found


def _import_file(file: ManifestFile, *, by: User | None) -> ImportResult:
    try:
        manifest = parse(file.document)
        with transaction.atomic():
            return _write(manifest, file, by)
    except ManifestError as error:
        raise file.located(error) from None
    except sources.SourceError as error:
        raise file.located(ManifestError("", str(error))) from None
    except IntegrityError as error:  # another import was faster, or the database knows better
        raise file.located(ManifestError("", str(error).splitlines()[0])) from error


def _write(manifest: Manifest, file: ManifestFile, by: User | None) -> ImportResult:
    toolkit = _toolkit(manifest, by)
    manifest, source = _with_files(manifest, file, toolkit)
    _refuse_taken_names(manifest)
    major, minor, patch = manifest.version
    version = ToolkitVersion.objects.select_for_update(of=("self",)).select_related("toolkit")
    found = version.filter(toolkit=toolkit, major=major, minor=minor, patch=patch).first()
    if found is not None and manifest_of(found).digest == manifest.digest:
        return ImportResult(found, "unchanged")
    if found is not None and not found.is_draft:
        raise _is_taken(found)
    outcome = "created" if found is None else "updated"
    draft = found or ToolkitVersion(toolkit=toolkit, major=major, minor=minor, patch=patch, created_by=by)
    draft.title, draft.description = manifest.title, manifest.description
    draft.digest, draft.risk = manifest.digest, manifest.risk
    draft.source, draft.edited_by = source, by
    draft.review_requested_at = draft.reviewed_by = None  # whoever looked has seen something else
    draft.save()
    _replace_tools(draft, manifest)
    detail = {"digest": manifest.digest, "risk": manifest.risk.word, "tools": [tool.name for tool in manifest.tools]}
    trail.record("version", str(draft), f"version.{outcome}", actor=actor(by) if by else "shell", detail=detail)
    return ImportResult(draft, outcome)


def _toolkit(manifest: Manifest, by: User | None) -> Toolkit:
    """The toolkit of a manifest, made if it is new, held until the import is through."""
    held = Toolkit.objects.select_for_update(of=("self",)).filter(name__iexact=manifest.name).first()
    return _spelled_so(held, manifest) or _new_toolkit(manifest, by)


def _spelled_so(toolkit: Toolkit | None, manifest: Manifest) -> Toolkit | None:
    if toolkit is not None and toolkit.name != manifest.name:
        raise ManifestError("metadata.name", f"this toolkit is spelled {toolkit.name}")
    return toolkit


def _is_taken(version: ToolkitVersion) -> ManifestError:
    return ManifestError("metadata.version", f"{version} is {version.state} with another content; choose a new version")


def _new_toolkit(manifest: Manifest, by: User | None) -> Toolkit:
    title, description = manifest.title, manifest.description
    if by is None:
        trail.record("toolkit", manifest.name, "toolkit.created", actor="shell", detail={"title": title, "owner": None})
        return Toolkit.objects.create(name=manifest.name, title=title, description=description)
    try:
        return toolkits.create(manifest.name, by=by, title=title, description=description)
    except toolkits.ToolkitError as error:
        raise ManifestError("metadata.name", str(error)) from None


def _with_files(manifest: Manifest, file: ManifestFile, toolkit: Toolkit) -> tuple[Manifest, Source | None]:
    """The manifest with its code named, and that code."""
    named = manifest.named_sources
    if len(named) > 1 or (named and manifest.needs_source):
        raise ManifestError(next(iter(named.values())), "all tools of a version run the same source")
    if not named and not manifest.needs_source:
        return manifest, None
    wanted, path = next(iter(named.items()), (None, _first_without_source(manifest)))
    if wanted is not None and (known := Source.objects.filter(toolkit__name=manifest.name, digest=wanted).first()):
        return manifest, known
    if file.folder is None:
        reason = "is not known to this toolkit" if wanted else "is required where no folder brings the files"
        raise ManifestError(path, f"{reason}; import the folder once")
    source = sources.keep(toolkit, sources.files_of(file.folder))
    if wanted is not None and source.digest != wanted:
        raise ManifestError(path, f"the files beside the manifest are {source.digest}")
    _refuse_missing_files(manifest, file.folder)
    return manifest.with_source(source.digest), source


def _first_without_source(manifest: Manifest) -> str:
    index = next(i for i, tool in enumerate(manifest.tools) if tool.runtime["type"] in ("python", "wasm"))
    return f"spec.tools[{index}].runtime.source"


def _refuse_missing_files(manifest: Manifest, folder: Path) -> None:
    for index, tool in enumerate(manifest.tools):
        if tool.runtime["type"] == "python":
            module = folder.joinpath(*tool.runtime["entrypoint"].split(":")[0].split("."))
            if not module.with_suffix(".py").is_file() and not (module / "__init__.py").is_file():
                raise ManifestError(
                    f"spec.tools[{index}].runtime.entrypoint", "names a module that is not in the folder"
                )
        elif tool.runtime["type"] == "wasm" and not (folder / tool.runtime["module"]).is_file():
            raise ManifestError(f"spec.tools[{index}].runtime.module", "is not in the folder")


def _refuse_taken_names(manifest: Manifest) -> None:
    """Says which tool's flat name another toolkit uses; the database would refuse it anyway, but cannot say where."""
    flat = {f"{manifest.name}_{tool.name}".lower(): index for index, tool in enumerate(manifest.tools)}
    for held in FlatName.objects.filter(name__in=flat).exclude(toolkit__name=manifest.name).select_related("toolkit"):
        tools = Tool.objects.filter(version__toolkit=held.toolkit).values_list("name", flat=True)
        if any(f"{held.toolkit.name}_{name}".lower() == held.name for name in tools):
            reason = f"its flat name {held.name} belongs to the toolkit {held.toolkit.name}"
            raise ManifestError(f"spec.tools[{flat[held.name]}].name", reason)


def _replace_tools(version: ToolkitVersion, manifest: Manifest) -> None:
    """Writes the tools of a draft anew."""
    version.tools.all().delete()
    rows = Tool.objects.bulk_create(
        Tool(
            version=version,
            position=position,
            name=tool.name,
            title=tool.title,
            description=tool.description,
            risk=tool.risk,
            idempotency=tool.idempotency,
            input_schema=tool.input,
            output_schema=tool.output,
            non_inferrable=list(tool.non_inferrable),
            annotations=tool.annotations,
            requirements=tool.requirements,
            runtime=tool.runtime,
            auth=tool.auth,
            icons=list(tool.icons) or None,
            digest=manifest.tool_digest(tool),
        )
        for position, tool in enumerate(manifest.tools)
    )
    known = {name: Capability.objects.get_or_create(name=name)[0] for name in _capabilities(manifest)}
    link = Tool.capabilities.through
    link.objects.bulk_create(
        link(tool=row, capability=known[name])
        for row, tool in zip(rows, manifest.tools, strict=True)
        for name in tool.capabilities
    )


def _capabilities(manifest: Manifest) -> list[str]:
    return sorted({name for tool in manifest.tools for name in tool.capabilities})
