"""Ready-made groups for the work that people do; what is in them is the operator's to change afterwards.

A group gives what counts everywhere. What somebody may do with a toolkit is still given on that toolkit.
"""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q

ROLES: dict[str, tuple[str, ...]] = {
    "publisher": ("registry.add_toolkit",),
    "approver": (),
    "policy owner": ("policy.edit_policy", "policy.view_revision"),
    "auditor": (
        "audit.view_event",
        "execution.view_call",
        "policy.view_revision",
        "registry.audit_toolkit",
        "registry.view_toolkit",
    ),
    "operator": (
        "auth.view_group",
        "auth.view_user",
        "execution.change_secret",
        "execution.view_call",
        "execution.view_secret",
        "policy.view_notice",
        "registry.view_toolkit",
    ),
}


@transaction.atomic
def ensure(**_: Any) -> None:
    """Makes the groups that are missing; one that is there stays as it is, whatever is in it."""
    there = set(Group.objects.filter(name__in=ROLES).values_list("name", flat=True))
    for name, labels in ROLES.items():
        if name not in there:
            Group.objects.create(name=name).permissions.set(_permissions(labels))


def _permissions(labels: tuple[str, ...]) -> list[Permission]:
    if not labels:
        return []
    wanted = Q()
    for label in labels:
        app, _, codename = label.partition(".")
        wanted |= Q(content_type__app_label=app, codename=codename)
    return list(Permission.objects.filter(wanted))
