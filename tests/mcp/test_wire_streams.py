"""Streams: a client hears that its tools have changed, and nothing that is not meant for it; each stream is bounded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from execution.protocols.mcp import sse, subscriptions
from execution.protocols.mcp.exchange import Stream
from execution.protocols.mcp.rpcerrors import RpcError
from policy import agents
from policy.agents import NewAgent
from policy.models import Credential
from tests.mcp.wire import META, code, events, modern, result, send, session
from tests.protocols.toolkits import DOORBELL, Publish

ID = f"{META}subscriptionId"


@pytest.fixture(autouse=True)
def _quick(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.PLACET_STREAM_SECONDS = 0.1
    monkeypatch.setattr(subscriptions, "TICK", 0.01)
    yield
    assert subscriptions.PLACES.taken == 0  # whatever happened, no place is lost


def listen(agent: NewAgent, **wanted: Any) -> Any:
    return modern("subscriptions/listen", agent, {"notifications": wanted})


def hang_up(response: Any) -> None:
    """As a server does when its client is gone: between two pieces."""
    next(response._iterator)
    response._iterator.close()


def methods(messages: list[Any]) -> list[str]:
    return [each.get("method", "the end") for each in messages]


def later(response: Any, change: Any) -> list[Any]:
    """What a stream says if something changes while it is open; both in one thread, as a test's transaction is."""
    pieces = iter(response.streaming_content)
    told = [next(pieces), next(pieces)]
    change()
    told += list(pieces)
    response.streaming_content = iter(told)
    return events(response)


def test_48_a_subscription_is_acknowledged_first_and_ends_with_an_empty_result(robot: NewAgent) -> None:
    answer = listen(robot, toolsListChanged=True)
    assert (answer["X-Accel-Buffering"], answer["Cache-Control"]) == ("no", "no-store")
    first, last = events(answer)
    assert first == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {ID: 1}, "notifications": {"toolsListChanged": True}},
    }
    assert (last["id"], last["result"]["resultType"], last["result"]["_meta"][ID]) == (1, "complete", 1)


def test_48_a_change_of_what_the_caller_may_call_is_told_with_the_id_of_the_subscription(
    robot: NewAgent, publish: Publish
) -> None:
    told = later(listen(robot, toolsListChanged=True), lambda: publish(DOORBELL))
    assert methods(told)[1:] == ["notifications/tools/list_changed", "the end"]
    assert told[1]["params"] == {"_meta": {ID: 1}}


def test_48_permissions_count_as_much_as_the_registry(robot: NewAgent, stranger: NewAgent, publish: Publish) -> None:
    """What another agent gains is nobody else's news."""
    from policy import permissions

    toolkit = publish(DOORBELL).toolkit

    def grant() -> None:
        permissions.put(toolkit, "call", stranger.agent, actor="shell")

    assert methods(later(listen(robot, toolsListChanged=True), lambda: None))[1:] == ["the end"]
    other = agents.create("other", actor="shell")
    gained = later(
        listen(robot, toolsListChanged=True), lambda: permissions.put(toolkit, "call", other.agent, actor="x")
    )
    assert methods(gained)[1:] == ["the end"]
    told = later(listen(stranger, toolsListChanged=True), grant)
    assert methods(told)[1:] == ["notifications/tools/list_changed", "the end"]


def test_48_only_what_was_asked_for_is_sent(robot: NewAgent, publish: Publish) -> None:
    answer = listen(robot, promptsListChanged=True, toolsListChanged=False, resourceSubscriptions=["file:///x"])
    told = later(answer, lambda: publish(DOORBELL))
    assert methods(told) == ["notifications/subscriptions/acknowledged", "the end"]
    assert told[0]["params"]["notifications"] == {}


@pytest.mark.parametrize("params", [{}, {"notifications": []}, {"notifications": {"toolsListChanged": 1}}], ids=str)
def test_48_a_subscription_to_nothing_that_can_be_read_is_refused(robot: NewAgent, params: dict[str, Any]) -> None:
    answer = modern("subscriptions/listen", robot, params)
    assert (answer.status_code, code(answer)) == (400, -32602)


def test_24_a_session_hears_of_changes_on_its_own_stream(robot: NewAgent, publish: Publish) -> None:
    answer = send(None, robot, session(robot), verb="GET")
    pieces = iter(answer.streaming_content)
    assert next(pieces) == b"retry: 2000\n\n"
    publish(DOORBELL)
    answer.streaming_content = pieces
    assert events(answer) == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]


def test_24_a_stream_is_only_for_who_can_read_one(robot: NewAgent) -> None:
    answer = send(None, robot, {**session(robot), "Accept": "application/json"}, verb="GET")
    assert answer.status_code == 406
    assert send(None, robot, verb="GET").status_code == 400
    assert send(None, robot, session(robot), verb="HEAD").status_code == 405


