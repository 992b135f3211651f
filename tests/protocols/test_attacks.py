"""Bodies that want to harm, at each door: the documented error, at once, and nothing written but the refusal."""

import time
from io import BytesIO
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client, RequestFactory

from audit.models import Event
from execution.protocols.otc.views import CallView as OTCCallView
from execution.protocols.oxp.views import CallView as OXPCallView
from policy.agents import NewAgent
from tests.protocols.specification import must_be
from tests.protocols.toolkits import Hands
from tests.protocols.wire import OTC, OXP, bearer, post, written

pytestmark = [pytest.mark.django_db, pytest.mark.parametrize("path", [OXP, OTC])]


def asking(given: bytes) -> bytes:
    """An otherwise good request whose input is this."""
    return b'{"request":{"tool_id":"Calculator.Add@1.0.0","input":%b}}' % given


BODIES = [
    pytest.param("A01", asking(b"[" * 100_000 + b"]" * 100_000), 400, "too_deep", id="A01-nested-100000"),
    pytest.param("A01", asking(b'{"a":' * 65 + b"1" + b"}" * 65), 400, "too_deep", id="A01-nested-65"),
    pytest.param("A02", b'{"a":"' + b"x" * 1_000_000 + b'"}', 413, "too_large", id="A02-more-than-1-MB"),
    pytest.param("A04", asking(b'{"a":NaN,"b":1}'), 400, None, id="A04-NaN"),
    pytest.param("A04", asking(b'{"a":Infinity,"b":1}'), 400, None, id="A04-Infinity"),
    pytest.param("A04", asking(b'{"a":-Infinity,"b":1}'), 400, None, id="A04-minus-Infinity"),
    pytest.param("A04", asking(b'{"a":1e999,"b":1}'), 400, None, id="A04-1e999"),
    pytest.param("A05", asking(b'{"a":1,"a":2,"b":1}'), 400, "duplicate_key", id="A05-duplicate"),
    pytest.param("A05", asking(b'{"a":1,"\\u0061":2,"b":1}'), 400, "duplicate_key", id="A05-escaped-duplicate"),
    pytest.param("A06", asking(b'{"a":"\xff\xfe"}'), 400, "bad_utf8", id="A06-invalid-utf8"),
    pytest.param("A06", asking(b"{}").decode().encode("utf-16"), 400, None, id="A06-utf16"),
    pytest.param("A06", b"\xef\xbb\xbf" + asking(b"{}"), 400, None, id="A06-bom"),
    pytest.param("A06", asking(b'{"a":"\\ud800"}'), 400, "bad_character", id="A06-lone-surrogate"),
    pytest.param("A06", asking(b'{"a":"\\u0000"}'), 400, "bad_character", id="A06-nul"),
    pytest.param("A06", asking(b'{"\\u0000":1}'), 400, "bad_character", id="A06-nul-in-a-key"),
    pytest.param("A07", asking(b"[" + b"1," * 400_000 + b"1]"), 413, None, id="A07-400000-items"),
    pytest.param(
        "A07", asking(b"{" + b",".join(b'"%d":1' % n for n in range(100_000)) + b"}"), 413, None, id="A07-100000-keys"
    ),
    pytest.param("A07", asking(b'{"' + b"k" * 1_000_000 + b'":1}'), 413, "too_large", id="A07-1-MB-key"),
    pytest.param("A10", b"[" + b"{}," * 10_000 + b"{}]", 400, None, id="A10-a-batch"),
    pytest.param(
        "A10", b'{"request":{"tool_id":{"__init__":1}}}', 400, "invalid_request", id="A10-an-object-for-an-id"
    ),
    pytest.param("bad", b"", 400, "malformed", id="empty"),
    pytest.param("bad", b"{", 400, "malformed", id="cut-short"),
    pytest.param("bad", b"{} {}", 400, "malformed", id="two-documents"),
    pytest.param("bad", b"{'a': 1}", 400, "malformed", id="not-json"),
    pytest.param("bad", b"<xml/>", 400, "malformed", id="xml"),
]


