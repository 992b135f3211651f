"""Two versions to a verdict, breaking or safe, with reasons."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from registry.manifests import manifest_of
from registry.manifestshape import Manifest, ToolManifest
from registry.models import Tool, ToolkitVersion
from registry.schemachange import Comparison

_PROMISES = [kind.value for kind in Tool.Idempotency]  # from the strongest to none


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether who calls the old version can call the new one as before; each reason names tool and parameter."""

    level: str  # breaking | safe
    reasons: list[str]

    @property
    def is_breaking(self) -> bool:
        return self.level == "breaking"


def compare(old: ToolkitVersion, new: ToolkitVersion) -> Verdict:
    """What the new version means for the callers of the old one."""
    return compare_manifests(manifest_of(old), manifest_of(new))


def compare_manifests(old: Manifest, new: Manifest) -> Verdict:
    """The same for versions that are not stored."""
    before = {tool.name.lower(): tool for tool in old.tools}
    after = {tool.name.lower(): tool for tool in new.tools}
    breaking = [f"{tool.name}: was removed" for name, tool in before.items() if name not in after]
    for name, tool in after.items():
        if name in before:
            breaking += [f"{tool.name}: {reason}" for reason in _breaking(before[name], tool)]
    if breaking:
        return Verdict("breaking", breaking)
    return Verdict("safe", list(_harmless(before, after)))


def _breaking(old: ToolManifest, new: ToolManifest) -> Iterator[str]:
    if old.name != new.name:
        yield f"was spelled {old.name}"
    for path, what in Comparison(old.input, new.input).narrowings():
        yield f"parameter {path} {what}" if path else f"input {what}"
    yield from _output(old.output, new.output)
    if new.risk > old.risk:
        yield f"risk was raised from {old.risk.word} to {new.risk.word}"
    for capability in sorted(set(new.capabilities) - set(old.capabilities)):
        yield f"capability {capability} was added"
    yield from _requirements(old.requirements, new.requirements)
    if _PROMISES.index(new.idempotency) > _PROMISES.index(old.idempotency):
        yield f"idempotency was weakened from {old.idempotency} to {new.idempotency}"
    for name in sorted(set(new.non_inferrable) - set(old.non_inferrable)):
        if name in old.input.get("properties", {}):
            yield f"parameter {name} may no longer be filled in by a model"


def _output(old: Any, new: Any) -> Iterator[str]:
    if (old is None) != (new is None):
        yield "output was added" if old is None else "output was removed"
    elif old is not None:
        # Callers read the output: what the old schema would refuse is new to them.
        for path, _ in Comparison(new, old, is_promise=True).narrowings():
            yield f"output {path} may now differ from what was promised" if path else "output may now differ"


def _requirements(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for kind, word in (("authorization", "authorization"), ("secrets", "secret")):
        before = {entry["id"]: entry for entry in old.get(kind, ())}
        for entry in new.get(kind, ()):
            if entry["id"] not in before:
                yield f"{word} {entry['id']} is now required"
                continue
            scopes = _scopes(entry) - _scopes(before[entry["id"]])
            for scope in sorted(scopes):
                yield f"{word} {entry['id']} now needs the scope {scope}"
    if new.get("user_id") and not old.get("user_id"):
        yield "user_id is now required"


def _scopes(entry: dict[str, Any]) -> set[str]:
    return set(entry.get("oauth2", {}).get("scopes", ()))


def _harmless(before: dict[str, ToolManifest], after: dict[str, ToolManifest]) -> Iterator[str]:
    for name, tool in after.items():
        if name not in before:
            yield f"{tool.name}: was added"
            continue
        old = before[name]
        for parameter in tool.input.get("properties", {}):
            if parameter not in old.input.get("properties", {}):
                yield f"{tool.name}: optional parameter {parameter} was added"
        if tool.risk < old.risk:
            yield f"{tool.name}: risk was lowered from {old.risk.word} to {tool.risk.word}"
        for capability in sorted(set(old.capabilities) - set(tool.capabilities)):
            yield f"{tool.name}: capability {capability} is no longer needed"
        for word, is_other in (
            ("description", (old.title, old.description) != (tool.title, tool.description)),
            ("runtime", old.runtime != tool.runtime),
            ("auth", old.auth != tool.auth),
        ):
            if is_other:
                yield f"{tool.name}: {word} changed"
