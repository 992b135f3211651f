"""A manifest that someone hands in: who may, what it did, and what it would do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction

from registry import access, manifestfiles
from registry.comparisons import Comparison, against_predecessor
from registry.manifests import ManifestError, import_manifest, stored_as
from registry.manifestshape import Manifest, parse, toolkit_in
from registry.models import Toolkit, ToolkitVersion

Given = Mapping[str, Any] | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What handing in a manifest did, or in a trial would do."""

    version: ToolkitVersion
    name: str
    outcome: str  # created | updated | unchanged
    comparison: Comparison | None  # with the version before it; None for a first version
    difference: list[str] | None  # the lines that differ from that version


def upload(given: Given, *, by: User, only: ToolkitVersion | None = None, is_trial: bool = False) -> Upload:
    """Writes a draft if this person may; a trial does all of it and then takes it back.

    Raises ManifestError for what is wrong with the manifest and PermissionDenied for what is not theirs to write.
    With `only`, the manifest must be the one of that version.
    """
    _refuse_others(_manifest(given, by), only)
    with transaction.atomic():
        result = import_manifest(given, by=by)
        comparison = against_predecessor(result.version)
        done = Upload(
            version=result.version,
            name=str(result.version),
            outcome=result.outcome,
            comparison=comparison,
            difference=comparison.difference() if comparison is not None else None,
        )
        if is_trial:
            transaction.set_rollback(True)
    return done


def look(manifest: Manifest, *, by: User, only: ToolkitVersion | None = None) -> ToolkitVersion | None:
    """The version that a manifest would change, None if it would make one; only reads, and refuses like `upload`."""
    _refuse_strangers(manifest.name, by)
    _refuse_others(manifest, only)
    return stored_as(manifest)


def _manifest(given: Given, by: User) -> Manifest:
    """The manifest that was given; of a toolkit that is not theirs to write no schema is judged."""
    file = manifestfiles.ManifestFile(document=given) if isinstance(given, Mapping) else manifestfiles.read(given)
    try:
        _refuse_strangers(toolkit_in(file.document), by)
        return parse(file.document)
    except ManifestError as error:
        raise file.located(error) from None


def _refuse_others(manifest: Manifest, only: ToolkitVersion | None) -> None:
    if only is not None and str(manifest) != str(only):
        raise ManifestError("metadata", f"this page edits {only}, and the manifest is {manifest}")


def _refuse_strangers(name: str, by: User) -> None:
    toolkit = Toolkit.objects.filter(name__iexact=name).first()
    if toolkit is None:
        if not by.has_perm("registry.add_toolkit"):
            raise PermissionDenied("Making a toolkit needs the permission registry.add_toolkit.")
    elif not access.may(by, "publish", toolkit):
        raise PermissionDenied(f"Writing versions of {name} needs the permission 'publish' on it.")
