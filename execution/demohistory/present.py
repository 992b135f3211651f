"""What waits for somebody at this very moment: one of each thing that a person has to look at."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from uuid import UUID

from django.contrib.auth.models import User

from audit import trail
from audit.canonical import canonical
from audit.trail import Entry
from execution.demohistory.cast import next_version
from execution.demohistory.past import Batch, id_of, moment
from execution.fingerprint import arguments_digest
from execution.messages import CallRequest
from execution.models import Breaker
from execution.pipeline.admit import admit
from policy import accessrequests, breakglass, reviews
from policy.caller import Caller
from policy.models import Agent
from registry.manifests import import_manifest
from registry.models import Tool, Toolkit
from registry.toolref import ToolRef

_DECIDED = {"effect": "allow", "rule": "permission", "reason": "May call toolkit Stock", "revision": 0}


def waiting(agent: Agent) -> None:
    """Calls that really wait for a person's yes, as any other call would."""
    caller = Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="demo")
    for name, amount in (("Mail.Send", 1), ("Billing.Refund", 120), ("Billing.Refund", 340)):
        given = {"customer": "Café Blau", "amount": amount, "tags": ["demo"]}
        ref = ToolRef.parse(name)
        admit(CallRequest(caller=caller, door="mcp", tool_text=name, tool_ref=ref, arguments=given, wait=0))


def open_questions(cast: dict[str, User], agents: dict[str, Agent], tools: dict[str, Tool]) -> None:
    """A request for access, a draft to review, a tool that is left alone, a lost worker, and a broken glass."""
    accessrequests.ask(
        agents["research-bot"], Toolkit.objects.get(name="Mail"), reason="To send the weekly digest.", by=cast["otto"]
    )
    reviews.request(import_manifest(next_version("Billing"), by=cast["petra"]).version, by=cast["petra"])
    opened = moment()
    Breaker.objects.create(
        tool=tools["Weather.Forecast"],
        state=Breaker.State.OPEN,
        failures=10,
        since=opened - timedelta(seconds=40),
        code="tool_failed",
        opened_at=opened,
        retry_at=opened + timedelta(hours=8),
    )
    lost = _lost(agents["stock-keeper"], tools["Stock.Reserve"])
    breakglass.record(
        lost, agent=agents["stock-keeper"], tool=tools["Stock.Reserve"], by=cast["otto"], reason="The line stood still."
    )


def _lost(agent: Agent, tool: Tool) -> UUID:
    """A call whose worker vanished: whether it ran, only a person can find out."""
    at, chance = moment(), Random(7)
    id, told = id_of(at, chance), b'{"amount":12,"customer":"Acme"}'
    digest = arguments_digest(tool.digest, told)
    batch = Batch()
    batch.calls.append(
        (
            *(id, agent.pk, str(id), digest, "mcp", tool.pk, tool.tool_id, "unknown", 1, "queue", False, told.decode()),
            *(
                "",
                "",
                '{"code":"unknown_outcome","message":"The worker was lost."}',
                canonical(_DECIDED).decode(),
                "",
                digest,
            ),
            *("", "", None, at, at, at + timedelta(seconds=15), None),
        )
    )
    entries = [
        Entry(event="call.received", actor=f"agent:{agent.name}", detail={"door": "mcp", "tool": tool.tool_id}),
        Entry(event="call.decided", actor="system", detail=_DECIDED),
        Entry(event="call.started", actor="worker", detail={"attempt": 1, "where": "worker@past"}),
        Entry(event="call.unknown", actor="system", outcome="failed", detail={"attempt": 1, "lost": True}),
    ]
    batch.chains.append((trail.new_chain("call", str(id)), entries))
    batch.write()
    return id
