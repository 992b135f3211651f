"""Bodies that do not come: those who wait for one are few, and everyone else is answered."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client, RequestFactory
from django.urls import resolve

from execution.protocols.bodies import Crowded, Readers
from policy.models import Credential

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


class Full:
    """A body for which there is no seat."""

    def read(self, *_: int) -> bytes:
        raise Crowded

    readline = read


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "content", "accept"),
    [
        ("/api/agents/{}/keys/", "application/json", "application/json"),
        ("/agents/{}/keys/", "application/x-www-form-urlencoded", "text/html"),
        ("/agents/{}/keys/", "multipart/form-data; boundary=x", "text/html"),
    ],
    ids=["api", "form", "form with files"],
)
def test_a_person_whose_body_was_not_read_has_asked_for_nothing(
    robot: NewAgent, admin_user: Any, path: str, content: str, accept: str
) -> None:
    """The check against forged forms would go on with an empty body: a key without the end that was asked for."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(admin_user)
    client.get(f"/agents/{robot.agent.name}/")
    before = Credential.objects.count()
    answer = client.post(
        path.format(robot.agent.name),
        b'{"label": "short-lived"}',
        content_type=content,
        headers={"X-CSRFToken": client.cookies["csrftoken"].value, "Accept": accept},
        **{"wsgi.input": Full()},  # type: ignore[arg-type]
    )
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert Credential.objects.count() == before
