"""Worker: an outside program with a key, as the session API sees it; and ways to let time pass."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.test import Client

if TYPE_CHECKING:
    from execution.models import Call
    from policy.agents import NewAgent

BEAT = {"state": "PROCESSING", "heartbeat": 1_758_377_600_000}


class Worker:
    def __init__(self, client: Client, agent: NewAgent) -> None:
        self.client, self.agent, self.session = client, agent, ""

    def send(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Any:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.agent.key}"}
        return self.client.generic(method, path, data, headers=headers, CONTENT_TYPE=content_type)

    def open(self, *toolkits: str) -> Worker:
        answer = self.send("POST", "/v1/sessions", {"serves": list(toolkits)})
        assert answer.status_code == 201, answer.content
        self.session = answer.json()["sessionId"]
        return self

    def requests(self, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page(**query)["requests"]
        return found

    def page(self, **query: Any) -> Any:
        words = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.send("GET", f"/v1/sessions/{self.session}/requests?{words}")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def beat(self, request: Any, body: Any = None) -> int:
        """The status; a 200 must be empty, everything else must say why."""
        return _checked(self.send("POST", self.beat_path(request), BEAT if body is None else body))

    def fail(self, request: Any, error: str = "No such part", **more: Any) -> int:
        return self.beat(request, {"state": "ERROR", "error": error, **more})

    def answer(self, request: Any, **fields: Any) -> int:
        return self.respond(request, {"response": {"state": "COMPLETE", **fields}})

    def respond(self, request: Any, body: Any) -> int:
        return _checked(self.send("POST", self.response_path(request), body))

    def close(self) -> int:
        status: int = self.send("DELETE", f"/v1/sessions/{self.session}").status_code
        return status

    def beat_path(self, request: Any) -> str:
        return f"/v1/tools/request/{self.session}/{_id(request)}/heartbeat"

    def response_path(self, request: Any) -> str:
        return f"/v1/tools/response/{self.session}/{_id(request)}"


def _checked(answer: Any) -> int:
    if answer.status_code == 200:
        assert answer.content == b""
    else:
        assert answer.json()["error"]["message"], answer.content
    status: int = answer.status_code
    return status


def _id(request: Any) -> str:
    return quote(str(getattr(request, "pk", request)), safe="")


def fall_silent(call: Call) -> None:
    """No heartbeat for longer than the lease."""
    from execution.models import Call
    from registry.clock import Later

    assert Call.objects.filter(pk=call.pk, state="running").update(lease_until=Later(-0.1))


def is_silent(call: Call) -> bool:
    from execution.sessions import pulls

    return pulls.is_silent(call)


def run_late(call: Call) -> None:
    """The attempt's time is over."""
    from execution.models import Pull
    from registry.clock import Later

    assert Pull.objects.filter(call_id=call.pk, fence=call.fence or 1).update(deadline=Later(-0.1))


def state_of(call: Call) -> str:
    call.refresh_from_db()
    return call.state


def told(call: Call) -> Any:
    """What its caller gets."""
    from execution.outcomes import outcome_of

    call.refresh_from_db()
    return outcome_of(call)


def events(call: Call) -> list[str]:
    from audit.models import Event

    of_call = Event.objects.filter(subject_kind="call", subject_id=str(call.pk)).order_by("seq")
    return [name.removeprefix("call.") for name in of_call.values_list("event", flat=True)]
