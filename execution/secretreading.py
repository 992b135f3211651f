"""What may be known about a secret: everything but its value."""

from typing import Any

from django.conf import settings
from django.db.models import OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast

from execution.models import Secret, SecretUse, SecretVersion
from execution.secretsources.environment import variable
from execution.secretvalues import HIDDEN, WHOLE
from registry.models import Tool, ToolkitVersion

_CALLABLE = (ToolkitVersion.State.PUBLISHED, ToolkitVersion.State.DEPRECATED)


def may_see(user: Any) -> bool:
    """Whether this person may know which secrets there are."""
    return bool(user.has_perm("execution.view_secret") or user.has_perm("execution.change_secret"))


def overview() -> QuerySet[Secret]:
    """Every secret with the number of its version in force and when it was last used."""
    in_force = SecretVersion.objects.filter(secret=OuterRef("pk"), discarded_at=None).order_by("-number")
    uses = SecretUse.objects.filter(secret=OuterRef("pk")).order_by("-used_at")
    return Secret.objects.prefetch_related("toolkits", "versions", "uses__tool__version__toolkit").annotate(
        in_force=Subquery(in_force.values("number")[:1]),
        last_used=Subquery(uses.values("used_at")[:1]),
    )


def shown_value(secret: Secret) -> Any:
    """HIDDEN for a text, an object of HIDDEN for an object, None where nothing is stored."""
    newest = next((version for version in secret.versions.all() if version.discarded_at is None), None)
    if newest is None:
        return None
    return HIDDEN if newest.keys == [WHOLE] else dict.fromkeys(newest.keys, HIDDEN)


def place(secret: Secret) -> str:
    """Where outside a secret lies, as whoever puts it there must spell it; empty for one that is stored here."""
    match secret.source:
        case Secret.Source.ENV:
            return variable(secret.name)
        case Secret.Source.FILE:
            return f"{settings.PLACET_SECRET_FILES or 'PLACET_SECRET_FILES'}/{secret.name}"
        case Secret.Source.VAULT:
            return f"{settings.PLACET_VAULT_MOUNT}/{secret.path or secret.name}"
    return ""


def tools_naming(secret: Secret) -> QuerySet[Tool]:
    """The tools that can be called and whose manifest names the secret: they fail without it."""
    named = [f'"secretRef":"{secret.name}{end}' for end in ('"', ":")]
    tools = Tool.objects.annotate(auth_text=Cast("auth", TextField())).filter(version__state__in=_CALLABLE)
    naming = tools.filter(Q(auth_text__contains=named[0]) | Q(auth_text__contains=named[1]))
    return naming.select_related("version__toolkit").order_by("version__toolkit__name", "name", "-pk")
