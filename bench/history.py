"""`python -m bench.history CALLS TOOLS`: a long past for a home, whole and verifiable, written in bulk."""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import django

BATCH = 5_000
TOOLS_PER_TOOLKIT = 20
SPAN = timedelta(days=30)  # the past is spread over so much time


def main(calls: int, tools: int) -> None:
    django.setup()
    register(tools)
    record(calls)
    from audit.sealing import seal_new_events

    seal_new_events()


def register(tools: int) -> None:
    """Published toolkits with so many tools in all, each of which the demo agent may call."""
    from django.contrib.auth.models import User
    from django.db import transaction
    from guardian.shortcuts import assign_perm

    from policy.models import Agent
    from registry.manifests import import_manifest
    from registry.publishing import publish

    admin, agent = User.objects.get(username="admin"), Agent.objects.select_related("user").get(name="demo")
    with transaction.atomic():
        for number in range(tools // TOOLS_PER_TOOLKIT):
            version = import_manifest(manifest(number), by=admin).version
            publish(version, by=admin)
            assign_perm("registry.call_toolkit", agent.user, version.toolkit)


def manifest(number: int) -> dict[str, Any]:
    """A toolkit of twenty small tools behind a web service that nobody calls."""
    properties = {
        "customer": {"type": "string", "description": "Whose record it is.", "maxLength": 80},
        "amount": {"type": "number", "description": "How much.", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Words to find it by."},
    }
    tool = {
        "description": "Looks a record up and returns it.",
        "risk": "low",
        "capabilities": ["data.read"],
        "idempotency": "read",
        "input": {
            "type": "object",
            "properties": properties,
            "required": ["customer"],
            "additionalProperties": False,
        },
        "output": {"type": "object"},
        "runtime": {"type": "http", "endpoint": "https://tools.example/records"},
    }
    return {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {
            "name": f"Records{number}",
            "version": "1.0.0",
            "title": f"Records {number}",
            "description": "Records.",
        },
        "spec": {"tools": [{"name": f"Look{each}", **tool} for each in range(TOOLS_PER_TOOLKIT)]},
    }


def record(calls: int) -> None:
    """So many calls of Calculator.Add that succeeded, each with its attempt and its chain of events."""
    from django.db import connection, transaction

    from audit import rows, trail
    from execution.models import Attempt, Call

    past = _past(calls)
    while batch := list(islice(past, BATCH)):
        with transaction.atomic():
            rows.insert(Call, CALL, [call for call, _, _ in batch])
            rows.insert(Attempt, ATTEMPT, [attempt for _, attempt, _ in batch])
            trail.append_all(chain for _, _, chain in batch)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


CALL = (
    *("id", "agent_id", "call_id", "fingerprint", "door", "tool_id", "tool_ref", "state", "fence", "dispatch"),
    *("cancel_requested", "input", "result", "result_kind", "error", "decision", "warnings", "arguments_digest"),
    *("user_id", "trace_id", "created_at", "deadline", "started_at", "finished_at", "duration_ms"),
)
ATTEMPT = ("call_id", "number", "where", "started_at", "finished_at", "status", "code", "detail", "retry_after")


def _past(calls: int) -> Iterator[tuple[Any, ...]]:
    """Each call as its row, its attempt, and its chain with the entries to come."""
    from audit import trail
    from audit.canonical import canonical
    from audit.trail import Entry
    from execution.fingerprint import arguments_digest
    from policy.models import Agent
    from registry.resolution import resolve
    from registry.toolref import ToolRef

    agent = Agent.objects.get(name="demo")
    ref = ToolRef.parse("Calculator.Add")
    tool = resolve(ref) if ref is not None else None
    assert tool is not None
    began = datetime.now(UTC) - SPAN
    decision = canonical({"effect": "allow", "rule": "permission", "reason": "May call toolkit Calculator"}).decode()
    for number in range(calls):
        at = began + SPAN * number / (calls + 1)
        id = _id_of(at, number)
        given = canonical({"a": number, "b": 1})
        told, digest, ended = given.decode(), arguments_digest(tool.digest, given), at + timedelta(milliseconds=1)
        result = canonical(number + 1).decode()
        yield (
            (
                *(id, agent.pk, str(id), digest, "oxp", tool.id, tool.tool_id, "succeeded", 1, "inline", False, told),
                *(result, "value", "", decision, "", digest, "", "", at, at + timedelta(minutes=10), at, ended, 1.0),
            ),
            (id, 1, "inline@past", at, ended, "succeeded", "", "", None),
            (
                trail.new_chain("call", str(id)),
                [
                    Entry(
                        event="call.received",
                        actor="agent:demo",
                        detail={
                            "door": "oxp",
                            "tool": tool.tool_id,
                            "call_id": str(id),
                            "input_sha256": hashlib.sha256(given).hexdigest(),
                            "tool_digest": tool.digest,
                            "arguments_digest": digest,
                        },
                    ),
                    Entry(event="call.decided", actor="system", detail={"effect": "allow", "rule": "permission"}),
                    Entry(event="call.started", actor="system", detail={"attempt": 1, "where": "inline@past"}),
                    Entry(event="call.succeeded", actor="system", detail={"attempt": 1, "duration_ms": 1.0}),
                ],
            ),
        )


def _id_of(at: datetime, number: int) -> uuid.UUID:
    """A UUIDv7 of that moment."""
    random = int.from_bytes(hashlib.blake2b(number.to_bytes(8, "big"), digest_size=10).digest(), "big")
    bits = (int(at.timestamp() * 1000) << 80) | random
    return uuid.UUID(int=bits & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
