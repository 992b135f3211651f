"""OAuth client credentials: one exchange for many, kept while it is good, replaced once when a tool refuses it."""

import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

import pytest

from audit.models import Event
from execution import oauth, secrets, secretstore
from execution.errors import CallError, ErrorCode
from execution.models import State
from execution.oauth import Client, TokenCache, lifetime
from execution.runtimes import RUNTIMES
from execution.runtimes.base import Invocation, RunResult
from execution.secretvalues import from_json
from policy.caller import Caller
from registry.toolspec import ToolSpec
from tests.execution.conftest import Call as MakeCall
from tests.execution.secretkit import FakeRuntime, Loopback, keep, run_sender, sender

CLIENT = {"client_id": "placet", "client_secret": "client-secret-51c0"}


class Endpoint(Loopback):
    """A token endpoint that gives a new token each time; the next answers can be said."""

    def __init__(self) -> None:
        self.next: list[tuple[int, Any]] = []
        self.given = 0
        super().__init__(self._answer)

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        if self.next:
            return self.next.pop(0)
        self.given += 1
        return 200, {"access_token": f"token-{self.given}-e8a1", "token_type": "Bearer", "expires_in": 3600}

    def forms(self) -> list[dict[str, list[str]]]:
        return [parse_qs(body.decode()) for _, _, body in self.asked]


@pytest.fixture
def endpoint(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    settings.PLACET_EGRESS_ALLOW = ("127.0.0.0/8",)
    monkeypatch.setattr(secrets, "TOKENS", TokenCache())
    secretstore._noted.clear()
    with Endpoint() as started:
        yield started


def auth(endpoint: Endpoint, *scopes: str) -> dict[str, Any]:
    url = f"{endpoint.url}/token"
    return {"profile": secrets.OAUTH, "secretRef": "search-key", "tokenUrl": url, "scopes": list(scopes)}


def refused(tool: ToolSpec) -> CallError:
    with pytest.raises(CallError) as caught:
        secrets.resolve(tool)
    assert not caught.value.is_sent
    assert CLIENT["client_secret"] not in repr(caught.value.failure)
    return caught.value


@pytest.mark.django_db
def test_a_token_is_fetched_with_id_secret_and_scopes_and_sent_as_bearer(endpoint: Endpoint) -> None:
    keep(value=CLIENT)
    found = secrets.resolve(sender(auth(endpoint, "search.read", "search.write")))
    assert found.headers == {"Authorization": "Bearer token-1-e8a1"}
    assert found.environment == {"TOOL_AUTH_BEARER": "token-1-e8a1"}
    assert set(found.needles.values()) == {"token-1-e8a1", "client-secret-51c0"}
    assert found.scopes == ("search.read", "search.write")
    assert endpoint.forms() == [
        {
            "grant_type": ["client_credentials"],
            "client_id": ["placet"],
            "client_secret": ["client-secret-51c0"],
            "scope": ["search.read search.write"],
        }
    ]


@pytest.mark.django_db
def test_a_token_is_shared_by_the_same_client_and_scopes_and_by_nobody_else(endpoint: Endpoint) -> None:
    secret = keep(value=CLIENT)
    tool, wider = sender(auth(endpoint, "a"), name="First"), sender(auth(endpoint, "a", "b"), name="Second")
    assert secrets.resolve(tool).headers == secrets.resolve(tool).headers
    assert endpoint.given == 1
    assert secrets.resolve(wider).headers == {"Authorization": "Bearer token-2-e8a1"}
    secretstore.add_version(secret, from_json(CLIENT | {"client_secret": "rotated-secret-9"}), actor="shell")
    assert secrets.resolve(tool).headers == {"Authorization": "Bearer token-3-e8a1"}
    assert endpoint.forms()[-1]["client_secret"] == ["rotated-secret-9"]


@pytest.mark.django_db
@pytest.mark.parametrize("value", ["a-plain-text-1", {"client_id": "placet"}, {"client_secret": "client-secret-51c0"}])
def test_a_client_needs_an_id_and_a_secret(endpoint: Endpoint, value: Any) -> None:
    keep(value=value)
    assert refused(sender(auth(endpoint))).code is ErrorCode.SECRET_UNRESOLVED
    assert endpoint.asked == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("answer", "can_retry"),
    [
        ((401, {"error": "invalid_client", "error_description": "client-secret-51c0"}), False),
        ((400, {"error": "invalid_client"}), False),
        ((403, b"no"), False),
        ((500, b"oh"), True),
        ((503, {"error": "client-secret-51c0"}), True),
        ((429, b""), True),
        ((200, b"<html>"), True),
        ((200, {"access_token": ""}), True),
        ((200, {"access_token": "a\r\nb: c"}), True),
        ((200, ["access_token"]), True),
        ((302, b""), False),
    ],
)
def test_an_outage_may_be_tried_again_and_a_refusal_may_not(
    endpoint: Endpoint, answer: tuple[int, Any], can_retry: bool
) -> None:
    keep(value=CLIENT)
    endpoint.next = [answer]
    error = refused(sender(auth(endpoint)))
    assert error.code is ErrorCode.SECRET_UNRESOLVED
    assert error.failure.can_retry is can_retry


