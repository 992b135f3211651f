"""Publish: what waits for this person, their drafts, and what they published; each leads to its version."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from execution.portal.frame import for_people, page
from execution.portal.standing import Standing, standing
from registry import access
from registry.models import ToolkitVersion
from registry.risk import RiskLevel

MOST = 50
DRAFT = ToolkitVersion.State.DRAFT
IN_REVIEW = Q(state=DRAFT, review_requested_at__isnull=False)


def may_write(me: Standing) -> bool:
    """Whether there is a toolkit that this person could write a version of, or make."""
    return me.may("publish") or me.has("registry.add_toolkit")


def concerns(me: Standing) -> bool:
    """Whether publishing is any of this person's work."""
    return may_write(me) or me.may("review")


@for_people("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """The lists, each bounded; the admin's list of versions has the rest."""
    me = standing(request)
    if me is None or not concerns(me):
        raise PermissionDenied("Publishing needs the permission to publish or to review a toolkit, or to make one.")
    lists = [_listed(*each) for each in _lists(me)]
    context: dict[str, Any] = {"lists": lists, "may_write": may_write(me), "today": timezone.now().date()}
    return page(request, "portal/publish.html", "Publish", **context)


def _lists(me: Standing) -> list[tuple[str, str, str, QuerySet[ToolkitVersion]]]:
    user = me.user
    mine = Q(created_by=user) | Q(edited_by=user)
    seen = access.visible_versions(user)
    lists = []
    if me.may("review"):
        asked = seen.filter(IN_REVIEW).exclude(edited_by=user)
        if not user.is_superuser:
            asked = asked.filter(toolkit__in=me.held.get("review", frozenset()))
        nothing = "No draft waits for your word. When somebody asks for a review of a toolkit of yours, it shows here."
        lists.append(("to-review", "For you to review", nothing, asked.order_by("review_requested_at", "pk")))
    if may_write(me):
        lists += [
            (
                "drafts",
                "Your drafts",
                "Nothing half done. A new version begins with a manifest, pasted, uploaded or made by a form.",
                seen.filter(mine, state=DRAFT, review_requested_at=None).order_by("-pk"),
            ),
            (
                "waiting",
                "Waiting for a second person",
                "Nothing of yours waits for somebody else.",
                seen.filter(mine & IN_REVIEW).order_by("review_requested_at", "pk"),
            ),
            (
                "published",
                "Published by you",
                "You have not published a version yet.",
                seen.filter(published_by=user).order_by("-published_at", "-pk"),
            ),
        ]
    return lists


def _listed(key: str, title: str, nothing: str, versions: QuerySet[ToolkitVersion]) -> dict[str, Any]:
    rows = versions.select_related("toolkit", "edited_by").annotate(number_of_tools=Count("tools"))[: MOST + 1]
    shown = [{"version": version, "risk": RiskLevel(version.risk).word} for version in rows]
    return {"key": key, "title": title, "nothing": nothing, "rows": shown[:MOST], "has_more": len(shown) > MOST}
