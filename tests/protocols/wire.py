"""Requests as clients of the doors send them."""

from typing import Any

import orjson
from django.http import HttpResponseBase
from django.test import Client

from audit.models import Event
from execution.models import Attempt, Call
from policy.agents import NewAgent

OXP, OTC = "/tools/call", "/call"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def post(client: Client, path: str, body: Any, agent: NewAgent | None = None, **headers: str) -> Any:
    """POST a JSON value, or bytes as they are; the answer must be JSON whatever it is."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    sent = {
        **(bearer(agent.key) if agent else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    content_type = sent.pop("Content-Type", "application/json")
    return checked(client.generic("POST", path, data, headers=sent, CONTENT_TYPE=content_type))


def get(client: Client, path: str, agent: NewAgent | None = None, **headers: str) -> Any:
    sent = {
        **(bearer(agent.key) if agent else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return checked(client.get(path, headers=sent))


def call(client: Client, agent: NewAgent, tool: str, arguments: Any = None, **more: Any) -> Any:
    """One call through OXP."""
    request = {"tool_id": tool, **({"input": arguments} if arguments is not None else {}), **more}
    return post(client, OXP, {"$schema": "urn:oxp:1.0", "request": request}, agent)


def checked(response: HttpResponseBase) -> Any:
    assert response["Content-Type"] == "application/json", response
    return response


def written() -> dict[str, int]:
    """How many rows there are of everything a request may leave."""
    return {"calls": Call.objects.count(), "attempts": Attempt.objects.count(), "events": Event.objects.count()}
