"""Draft, published, deprecated, withdrawn: sole writer of version state."""

from datetime import UTC, date, datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from audit import trail
from registry.actors import actor, is_person
from registry.concerns import concerns
from registry.manifests import ManifestError, manifest_of
from registry.manifestshape import Manifest, parse
from registry.models import Source, Tool, ToolkitVersion

State = ToolkitVersion.State


class PublishingError(Exception):
    """A version that cannot move as asked; the reason says why and what would help."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@transaction.atomic
def publish(version: ToolkitVersion, *, by: User | None, reviewed_by: User | None = None) -> ToolkitVersion:
    """Freezes a draft and makes its tools callable; a risky one needs a reviewer who is not its last editor."""
    draft = _held(version)
    if not draft.is_draft:
        raise PublishingError(f"{draft} is {draft.state} already.")
    manifest = _checked(draft)
    reviewer = _reviewer(draft, manifest, reviewed_by)
    _settle_tools(draft, manifest)
    facts = {
        "digest": manifest.digest,
        "risk": manifest.risk,
        "reviewed_by": reviewer,
        "published_at": timezone.now(),
        "published_by": by,
    }
    detail = {"digest": manifest.digest, "risk": manifest.risk.word, "reviewed_by": reviewer and actor(reviewer)}
    return _move(draft, State.PUBLISHED, by=by, facts=facts, detail=detail)


@transaction.atomic
def request_review(version: ToolkitVersion, *, by: User | None) -> ToolkitVersion:
    """Puts a draft before a second person; asking again changes nothing."""
    draft = _held(version)
    if not draft.is_draft:
        raise PublishingError(f"{draft} is {draft.state} already.")
    manifest = _checked(draft)
    if draft.review_requested_at is None or draft.digest != manifest.digest:
        _settle_tools(draft, manifest)
        draft.digest, draft.risk = manifest.digest, manifest.risk  # what the reviewer will have read
        draft.review_requested_at = timezone.now()
        draft.save(update_fields=["digest", "risk", "review_requested_at"])
        trail.record(
            "version", str(draft), "version.review_requested", actor=_actor(by), detail={"digest": draft.digest}
        )
    return draft


@transaction.atomic
def deprecate(
    version: ToolkitVersion, *, by: User | None, reason: str = "", sunset_on: date | None = None
) -> ToolkitVersion:
    """Keeps the tools callable and says that they should no longer be used, and from which day on they may be gone."""
    held = _held(version)
    if held.state != State.PUBLISHED:
        raise PublishingError(f"{held} is {held.state}; only a published version can be deprecated.")
    if sunset_on is not None and sunset_on <= datetime.now(UTC).date():
        raise PublishingError("The day from which it may be withdrawn must lie ahead.")
    facts = {"deprecated_at": timezone.now(), "deprecation_note": reason.strip(), "sunset_on": sunset_on}
    detail = {"reason": reason.strip()} | ({"sunset_on": sunset_on.isoformat()} if sunset_on is not None else {})
    return _move(held, State.DEPRECATED, by=by, facts=facts, detail=detail)


@transaction.atomic
def withdraw(version: ToolkitVersion, *, by: User | None, reason: str) -> ToolkitVersion:
    """Makes the tools uncallable at once and for ever; the reason is shown to who asks for them."""
    held = _held(version)
    if held.state not in (State.PUBLISHED, State.DEPRECATED):
        raise PublishingError(f"{held} is {held.state}; only a published or deprecated version can be withdrawn.")
    if not reason.strip():
        raise PublishingError("A withdrawal needs a reason.")
    facts = {"withdrawn_at": timezone.now(), "withdrawal_reason": reason.strip()}
    return _move(held, State.WITHDRAWN, by=by, facts=facts, detail={"reason": reason.strip()})


def reasons_for_review(version: ToolkitVersion) -> list[str]:
    """Why a second person has to look at this version before it is published; nothing if nobody has to."""
    return review_reasons(manifest_of(version))


def review_reasons(manifest: Manifest) -> list[str]:
    """The same for a version that is not stored."""
    reasons = [f"it holds a tool of {manifest.risk.word} risk"] if manifest.risk.needs_review else []
    return reasons + [str(concern) for concern in concerns(manifest)]


def _held(version: ToolkitVersion) -> ToolkitVersion:
    """The version as it is now, locked, so that nobody changes its tools while we look at them."""
    return (
        ToolkitVersion.objects.select_for_update(of=("self",)).select_related("toolkit", "edited_by").get(pk=version.pk)
    )


def _move(
    version: ToolkitVersion, state: str, *, by: User | None, facts: dict[str, Any], detail: dict[str, Any]
) -> ToolkitVersion:
    before = version.state
    moved = ToolkitVersion.objects.filter(pk=version.pk, state=before).update(state=state, **facts)
    if not moved:
        raise PublishingError(f"{version} was changed by someone else at the same moment; look again.")
    trail.record("version", str(version), f"version.{state}", actor=_actor(by), detail={"from": before, **detail})
    version.refresh_from_db()
    return version


def _checked(draft: ToolkitVersion) -> Manifest:
    """The draft's content, judged like an import: people may have edited its rows since."""
    described = manifest_of(draft)
    try:
        manifest = parse(described.document())
    except ManifestError as error:
        raise PublishingError(f"{draft} cannot be published: {error}") from error
    if manifest.needs_source:
        raise PublishingError(f"{draft} cannot be published: the code of its tools was never imported.")
    for digest in manifest.named_sources:
        if not Source.objects.filter(toolkit=draft.toolkit_id, digest=digest).exists():
            raise PublishingError(f"{draft} cannot be published: its source {digest} is not stored.")
    return manifest


def _settle_tools(draft: ToolkitVersion, manifest: Manifest) -> None:
    """Writes each tool's normal form and digest, the last change before the version is frozen."""
    rows = Tool.objects.filter(version=draft).order_by("position", "name")
    for row, tool in zip(rows, manifest.tools, strict=True):
        settled = {
            "digest": manifest.tool_digest(tool),
            "non_inferrable": list(tool.non_inferrable),
            "annotations": tool.annotations,
            "requirements": tool.requirements,
            "runtime": tool.runtime,
            "auth": tool.auth,
            "icons": list(tool.icons) or None,
        }
        if any(getattr(row, name) != value for name, value in settled.items()):
            Tool.objects.filter(pk=row.pk).update(**settled)


def _reviewer(draft: ToolkitVersion, manifest: Manifest, reviewed_by: User | None) -> User | None:
    reviewer = reviewed_by or draft.reviewed_by
    if reviewer is None:
        if reasons := review_reasons(manifest):
            raise PublishingError(f"A second person has to review {draft} first: {'; '.join(reasons)}.")
        return None
    if draft.digest != manifest.digest:
        raise PublishingError(f"{draft} is no longer what was reviewed; it has to be reviewed again.")
    if reviewer == draft.edited_by:
        raise PublishingError(f"{reviewer} edited {draft} last and cannot review it; ask someone else.")
    if not is_person(reviewer) or not reviewer.is_active:
        raise PublishingError("A review is given by an active person.")
    return reviewer


def _actor(by: User | None) -> str:
    return actor(by) if by else "shell"
