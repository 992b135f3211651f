"""Viewer: the eyes with which evidence is gathered; nothing is packed that they may not see."""

import hashlib
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import QuerySet

from audit import access as events_access
from audit.canonical import canonical
from audit.models import Event
from execution.access import permitted, visible_calls
from execution.models import Call
from policy import readers
from policy.breakglass import PERMISSION
from policy.caller import Caller
from policy.models import Agent
from registry import access as registry_access
from registry.models import Tool, Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A person or an agent, as the API knows them; with no user, someone at the shell, who sees everything."""

    user: User | None
    caller: Caller | None = None

    def events(self) -> QuerySet[Event]:
        return Event.objects.all() if self.user is None else events_access.visible_events(self.user, self.caller)

    def calls(self) -> QuerySet[Call]:
        return Call.objects.all() if self.user is None else visible_calls(self.user, self.caller)

    def tools(self) -> QuerySet[Tool]:
        return Tool.objects.all() if self.user is None else registry_access.visible_tools(self.user)

    def may_read_policy(self) -> bool:
        return self.user is None or readers.may_read(self.user)

    def may_read_manifest(self, toolkit: Toolkit) -> bool:
        return self.user is None or registry_access.may_read_manifest(self.user, toolkit)

    def sight(self) -> str:
        """One text for everything that decides what these eyes see: as long as it stays, so does what they see."""
        if self.user is None:
            return ""
        verbs = ("audit", "approve", "view", "publish", "review")
        decides = [
            self.user.is_active,
            events_access.sees_everything(self.user),
            [self.user.has_perm(each) for each in ("execution.view_call", "registry.view_toolkit", PERMISSION)],
            self.may_read_policy(),
            sorted(Agent.objects.filter(owner=self.user).values_list("name", flat=True)),
            [sorted(permitted(self.user, verb).values_list("pk", flat=True)) for verb in verbs],
        ]
        return hashlib.sha256(canonical(decides)).hexdigest()


SHELL = Viewer(user=None)
