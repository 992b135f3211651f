"""Web tools on the whole road: closed addresses at the public door, and attempts that may or may not be repeated."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.execution.egresskit import Network, network
from tests.protocols.wire import call
from tests.services.server import free_port
from tests.services.toolserver import Answer, Session, ToolServer, answer, as_json, raw, reset, toolserver

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent

__all__ = ["network"]

Publish = Callable[..., "NewAgent"]
pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def publish(people: dict[str, User]) -> Publish:
    """A toolkit Web with one tool Thing at this endpoint, and an agent that may call it."""
    from policy import agents
    from registry import manifests, publishing

    def published(endpoint: str, *, kind: str = "http", idempotency: str = "keyed", attempts: int = 3) -> NewAgent:
        retry = {"maxAttempts": attempts, "backoff": "0s", "maxBackoff": "1s"}
        runtime = {"type": kind, "endpoint": endpoint, "timeout": "2s", "retry": retry}
        tool = {"name": "Thing", "title": "Thing", "description": "A thing.", "idempotency": idempotency}
        manifest = {
            "apiVersion": "placet.dev/v1",
            "kind": "Toolkit",
            "metadata": {"name": "Web", "version": "1.0.0", "title": "Web", "description": "Made for tests."},
            "spec": {"tools": [{**tool, "runtime": runtime}]},
        }
        publishing.publish(manifests.import_manifest(manifest, by=people["author"]).version, by=people["author"])
        return agents.create("robot", actor="shell", call=["Web"])

    return published


@pytest.fixture
def server(settings: Any) -> Iterator[ToolServer]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with toolserver() as running:
        yield running


def in_turn(*answers: Answer) -> Answer:
    """One answer after the other, the last one for ever."""
    left = list(answers)

    def act(session: Session) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(session)

    return act


def attempts() -> list[tuple[str, str, str]]:
    from execution.models import Attempt

    return list(Attempt.objects.order_by("number").values_list("status", "code", "upstream_status"))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "0.0.0.0",
        "0",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "①②⑦.0.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "metadata.google.internal",
        "both.example",
    ],
)
def test_a26_a27_a31_a_tool_at_a_closed_address_gets_no_packet(
    client: Client, publish: Publish, network: Network, host: str
) -> None:
    network.names |= {
        "localhost": ["127.0.0.1", "::1"],
        "both.example": ["8.8.8.8", "10.0.0.1"],
    }
    robot = publish(f"http://{host}/")
    result = call(client, robot, "Web.Thing", {}).json()["result"]
    assert (result["success"], result["error"]["code"]) == (False, "runtime_policy_invalid")
    assert network.dialled == []
    assert attempts() == [("failed", "runtime_policy_invalid", "")]


@pytest.mark.parametrize("kind", ["http", "external"])
def test_14_26_a_repeatable_tool_is_asked_again_under_the_same_id(
    client: Client, publish: Publish, server: ToolServer, kind: str
) -> None:
    done = as_json({"status": "ok", "output": {"result": "done"}})
    server.answers["/"] = in_turn(answer("busy", 503, Retry_After="0"), reset(), done)
    result = call(client, publish(f"{server.url}/", kind=kind), "Web.Thing", {}, call_id="same").json()["result"]
    assert result["value"] == "done"
    assert attempts() == [
        ("failed", "execution_failed", "503"),
        ("failed", "execution_failed", ""),
        ("succeeded", "", "200"),
    ]
    assert [asked.headers["Idempotency-Key"] for asked in server.asked] == ["same"] * 3
    parents = [asked.headers["traceparent"].split("-") for asked in server.asked]
    assert len({trace for _, trace, _, _ in parents}) == 1
    assert len({span for _, _, span, _ in parents}) == 3
    if kind == "external":
        assert [asked.json["attempt"] for asked in server.asked] == [1, 2, 3]
        assert {asked.json["request_id"] for asked in server.asked} == {"same"}


@pytest.mark.parametrize(
    "reply",
    [
        answer("busy", 503),
        answer("slow down", 429),
        reset(),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"),
    ],
)
def test_f44_a_tool_that_must_not_run_twice_is_asked_once_after_the_first_byte(
    client: Client, publish: Publish, server: ToolServer, reply: Answer
) -> None:
    server.answers["/"] = reply
    robot = publish(f"{server.url}/", idempotency="non_idempotent")
    assert call(client, robot, "Web.Thing", {}).json()["result"]["success"] is False
    assert (server.connections, len(attempts())) == (1, 1)


@pytest.mark.usefixtures("server")
def test_f44_a_tool_that_must_not_run_twice_is_tried_again_if_nothing_was_sent(
    client: Client, publish: Publish
) -> None:
    robot = publish(f"http://127.0.0.1:{free_port()}/", idempotency="non_idempotent", attempts=2)
    assert call(client, robot, "Web.Thing", {}).json()["result"]["success"] is False
    assert attempts() == [("failed", "execution_failed", "")] * 2


def test_f43_a_redirect_is_refused_at_the_first_hop(client: Client, publish: Publish, server: ToolServer) -> None:
    server.answers["/"] = answer(status=307, Location=f"{server.url}/")
    result = call(client, publish(f"{server.url}/"), "Web.Thing", {}).json()["result"]
    assert "redirect_refused" in result["error"]["developer_message"]
    assert (server.connections, attempts()) == (1, [("failed", "execution_failed", "307")])


def test_26_a_pause_that_is_asked_for_is_kept_up_to_the_tools_own_limit(
    client: Client, publish: Publish, server: ToolServer
) -> None:
    from execution.models import Attempt

    server.answers["/"] = in_turn(answer("later", 429, Retry_After="3600"), answer("now"))
    assert call(client, publish(f"{server.url}/"), "Web.Thing", {}, call_id="later").status_code in (200, 400)
    first = Attempt.objects.order_by("number").first()
    assert first is not None
    assert first.retry_after == 1.0


def test_what_an_attempt_sent_and_got_can_never_be_changed(
    client: Client, publish: Publish, server: ToolServer
) -> None:
    from django.db import DatabaseError, transaction

    from execution.models import Attempt

    server.answers["/"] = answer("fine")
    call(client, publish(f"{server.url}/"), "Web.Thing", {})
    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
        Attempt.objects.update(sent=0, upstream_status="404")


def test_what_does_not_fit_the_tools_own_schema_still_shows_its_traffic(
    client: Client, publish: Publish, server: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from execution.models import Attempt
    from registry.toolspec import ToolSpec

    monkeypatch.setattr(ToolSpec, "output", None)
    server.answers["/"] = answer("surprise")
    assert call(client, publish(f"{server.url}/"), "Web.Thing", {}).json()["result"]["success"] is False
    attempt = Attempt.objects.get()
    assert (attempt.status, attempt.upstream_status) == ("failed", "200")
    assert attempt.received > len("surprise")


@pytest.mark.parametrize("told", [{"retryable": False}, {}])
def test_12_22_a_timeout_that_the_tool_calls_final_is_not_tried_again(
    client: Client, server: ToolServer, publish: Publish, told: dict[str, Any]
) -> None:
    robot = publish(f"{server.url}/", kind="external")
    error = {"code": "timeout", "reason": "tool_execution_timeout", "message": "Too large a job", "details": {}, **told}
    server.answers["/"] = as_json({"status": "error", "error": error})
    request = {"request_id": "r", "tool": {"name": "Web_Thing"}}
    reply = client.post(
        "/contract/v1/execute", request, content_type="application/json", headers={"OXP-API-Key": robot.key}
    )
    assert (reply.status_code, reply.json()["error"]["code"], reply.json()["error"]["retryable"]) == (
        504,
        "timeout",
        False,
    )
    assert len(server.asked) == 1


def test_13_a_tools_own_denial_is_told_as_one_at_the_door_and_to_operators(
    client: Client, server: ToolServer, publish: Publish
) -> None:
    robot = publish(f"{server.url}/", kind="external")
    error = {"code": "quota_used_up", "reason": "theirs", "retryable": False, "message": "Not today", "details": {}}
    server.answers["/"] = as_json({"status": "denied", "error": error})
    told: list[dict[str, Any]] = []
    keep = logging.Handler()
    keep.emit = lambda record: told.append(record.facts)  # type: ignore[method-assign,attr-defined]
    logger = logging.getLogger("placet.telemetry")
    logger.addHandler(keep)
    try:
        request = {"request_id": "r", "tool": {"name": "Web_Thing"}}
        reply = client.post(
            "/contract/v1/execute", request, content_type="application/json", headers={"OXP-API-Key": robot.key}
        )
    finally:
        logger.removeHandler(keep)
    assert reply.json()["status"] == "denied"
    assert [line["tool_status"] for line in told] == ["denied"]


def test_an_attempt_shows_its_begin_its_end_its_code_its_traffic_and_the_pause_after_it(
    client: Client, publish: Publish, server: ToolServer
) -> None:
    from django.contrib.auth.models import User

    from execution.models import Attempt

    server.answers["/"] = in_turn(answer("later", 429, Retry_After="3600"), answer("now"))
    call(client, publish(f"{server.url}/"), "Web.Thing", {})
    first = Attempt.objects.order_by("number")[0]
    assert first.started_at is not None
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    page = browser.get(f"/calls/{first.call_id}/").content.decode()
    for moment in (first.started_at, first.finished_at):
        told = f"{moment:%Y-%m-%d %H:%M:%S.%f} UTC"
        assert re.search(f'<td><time [^>]*title="{told}"[^>]*>{told}</time></td>', page)
    for text in ("execution_failed", "429", "sent", "was to follow after 1 s"):
        assert text in page