@pytest.mark.django_db
def test_an_endpoint_that_is_not_there_is_an_outage_and_one_that_is_forbidden_a_wrong_setup(
    endpoint: Endpoint, settings: Any
) -> None:
    keep(value=CLIENT)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    gone = sender(auth(endpoint) | {"tokenUrl": f"http://127.0.0.1:{port}/token"}, name="Gone")
    assert refused(gone).failure.can_retry
    settings.PLACET_EGRESS_ALLOW = ()
    assert refused(sender(auth(endpoint), name="Forbidden")).code is ErrorCode.RUNTIME_INVALID
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("expires_in", "seconds"),
    [
        (3600, 3570),
        (31, 1),
        (30, 30),
        (5, 5),
        (0.2, 1),
        (0, 3570),
        (-1, 3570),
        (None, 3570),
        ("600", 570),
        ("soon", 3570),
        (float("nan"), 3570),
        (1e300, 86_400),
    ],
)
def test_a_token_is_used_until_thirty_seconds_before_its_end(expires_in: Any, seconds: float) -> None:
    assert lifetime(expires_in) == pytest.approx(seconds)


# A tool that refuses


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    runtime = FakeRuntime(lambda invocation: RunResult(value=invocation.credentials.headers["Authorization"]))
    monkeypatch.setitem(RUNTIMES, "http", runtime)
    return runtime


@pytest.fixture
def send(caller: Caller, call: MakeCall, unsent: list[Any]) -> Any:
    return partial(run_sender, call)


def unauthorized(code: ErrorCode) -> Any:
    def answer(invocation: Invocation) -> RunResult:
        raise CallError(code, f"401 for {invocation.credentials.headers['Authorization']}")

    return answer


@pytest.mark.parametrize("code", [ErrorCode.AUTH_INVALID, ErrorCode.AUTH_EXPIRED])
def test_a_token_that_a_tool_no_longer_takes_is_replaced_within_the_attempt(
    endpoint: Endpoint, backend: FakeRuntime, send: Any, code: ErrorCode
) -> None:
    keep(value=CLIENT)
    backend.answers.insert(0, unauthorized(code))
    call = send(auth(endpoint))
    assert call.state == State.SUCCEEDED
    sent = [invocation.credentials.headers["Authorization"] for invocation in backend.seen]
    assert sent == ["Bearer token-1-e8a1", "Bearer token-2-e8a1"]
    assert call.attempts.count() == 1  # the retry budget is not touched
    assert "token-2-e8a1" not in call.result
    events = Event.objects.filter(subject_kind="call", subject_id=str(call.pk)).order_by("seq")
    assert list(events.values_list("event", flat=True))[-2:] == ["call.auth_expired", "call.succeeded"]


@pytest.mark.parametrize("code", [ErrorCode.AUTH_INVALID, ErrorCode.AUTH_EXPIRED])
def test_a_second_refusal_is_the_end_and_names_no_token(
    endpoint: Endpoint, backend: FakeRuntime, send: Any, code: ErrorCode
) -> None:
    keep(value=CLIENT)
    backend.answers = [unauthorized(code)]
    call = send(auth(endpoint))
    assert call.state == State.FAILED
    assert '"auth_invalid"' in call.error
    assert (len(backend.seen), endpoint.given) == (2, 2)
    assert "token-" not in call.error


def test_a_web_service_that_answers_401_once_gets_a_new_token(endpoint: Endpoint, send: Any) -> None:
    keep(value=CLIENT)

    def service(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        is_known = request.headers["Authorization"] == "Bearer token-2-e8a1"
        return (200, {"done": True}) if is_known else (401, {"error": "expired"})

    with Loopback(service) as backend:
        runtime = {"type": "http", "endpoint": f"{backend.url}/send"}
        call = send(auth(endpoint), runtime=runtime, idempotency="non_idempotent")
    assert call.state == State.SUCCEEDED
    assert (len(backend.asked), endpoint.given) == (2, 2)


def test_other_profiles_are_refused_once(endpoint: Endpoint, backend: FakeRuntime, send: Any) -> None:
    keep(value="a-plain-text-1")
    backend.answers = [unauthorized(ErrorCode.AUTH_INVALID)]
    call = send({"profile": "bearer", "secretRef": "search-key"})
    assert '"auth_invalid"' in call.error
    assert len(backend.seen) == 1


def test_if_no_new_token_is_to_be_had_the_call_says_so(endpoint: Endpoint, backend: FakeRuntime, send: Any) -> None:
    keep(value=CLIENT)

    def refuse(invocation: Invocation) -> RunResult:
        endpoint.next = [(503, b"")]
        raise CallError(ErrorCode.AUTH_INVALID, "401")

    backend.answers = [refuse]
    call = send(auth(endpoint))
    assert '"secret_resolution_failed"' in call.error
    assert len(backend.seen) == 1


def test_an_exchange_ends_at_its_deadline(settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ("127.0.0.0/8",)
    is_free = threading.Event()

    def stall(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
        is_free.wait(5)
        return 200, {}

    with Loopback(stall) as server:
        slow = Client(
            token_url=server.url, client_id="a", scopes=(), secret_version="1", client_secret="client-secret-51c0"
        )
        began = time.monotonic()
        with pytest.raises(CallError) as caught:
            oauth.exchange(slow, deadline=time.monotonic() + 0.2)
        assert time.monotonic() - began < 2
        assert caught.value.failure.can_retry
        is_free.set()
