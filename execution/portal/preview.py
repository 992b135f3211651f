"""Preview: what a version would change and for whom, before anything is stored and again before anyone agrees."""

from dataclasses import dataclass

from django.db.models import QuerySet

from execution.portal.affected import Affected, affected
from registry.comparisons import callable_below
from registry.compatibility import Verdict, compare_manifests
from registry.manifestchange import ToolChange, head_rows, tool_changes
from registry.manifests import manifest_of
from registry.manifestshape import Manifest
from registry.models import Tool, ToolkitVersion
from registry.publishing import review_reasons
from registry.sidebyside import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A version beside the one before it that callers may be using."""

    manifest: Manifest
    old: ToolkitVersion | None  # None: a first version
    verdict: Verdict | None
    changes: list[ToolChange]
    head: list[Row]  # lines of title and description that differ
    reasons: list[str]  # why a second person has to agree; none if nobody has to
    affected: Affected

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many tools are changed, added and removed."""
        kinds = [change.kind for change in self.changes]
        return [(kind, kinds.count(kind)) for kind in ("changed", "added", "removed")]

    @property
    def hit(self) -> int:
        """Named callers of tools that will not work as before."""
        return sum(bool(caller.hit) for caller in self.affected.callers)


def preview(manifest: Manifest) -> Preview:
    """The preview of a manifest, stored or not; only reads."""
    old = callable_below(manifest.name, manifest.version)
    before = manifest_of(old) if old is not None else None
    verdict = compare_manifests(before, manifest) if before is not None else None
    broken = {reason.partition(":")[0] for reason in verdict.reasons} if verdict and verdict.is_breaking else set()
    return Preview(
        manifest=manifest,
        old=old,
        verdict=verdict,
        changes=tool_changes(before, manifest),
        head=head_rows(before, manifest) if before is not None else [],
        reasons=review_reasons(manifest),
        affected=affected(_tools_of(manifest.name), broken=broken),
    )


def _tools_of(toolkit: str) -> QuerySet[Tool]:
    """The tools of every version that can be called: whoever names no version moves to the new one."""
    return Tool.objects.callable().filter(version__toolkit__name=toolkit)
