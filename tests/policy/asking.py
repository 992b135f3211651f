"""Questions to people as the door leaves them: rows of their own, bound to calls that never were."""

import hashlib
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from guardian.shortcuts import assign_perm

from audit.canonical import canonical
from policy import agents
from policy.models import Agent, Approval
from policy.sealedbox import seal
from registry.ids import new_id
from registry.models import Tool, ToolkitVersion
from registry.risk import RiskLevel
from tests.factories.registry import numbers, published

REFUND = {
    "name": "Refund",
    "title": "Refund a payment",
    "description": "Gives money back.",
    "risk": "high",
    "capabilities": ["data.write", "external.side_effect"],
    "input": numbers("amount", note={"type": "string"}),
}


def payments(version: str = "1.0.0", **changes: Any) -> ToolkitVersion:
    """A published toolkit with a tool of high risk."""
    return published("Payments", version, {**REFUND, **changes})


def asker(name: str = "support-bot", owner: User | None = None) -> Agent:
    found = Agent.objects.filter(name=name).first()
    if found is None:
        found = agents.create(name, actor="shell", call=["Payments"]).agent
        Agent.objects.filter(pk=found.pk).update(owner=owner)
        found.refresh_from_db()
    return found


def approver(name: str, version: ToolkitVersion, *verbs: str, group: str = "") -> User:
    """A person with a login who may approve, or has other verbs, on the toolkit; never staff."""
    user = User.objects.create_user(name, password="correct horse battery")
    for verb in verbs or ("approve",):
        assign_perm(f"registry.{verb}_toolkit", user, version.toolkit)
    if group:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    return User.objects.get(pk=user.pk)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def question(
    version: ToolkitVersion, arguments: Any = None, *, agent: Agent | None = None, minutes: float = 60, **fields: Any
) -> Approval:
    """A pending approval of the version's first tool."""
    tool: Tool = version.tools.get(name=fields.pop("tool_name", "Refund"))
    arguments = {"amount": 250.0} if arguments is None else arguments
    id: UUID = new_id()
    digest = hashlib.sha256(canonical(arguments)).hexdigest()
    given = {
        "call": new_id(),
        "call_id": f"call-{id.hex[-12:]}",
        "door": "oxp",
        "agent": agent or asker(),
        "tool": tool,
        "tool_ref": tool.tool_id,
        "risk": RiskLevel(tool.risk),
        "sealed_arguments": seal(canonical(arguments), bound_to=f"policy.approval:{id}"),
        "arguments_digest": digest,
        "digest": hashlib.sha256(digest.encode() + tool.digest.encode()).hexdigest(),
        "revision": 0,
        "rule": "default",
        "reason": "A tool of high risk needs a person's yes",
        "quorum": 1,
        "run_within": 3_600,
        "decide_by": timezone.now() + timedelta(minutes=minutes),
    }
    return Approval.objects.create(id=id, **{**given, **fields})


def page(user: User, path: str = "/approvals/", **query: Any) -> str:
    answer = browser(user).get(path, query)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def cards(text: str) -> list[str]:
    """The cards of a page, as text without markup and with single spaces."""
    found = re.findall(r"<article.*?</article>", text, re.S)
    return [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in found]


def state(approval: Approval) -> str:
    return str(Approval.objects.get(pk=approval.pk).state)
