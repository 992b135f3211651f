"""A toolkit that pays, an agent that may call it, people who read and write policy, and calls of the past."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from guardian.shortcuts import assign_perm
from rest_framework.test import APIClient

from audit.canonical import canonical
from audit.redaction import Redactor
from execution.models import Call
from policy import agents, revisions
from policy.agents import NewAgent
from policy.models import Grant, Revision
from policy.rulespec import read_rule
from registry.ids import new_id
from registry.models import Tool
from tests.factories.registry import published

REFUND = {
    "name": "Refund",
    "risk": "high",
    "capabilities": ["external.side_effect"],
    "input": {
        "type": "object",
        "properties": {
            "amount": {"type": "number"},
            "card": {"type": "string"},
            "pin": {"type": "string", "writeOnly": True},
        },
        "required": ["amount"],
        "additionalProperties": False,
    },
}
BALANCE = {"name": "Balance", "risk": "low", "input": {"type": "object", "additionalProperties": False}}
PAYOUT = {"name": "Payout", "risk": "critical", "input": {"type": "object", "additionalProperties": False}}

SMALL = {
    "name": "small refunds go through",
    "tools": ["Payments.Refund"],
    "agents": ["support-bot"],
    "when": "input.amount <= 100.0",
    "effect": "allow",
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Who is there; the people are on the staff, so that they see the portal's frame."""

    refund: Tool
    balance: Tool
    agent: NewAgent
    editor: User
    viewer: User
    auditor: User
    stranger: User

    def api(self, role: str) -> APIClient:
        """A client of this person, or with the agent's key."""
        client = APIClient()
        if role == "agent":
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {self.agent.key}")
        elif role != "anonymous":
            client.force_login(getattr(self, role))
        return client

    def browser(self, role: str) -> Client:
        client = Client(enforce_csrf_checks=False)
        client.force_login(getattr(self, role))
        return client

    def called(
        self,
        tool: Tool,
        input: dict[str, Any],
        effect: str = "allow",
        *,
        rule: str = "default",
        revision: int = 0,
        agent: NewAgent | None = None,
        state: str = "",
        at: datetime | None = None,
        is_judged: bool = True,
        grant: Grant | None = None,
    ) -> UUID:
        """A call of the past, written down as calls are: redacted, and with its decision if it was judged."""
        decision = {"effect": effect, "rule": rule, "reason": "", "revision": revision, "checks": []}
        id = new_id()
        Call.objects.create(
            id=id,
            agent=(agent or self.agent).agent,
            call_id=str(id),
            fingerprint="0" * 64,
            door="test",
            tool=tool,
            tool_ref=tool.tool_id,
            state=state or ("succeeded" if effect == "allow" else "denied"),
            input=canonical(Redactor().for_people(input, tool.input_schema)).decode(),
            decision=orjson.dumps(decision).decode() if is_judged else "",
            grant=grant,
            created_at=at or timezone.now(),
            finished_at=timezone.now(),
        )
        return id

    def granted(self, *, uses: int = 5, when: str = "") -> Grant:
        """A yes in advance to refunds, by someone who may approve them."""
        giver = User.objects.create_user("giver", password=None)
        assign_perm("registry.approve_toolkit", giver, self.refund.version.toolkit)
        return Grant.objects.create(
            agent=self.agent.agent,
            tool=self.refund,
            tool_ref=self.refund.tool_id,
            tool_digest=self.refund.digest,
            when=when,
            max_uses=uses,
            until=timezone.now() + timedelta(hours=1),
            reason="a busy day",
            granted_by=giver,
        )


def stage() -> Stage:
    version = published("Payments", "1.0.0", REFUND, BALANCE, PAYOUT)
    people = {
        name: User.objects.create_user(name, password=None, is_staff=True)
        for name in ("editor", "viewer", "auditor", "stranger")
    }
    for name, codename in {"editor": "edit_policy", "viewer": "view_revision", "auditor": "view_event"}.items():
        people[name].user_permissions.add(Permission.objects.get(codename=codename))
    return Stage(
        refund=version.tools.get(name="Refund"),
        balance=version.tools.get(name="Balance"),
        agent=agents.create("support-bot", actor="shell", call=["Payments"]),
        **people,
    )


def draft(*rules: dict[str, Any], note: str = "") -> Revision:
    """A draft with rules in a policy file's spelling."""
    return revisions.new_draft(by=None, rules=[read_rule(rule) for rule in rules], note=note)


def live(*rules: dict[str, Any]) -> Revision:
    return revisions.activate(draft(*rules), by=None)
