"""Two versions of a toolkit laid side by side: the verdict, and the lines that differ."""

from dataclasses import dataclass

from registry.compatibility import Verdict, compare
from registry.manifesttext import manifest_text
from registry.models import ToolkitVersion
from registry.sidebyside import Row, rows, unified


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a caller of the old version meets in the new one."""

    old: ToolkitVersion
    new: ToolkitVersion
    verdict: Verdict

    def rows(self) -> list[Row] | None:
        """The manifests side by side; None if they are too long for that."""
        return rows(manifest_text(self.old), manifest_text(self.new))

    def difference(self) -> list[str] | None:
        """The manifests' differing lines one below the other; None if they are too long for that."""
        return unified(manifest_text(self.old), manifest_text(self.new))


def between(old: ToolkitVersion, new: ToolkitVersion) -> Comparison:
    """The comparison of two versions."""
    return Comparison(old=old, new=new, verdict=compare(old, new))


def against_predecessor(version: ToolkitVersion) -> Comparison | None:
    """The comparison with the version before; None for a first one."""
    old = predecessor(version)
    return None if old is None else between(old, version)


def predecessor(version: ToolkitVersion) -> ToolkitVersion | None:
    """The highest version below this one that callers may be using."""
    return callable_below(version.toolkit.name, (version.major, version.minor, version.patch))


def callable_below(toolkit: str, own: tuple[int, int, int]) -> ToolkitVersion | None:
    """The same for a version that is not stored."""
    others = ToolkitVersion.objects.callable().filter(toolkit__name=toolkit).select_related("toolkit")
    lower = [other for other in others if (other.major, other.minor, other.patch) < own]
    return max(lower, key=lambda other: (other.major, other.minor, other.patch), default=None)
