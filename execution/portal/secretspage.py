"""Secrets: which there are, who uses them, how old they are; never a value. They are written on the admin's pages."""

from collections import defaultdict
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from execution import secretreading
from execution.models import Secret
from execution.portal.frame import for_people, page
from registry.actors import who
from registry.models import Tool

PER_PAGE = 25
OLD = timedelta(days=180)  # after which a value is due for a new one
FEW = 5  # tools that a row names


@for_people("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """For those who may know which secrets there are."""
    user = who(request)
    if not secretreading.may_see(user):
        raise PermissionDenied("Which secrets there are is told to those with the permission execution.view_secret.")
    text = request.GET.get("q", "")[:100].replace("\0", "")
    found = secretreading.overview().order_by("name")
    pages = Paginator(found.filter(name__icontains=text) if text else found, PER_PAGE)
    shown = pages.get_page(request.GET.get("page"))
    naming = _naming()
    context: dict[str, Any] = {
        "rows": [_row(secret, naming[secret.name]) for secret in shown],
        "pages": shown,
        "text": text,
        "missing": _missing(naming),
        "may_add": user.is_staff and user.has_perm("execution.add_secret"),
        "is_staff": user.is_staff,
        "old_days": OLD.days,
    }
    return page(request, "portal/secrets.html", "Secrets", **context)


def _naming() -> defaultdict[str, list[str]]:
    """Secrets to the tools that can be called and whose manifest names them."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    tools = Tool.objects.callable().exclude(auth={}).order_by("version__toolkit__name", "name", "-pk")
    columns = ("version__toolkit__name", "name", "auth")
    for toolkit, name, auth in tools.values_list(*columns):
        ref = auth.get("secretRef") if isinstance(auth, dict) else None
        told = f"{toolkit}.{name}"
        if isinstance(ref, str) and told not in found[ref.partition(":")[0]]:
            found[ref.partition(":")[0]].append(told)
    return found


def _missing(naming: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Secrets that tools name and nobody keeps: those tools fail."""
    there = set(Secret.objects.filter(name__in=list(naming)).values_list("name", flat=True))
    return [
        {"name": name, "tools": tools[:FEW]} for name, tools in sorted(naming.items()) if tools and name not in there
    ]


def _row(secret: Secret, tools: list[str]) -> dict[str, Any]:
    kept: Any = secret
    versions = list(secret.versions.all())
    newest = next((version for version in versions if version.discarded_at is None), None)
    now = timezone.now()
    return {
        "secret": secret,
        "tools": tools[:FEW],
        "more": max(0, len(tools) - FEW),
        "toolkits": sorted(toolkit.name for toolkit in secret.toolkits.all()),
        "used_at": kept.last_used,
        "number": kept.in_force,
        "kept": sum(version.discarded_at is None for version in versions),
        "since": newest.created_at if newest else None,
        "is_old": newest is not None and newest.created_at < now - OLD,
        "is_here": secret.source == Secret.Source.STORED,
    }
