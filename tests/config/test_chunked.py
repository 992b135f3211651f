"""A body that comes in chunks, without its length, is read like any other."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import orjson
import pytest
from django.test import Client
from django.test.client import MULTIPART_CONTENT

from execution.protocols.bodies import Readers
from registry.models import Toolkit, ToolkitVersion
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import manifest, published
from tests.portal.publishkit import text

pytestmark = pytest.mark.django_db

FORM = "application/x-www-form-urlencoded"
VERSION = "/api/versions/Calculator@1.0.0/"


class Endless(BytesIO):
    """Chunks that never stop."""

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert 0 < size <= 4_000_001
        return b" " * min(size, 65_536)


@pytest.fixture
def cast() -> Cast:
    published("Calculator", "1.0.0")
    return cast_of(Toolkit.objects.get(name="Calculator"))


def chunked(client: Client, method: str, path: str, body: Any, content_type: str = "application/json") -> Any:
    """As the server hands such a body over: it ends by itself, and nothing says where."""
    content = body if hasattr(body, "read") else BytesIO(body if isinstance(body, bytes) else orjson.dumps(body))
    made: dict[str, Any] = {
        "HTTP_TRANSFER_ENCODING": "chunked",
        "CONTENT_LENGTH": "",
        "wsgi.input_terminated": True,
        "wsgi.input": content,
    }
    return client.generic(method, path, content_type=content_type, CONTENT_TYPE=content_type, **made)


def test_a_body_in_chunks_counts_as_one_with_a_length_does(cast: Cast) -> None:
    api = cast.api("publisher")
    assert chunked(api, "PATCH", "/api/toolkits/Calculator/", {"title": "Sums"}).json()["title"] == "Sums"
    assert chunked(api, "POST", "/api/manifests/", manifest("Calculator", "1.1.0")).status_code == 201
    assert chunked(api, "POST", f"{VERSION}deprecate/", {"note": "Use 1.1.0"}).status_code == 200
    assert ToolkitVersion.objects.get(toolkit__name="Calculator", major=1, minor=0).deprecation_note == "Use 1.1.0"
    told = chunked(cast.api("agent"), "POST", "/api/calls/", {"tool_id": "Calculator.Nothing"})
    assert (told.status_code, told.json()["code"]) == (404, "unsupported_tool")


@pytest.mark.parametrize("content_type", ["application/yaml", FORM, MULTIPART_CONTENT, "text/plain"])
def test_what_would_still_be_something_when_it_breaks_off_needs_a_length(cast: Cast, content_type: str) -> None:
    """Nobody could tell the half of it from the whole."""
    written = text("Calculator", "1.1.0").encode()
    answer = chunked(cast.api("publisher"), "POST", "/api/manifests/", written, content_type)
    assert (answer.status_code, answer.json()["code"]) == (411, "length_required")
    assert chunked(Client(), "POST", "/login/", b"username=ada&password=x", content_type).status_code == 411
    assert ToolkitVersion.objects.count() == 1


def test_what_never_ends_is_refused(cast: Cast) -> None:
    answer = chunked(cast.api("publisher"), "POST", "/login/", Endless())
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{}" + b" " * 1_000_000, 413, "too_large"),
        (b"", 400, "malformed"),
    ],
)
def test_what_is_too_large_or_holds_nothing_is_refused(cast: Cast, body: bytes, status: int, code: str) -> None:
    """The server tells nobody that a chunk was broken: what came before it is all there is."""
    for path in ("/api/calls/", "/api/manifests/", f"{VERSION}deprecate/"):
        answer = chunked(cast.api("publisher"), "POST", path, body)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ToolkitVersion.objects.get().state == ToolkitVersion.State.PUBLISHED


def test_who_finds_no_seat_is_told_to_come_again(cast: Cast) -> None:
    readers = Readers(in_all=1, each=1, patience=0.01)
    environ: dict[str, Any] = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": BytesIO(b"{}")}
    readers.guard(environ)
    with readers.seat("someone else"):
        answer = chunked(cast.api("publisher"), "POST", "/api/toolkits/", environ["wsgi.input"])
    assert (answer.status_code, answer["Retry-After"], answer.json()["code"]) == (503, "1", "unavailable")


def test_who_only_reads_is_answered_without_a_look_at_the_body(cast: Cast) -> None:
    assert chunked(cast.api("viewer"), "GET", "/api/toolkits/", b"").status_code == 200
