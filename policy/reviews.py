"""Sign-off of a draft by a second person, then registry.publishing: sole writer of reviews."""

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction

from audit import trail
from policy.models import Review
from registry import access, publishing
from registry.actors import actor, is_person
from registry.models import ToolkitVersion


class ReviewError(Exception):
    """A review that cannot be asked for or given now; the message says why."""


@transaction.atomic
def request(version: ToolkitVersion, *, by: User) -> ToolkitVersion:
    """Asks for a second person's sign-off; asking twice is asking once."""
    draft = _held_draft(version)
    if not access.may(by, "publish", draft.toolkit):
        raise PermissionDenied(f"Asking for a review of {draft} needs the permission 'publish' on {draft.toolkit}.")
    return publishing.request_review(draft, by=by)


@transaction.atomic
def answer(version: ToolkitVersion, *, by: User, answer: str, note: str = "", digest: str | None = None) -> Review:
    """One person's word about the draft as it stands; a refusal says why and sends it back to its editors."""
    draft = _held_draft(version)
    refuse_unfit_reviewer(draft, by)
    if not draft.is_in_review:
        raise ReviewError(f"Nobody has asked for a review of {draft} yet.")
    if digest is not None and digest != draft.digest:
        raise ReviewError(f"{draft} has changed since you read it; read it again.")
    if answer == Review.Answer.REFUSE and not note.strip():
        raise ReviewError("A refusal says why.")
    review = Review.objects.create(version=draft, reviewer=by, answer=answer, note=note.strip(), digest=draft.digest)
    if answer == Review.Answer.REFUSE:
        ToolkitVersion.objects.filter(pk=draft.pk).update(review_requested_at=None)
    detail = {"digest": draft.digest, "note": review.note}
    _tell(draft, f"version.review_{'approved' if answer == Review.Answer.APPROVE else 'refused'}", by, detail)
    return review


def refuse_unfit_reviewer(version: ToolkitVersion, user: User) -> None:
    """Raises PermissionDenied unless this is a person who may review the toolkit and did not edit the draft."""
    if not is_person(user):
        raise PermissionDenied("A review is a person's word; an agent cannot give it.")
    if not access.may(user, "review", version.toolkit):
        raise PermissionDenied(f"Reviewing {version} needs the permission 'review' on {version.toolkit}.")
    if version.edited_by_id == user.pk:
        raise PermissionDenied(f"You edited {version} last; another person reviews it.")


def approval(version: ToolkitVersion) -> Review | None:
    """The approval that stands: the last word about exactly this content, if it was a yes by someone who still may."""
    last = version.reviews.filter(digest=version.digest).select_related("reviewer").first()
    if last is None or last.answer != Review.Answer.APPROVE or last.reviewer_id == version.edited_by_id:
        return None
    is_still_fit = last.reviewer.is_active and access.may(last.reviewer, "review", version.toolkit)
    return last if is_still_fit else None


def obstacles(version: ToolkitVersion) -> list[str]:
    """What keeps this draft from being published now, one line each; nothing, if nothing does."""
    if not version.is_draft:
        return [f"{version} is {version.state}."]
    if approval(version) is not None:
        return []
    reasons = publishing.reasons_for_review(version)
    return [f"another person has to review it first: {'; '.join(reasons)}."] if reasons else []


@transaction.atomic
def publish(version: ToolkitVersion, *, by: User) -> ToolkitVersion:
    """Publishes a draft, naming the reviewer where one is demanded."""
    draft = _held_draft(version)
    if not access.may(by, "publish", draft.toolkit):
        raise PermissionDenied(f"Publishing {draft} needs the permission 'publish' on {draft.toolkit}.")
    if refusals := obstacles(draft):
        raise ReviewError(f"{draft} cannot be published yet: {' '.join(refusals)}")
    given = approval(draft)
    return publishing.publish(draft, by=by, reviewed_by=given.reviewer if given is not None else None)


def _held_draft(version: ToolkitVersion) -> ToolkitVersion:
    """The stored version, held against other writers until this transaction ends."""
    stored = ToolkitVersion.objects.select_for_update(of=("self",)).select_related("toolkit").get(pk=version.pk)
    if not stored.is_draft:
        raise ReviewError(f"{stored} is {stored.state}; only a draft is reviewed and published.")
    return stored


def _tell(version: ToolkitVersion, event: str, by: User, detail: dict[str, str] | None = None) -> None:
    trail.record("version", str(version), event, actor=actor(by), detail=detail)