def test_24_the_stream_of_a_session_ends_with_it(robot: NewAgent, settings: Any) -> None:
    settings.PLACET_STREAM_SECONDS = 30
    headers = session(robot)
    answer = send(None, robot, headers, verb="GET")
    send(None, robot, headers, verb="DELETE")
    began = time.monotonic()
    assert events(answer) == []
    assert time.monotonic() - began < 5


def test_a_stream_ends_when_the_key_it_was_opened_with_is_revoked(robot: NewAgent, settings: Any) -> None:
    settings.PLACET_STREAM_SECONDS = 30
    answer = listen(robot, toolsListChanged=True)
    credential = Credential.objects.get(agent=robot.agent)
    began = time.monotonic()
    told = later(answer, lambda: agents.revoke_key(credential, actor="shell"))
    assert methods(told)[-1] == "the end"
    assert time.monotonic() - began < 5


def test_an_agent_has_only_so_many_streams_and_all_together_too(
    robot: NewAgent, stranger: NewAgent, settings: Any
) -> None:
    settings.PLACET_WEB_THREADS = 16  # four streams, two of each agent
    settings.PLACET_STREAM_SECONDS = 30
    held = [listen(robot, toolsListChanged=True) for _ in range(2)]
    answer = listen(robot, toolsListChanged=True)
    assert (answer.status_code, code(answer), answer["Retry-After"]) == (429, 42900, "10")
    other = agents.create("other", actor="shell")
    held += [listen(other, toolsListChanged=True) for _ in range(2)]
    answer = send(None, stranger, session(stranger), verb="GET")
    assert (answer.status_code, code(answer), answer["Retry-After"]) == (503, 50300, "10")
    hang_up(held.pop(0))
    held.append(send(None, stranger, session(stranger), verb="GET"))
    assert held[-1].status_code == 200
    for each in held:
        hang_up(each)


class Handler:
    """Says what it is told to, and remembers whether it was told to stop."""

    def __init__(self, *messages: Any) -> None:
        self.messages = iter(messages)
        self.is_closed = False

    def __iter__(self) -> Handler:
        return self

    def __next__(self) -> Any:
        said = next(self.messages)
        if isinstance(said, Exception):
            raise said
        return said

    def close(self) -> None:
        self.is_closed = True


def sent(*messages: Any) -> list[bytes]:
    handler = Handler(*messages)
    pieces = list(sse.Events(Stream(handler), lambda message: message))
    assert handler.is_closed
    return pieces


def test_46_silence_is_filled_with_comments_but_not_more_often_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent(None, None, None) == [sse.COMMENT]
    monkeypatch.setattr(sse, "KEEP_ALIVE", 0.0)
    assert sent({"a": 1}, None)[-2:] == [b'event: message\ndata: {"a":1}\n\n', sse.COMMENT]


def test_46_a_handler_is_told_to_stop_when_the_client_goes_away() -> None:
    for taken in range(3):
        handler = Handler(None, {"a": 1}, {"b": 2}, {"c": 3})
        body = sse.Events(Stream(handler), lambda message: message)
        for _ in range(taken):
            next(body)
        assert not handler.is_closed
        body.close()
        assert handler.is_closed
        assert list(body) == []


def test_46_an_error_in_the_middle_of_a_stream_is_its_last_message() -> None:
    refused = sent({"a": 1}, RpcError(-32602, "no"))
    assert refused[-1] == b'event: message\ndata: {"error":{"code":-32602,"message":"no"}}\n\n'
    assert b"-32603" in sent(ZeroDivisionError("secret"))[-1]
    assert b"secret" not in b"".join(sent(ZeroDivisionError("secret")))


def test_46_a_stream_that_has_only_its_end_to_tell_is_one_json_object(
    robot: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    from execution.protocols.mcp import methods as table

    handler = Handler({"result": {"x": 1}})
    method = table.Method(answer=lambda exchange: Stream(handler), eras=table.MODERN)
    monkeypatch.setitem(table.METHODS, "tools/list", method)
    assert result(modern("tools/list", robot))["x"] == 1
    assert handler.is_closed


def test_places_are_counted_right_by_many_threads() -> None:
    from policy.caller import Caller

    places = subscriptions.Places()

    def come_and_go(number: int) -> None:
        caller = Caller(agent_id=number, name="x", user_id=1, credential="jwt")
        for _ in range(200):
            try:
                places.take(caller)
            except RpcError:
                continue
            places.leave(caller)

    threads = [Thread(target=come_and_go, args=(number % 3,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert places.taken == 0