def must_be_refused(path: str, response: Any, status: int, code: str | None) -> None:
    assert response.status_code == status, response.content[:500]
    body = response.json()
    if path == OXP:
        must_be("ServerErrorResponse", body)
        found = body["code"]
    else:
        assert body["success"] is False
        found = body["output"]["error"]["code"]
    assert code is None or found == code


@pytest.mark.parametrize(("attack", "body", "status", "code"), BODIES)
def test_a01_to_a10_a_hostile_body_is_refused_at_once_and_leaves_one_event(
    client: Client, robot: NewAgent, path: str, attack: str, body: bytes, status: int, code: str | None
) -> None:
    client.get("/tools")  # the first request of all loads the paths
    before, started = written(), time.process_time()
    response = post(client, path, body, robot)
    assert time.process_time() - started < 1
    must_be_refused(path, response, status, code)
    assert written() == {**before, "events": before["events"] + 1}
    assert Event.objects.order_by("-pk")[0].event == "request.refused"


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/jsonp",
        "",
    ],
)
def test_a09_another_content_type_is_415(client: Client, robot: NewAgent, path: str, content_type: str) -> None:
    before = written()
    response = post(client, path, asking(b'{"a":1,"b":2}'), robot, **{"Content-Type": content_type})
    must_be_refused(path, response, 415, "unsupported_media_type")
    assert written() == {**before, "events": before["events"] + 1}


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        'application/json; charset="utf-8"',
    ],
)
def test_a09_json_in_utf_8_may_say_so(
    client: Client, robot: NewAgent, hands: Hands, path: str, content_type: str
) -> None:
    response = post(client, path, asking(b'{"a":1,"b":2}'), robot, **{"Content-Type": content_type})
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("length", "status"),
    [("1000001", 413), ("99999999999999999999999", 413), ("9" * 5000, 413), ("-1", 400), ("1e3", 400), ("٣", 400)],
)
def test_a02_a_content_length_that_is_too_large_or_no_number_is_refused_unread(
    client: Client, robot: NewAgent, path: str, length: str, status: int
) -> None:
    response = client.generic(
        "POST", path, b"{}", content_type="application/json", headers=bearer(robot.key), CONTENT_LENGTH=length
    )
    must_be_refused(path, response, status, None)


class Endless(BytesIO):
    """Chunks that never stop; counts what was taken."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert 0 < size < 2_000_000
        self.taken += min(size, 65_536)
        return b" " * min(size, 65_536)


def streamed(path: str, robot: NewAgent, stream: BytesIO, **environ: Any) -> Any:
    """A request whose body the server hands over as it comes."""
    made = RequestFactory().get(path).META | {"REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/json"}
    made |= {"HTTP_AUTHORIZATION": f"Bearer {robot.key}", "wsgi.input": stream, **environ}
    return (OXPCallView if path == OXP else OTCCallView).as_view()(WSGIRequest(made))


def chunked(path: str, robot: NewAgent, stream: BytesIO) -> Any:
    return streamed(path, robot, stream, HTTP_TRANSFER_ENCODING="chunked", **{"wsgi.input_terminated": True})


def test_a02_a_content_length_that_promises_too_much_is_a_body_cut_short(robot: NewAgent, path: str) -> None:
    body = asking(b'{"a":1,"b":2}')[:-1]
    response = streamed(path, robot, BytesIO(body), CONTENT_LENGTH="5000")
    assert response.status_code == 400
    assert b"malformed" in response.content


def test_a02_an_endless_chunked_body_is_cut_off(robot: NewAgent, path: str) -> None:
    stream = Endless()
    assert chunked(path, robot, stream).status_code == 413
    assert stream.taken <= 1_100_000


def test_a_chunked_body_is_read(robot: NewAgent, hands: Hands, path: str) -> None:
    assert chunked(path, robot, BytesIO(asking(b'{"a":1,"b":2}'))).status_code == 200
    assert len(hands.runs) == 1
