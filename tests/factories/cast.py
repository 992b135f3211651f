"""The people and programs around one toolkit, each with the one permission that their name says."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Permission, User
from guardian.shortcuts import assign_perm
from rest_framework.test import APIClient

from policy import agents
from policy.agents import NewAgent
from registry.models import Toolkit


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Who takes part: people with a login, and agents with a key."""

    publisher: User
    reviewer: User
    viewer: User
    stranger: User
    with_model_permissions: User  # all permissions on toolkits in general, none on this one
    superuser: User
    agent: NewAgent  # may call
    publishing_agent: NewAgent

    def api(self, role: str) -> APIClient:
        """A client that is logged in, or holds a key, as this role; "anonymous" is nobody."""
        client = APIClient()
        if role == "anonymous":
            return client
        who = getattr(self, role)
        if isinstance(who, NewAgent):
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {who.key}")
        else:
            client.force_login(who)
        return client


def cast_of(toolkit: Toolkit) -> Cast:
    """A cast for this toolkit; everyone with a login is staff, so that the admin's doors are open to them."""
    people: dict[str, Any] = {
        name: User.objects.create_user(name, password=None, is_staff=True)
        for name in ("publisher", "reviewer", "viewer", "stranger", "with_model_permissions")
    }
    for name, verbs in {"publisher": ["view", "publish"], "reviewer": ["review"], "viewer": ["view"]}.items():
        for verb in verbs:
            assign_perm(f"registry.{verb}_toolkit", people[name], toolkit)
    model_permissions = Permission.objects.filter(content_type__app_label="registry", content_type__model="toolkit")
    people["with_model_permissions"].user_permissions.set(model_permissions.exclude(codename="add_toolkit"))
    publishing = agents.create("release-bot", actor="shell")
    assign_perm("registry.publish_toolkit", publishing.agent.user, toolkit)
    return Cast(
        **people,
        superuser=User.objects.create_superuser("root", password=None),
        agent=agents.create("demo", actor="shell", call=[toolkit.name]),
        publishing_agent=publishing,
    )
