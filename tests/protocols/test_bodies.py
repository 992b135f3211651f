"""Bodies that do not come: those who wait for one are few, and everyone else is answered."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import RequestFactory
from django.urls import resolve

from execution.protocols.bodies import Crowded, Readers

if TYPE_CHECKING:
    from policy.agents import NewAgent

DOORS = ("/mcp", "/rpc", "/v1/sessions", "/contract/v1/execute")


def guarded(readers: Readers, content: bytes = b"{}", **environ: Any) -> Any:
    made = {"CONTENT_LENGTH": str(len(content)), "wsgi.input": BytesIO(content), **environ}
    readers.guard(made)
    return made["wsgi.input"]


def test_one_caller_has_only_its_seats_and_others_have_theirs() -> None:
    readers = Readers(in_all=3, each=2, patience=0.01)
    with readers.seat("Bearer one"), readers.seat("Bearer one"):
        with pytest.raises(Crowded):
            guarded(readers, HTTP_AUTHORIZATION="Bearer one").read()
        assert guarded(readers, HTTP_AUTHORIZATION="Bearer two").read() == b"{}"
        assert guarded(readers, HTTP_OXP_API_KEY="three").read(1) == b"{"
        assert list(guarded(readers, b"a\nb", HTTP_COOKIE="four")) == [b"a\n", b"b"]
    assert guarded(readers, HTTP_AUTHORIZATION="Bearer one").read() == b"{}"


def test_all_together_have_only_so_many() -> None:
    readers = Readers(in_all=3, each=2, patience=0.01)
    with ExitStack() as seats:
        for who in "abc":
            seats.enter_context(readers.seat(who))
        with pytest.raises(Crowded):
            guarded(readers).read()
    assert guarded(readers).read() == b"{}"


def test_who_comes_while_the_seats_are_taken_gets_the_next_that_is_left() -> None:
    readers = Readers(in_all=1, each=1, patience=20)
    read: list[bytes] = []
    with readers.seat("a"):
        waiting = threading.Thread(target=lambda: read.append(guarded(readers).read()))
        waiting.start()
        time.sleep(0.05)
        assert read == []
    waiting.join(10)
    assert read == [b"{}"]


def test_a_request_without_a_body_needs_no_seat() -> None:
    stream = BytesIO()
    environ = {"CONTENT_LENGTH": "", "wsgi.input": stream}
    Readers(in_all=1, each=1).guard(environ)
    assert environ["wsgi.input"] is stream


@pytest.mark.django_db
@pytest.mark.parametrize("path", [*DOORS, "/api/calls/"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_without_a_seat_is_answered_with_503_and_when_to_come_again(
    robot: NewAgent, path: str, is_chunked: bool
) -> None:
    if is_chunked and path not in DOORS:
        path = DOORS[0]  # for a page it is read before its view: tests/config/test_chunked.py
    readers = Readers(in_all=1, each=1, patience=0.01)
    environ = RequestFactory().post(path, b"{}", "application/json").META
    environ |= {"HTTP_AUTHORIZATION": f"Bearer {robot.key}", "HTTP_IDEMPOTENCY_KEY": "one"}
    if is_chunked:
        environ |= {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    readers.guard(environ)
    found = resolve(path)
    with readers.seat("someone else"):
        answer = found.func(WSGIRequest(environ), *found.args, **found.kwargs)
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
