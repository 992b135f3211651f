"""A web page can make a browser speak to a server on the reader's machine; it is recognised by its Origin and Host."""

from __future__ import annotations

from typing import Any

import pytest

from policy.agents import NewAgent
from tests.mcp.wire import code, message, modern, result, send

FOREIGN = [
    "http://evil.example",
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "http://evil.example@localhost",
    "file://localhost",
    "http://localhost/path",
    "http://localhost:99999",
    "http://[::1",
    "http://2130706433",
    "evil",
]


@pytest.mark.parametrize("origin", FOREIGN)
def test_2_a_page_of_another_origin_is_forbidden_whatever_key_it_brings(robot: NewAgent, origin: str) -> None:
    for agent in (robot, None):
        answer = modern("server/discover", agent, Origin=origin)
        assert (answer.status_code, code(answer), "id" in answer.json()) == (403, 40300, False)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_2_the_origin_counts_for_every_verb(robot: NewAgent, verb: str) -> None:
    assert send(None, robot, {"Origin": "http://evil.example"}, verb=verb).status_code == 403


def test_2_the_origin_counts_at_rpc_too(robot: NewAgent) -> None:
    answer = send(message("tools/list"), robot, {"Origin": "http://evil.example"}, path="/rpc")
    assert (answer.status_code, code(answer)) == (403, -32600)


@pytest.mark.parametrize(
    "origin", ["http://localhost", "http://localhost:6274", "https://127.0.0.1:1", "http://[::1]:80"]
)
def test_2_pages_of_this_machine_are_welcome(robot: NewAgent, origin: str) -> None:
    assert result(modern("server/discover", robot, Origin=origin))


def test_2_our_own_pages_and_those_that_settings_name_are_welcome(robot: NewAgent, settings: Any) -> None:
    settings.PLACET_URL = "https://placet.example:8443"
    settings.PLACET_ORIGINS = ["https://desk.example"]
    for origin in ("https://placet.example:8443", "https://desk.example", "https://DESK.example"):
        assert result(modern("server/discover", robot, Origin=origin))
    for origin in ("https://placet.example", "http://desk.example", "https://desk.example:444"):
        assert modern("server/discover", robot, Origin=origin).status_code == 403


def test_2_a_host_that_is_not_ours_is_refused(robot: NewAgent) -> None:
    assert modern("server/discover", robot, Host="evil.example").status_code == 400
    assert result(modern("server/discover", robot, Host="localhost:8000"))
