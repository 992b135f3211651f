"""A secret becomes what a tool is sent: by profile, fresh for each attempt, or the tool is not called at all."""

import base64
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from audit.models import Event
from execution import secrets, secretstore
from execution.credentials import NO_CREDENTIALS, Credentials
from execution.errors import CallError, ErrorCode
from execution.models import SecretUse, SecretVersion, State
from execution.pipeline.perform import perform
from execution.runtimes import RUNTIMES
from execution.runtimes.base import Invocation, RunResult
from execution.secretvalues import from_json
from policy.caller import Caller
from registry.models import Toolkit
from registry.toolspec import ToolSpec
from tests.execution.conftest import Call as MakeCall
from tests.execution.secretkit import BEARER, VALUE, FakeRuntime, keep, run_sender, sender

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh_notes() -> None:
    secretstore._noted.clear()


def refused(tool: ToolSpec) -> CallError:
    with pytest.raises(CallError) as caught:
        secrets.resolve(tool)
    assert not caught.value.is_sent
    return caught.value


def test_a_tool_without_auth_gets_no_credentials_and_costs_no_query(django_assert_num_queries: Any) -> None:
    tool = sender({})
    with django_assert_num_queries(0):
        assert secrets.resolve(tool) is NO_CREDENTIALS


def test_a_bearer_secret_becomes_a_header_an_environment_and_a_needle() -> None:
    keep()
    found = secrets.resolve(sender(BEARER))
    assert found.headers == {"Authorization": f"Bearer {VALUE}"}
    assert found.environment == {"TOOL_AUTH_BEARER": VALUE}
    assert found.needles == {"search-key": VALUE}
    assert (found.profile, found.secret_ref) == ("bearer", "search-key")


def test_an_api_key_is_sent_under_the_name_that_the_manifest_says() -> None:
    keep()
    found = secrets.resolve(sender({"profile": "api_key_header", "secretRef": "search-key", "headerName": "X-Key"}))
    assert found.headers == {"X-Key": VALUE}
    assert found.environment == {"TOOL_AUTH_HEADER_NAME": "X-Key", "TOOL_AUTH_HEADER_VALUE": VALUE}


def test_a_basic_secret_is_masked_whole_encoded_and_by_its_password() -> None:
    keep(value="ana:corr-horse-7")
    found = secrets.resolve(sender({"profile": "basic", "secretRef": "search-key"}))
    encoded = base64.b64encode(b"ana:corr-horse-7").decode()
    assert found.headers == {"Authorization": f"Basic {encoded}"}
    assert found.environment == {"TOOL_AUTH_BASIC": encoded}
    assert set(found.needles.values()) == {"ana:corr-horse-7", encoded, "corr-horse-7"}


def test_a_basic_secret_without_a_colon_is_a_wrong_setup() -> None:
    keep()
    assert refused(sender({"profile": "basic", "secretRef": "search-key"})).code is ErrorCode.RUNTIME_INVALID


def test_a_reference_can_name_one_text_of_an_object() -> None:
    keep(value={"primary": VALUE, "other": "another-value-1"})
    found = secrets.resolve(sender({"profile": "bearer", "secretRef": "search-key:primary"}))
    assert found.headers == {"Authorization": f"Bearer {VALUE}"}
    assert "another-value-1" not in found.needles.values()


@pytest.mark.parametrize("ref", ["nothing", "search-key:missing", "search-key/deeper"])
def test_a_secret_that_is_missing_is_told_by_its_name(ref: str) -> None:
    keep()
    error = refused(sender({"profile": "bearer", "secretRef": ref}))
    assert error.code is ErrorCode.SECRET_UNRESOLVED
    assert ref.partition(":")[0] in error.failure.developer_message
    assert not error.failure.can_retry


def test_the_newest_version_is_used_from_the_next_attempt_on() -> None:
    secret, tool = keep(), sender(BEARER)
    secrets.resolve(tool)
    secretstore.add_version(secret, from_json("a-newer-value-2"), actor="shell")
    assert secrets.resolve(tool).headers == {"Authorization": "Bearer a-newer-value-2"}


def test_without_its_newest_version_a_secret_has_the_one_before_and_in_the_end_none() -> None:
    secret, tool = keep(), sender(BEARER)
    secretstore.add_version(secret, from_json("a-newer-value-2"), actor="shell")
    assert secretstore.discard(secret, 2, actor="shell")
    assert secrets.resolve(tool).headers == {"Authorization": f"Bearer {VALUE}"}
    assert secretstore.discard(secret, 1, actor="shell")
    assert not secretstore.discard(secret, 1, actor="shell")
    assert refused(tool).code is ErrorCode.SECRET_UNRESOLVED


def test_only_the_toolkits_that_are_named_may_use_a_secret() -> None:
    other = sender({}, name="Other")
    keep(toolkits=["other"])
    tool = sender(BEARER)
    error = refused(tool)
    assert error.code is ErrorCode.SECRET_UNRESOLVED
    assert "Sender may not use" in error.failure.developer_message
    assert Toolkit.objects.get(name="Other").pk == other.toolkit_id


def test_a_value_whose_key_is_gone_is_not_resolved(settings: Any) -> None:
    keep()
    settings.PLACET_SEALING_KEYS = {"t9": b"n" * 32}
    assert refused(sender(BEARER)).code is ErrorCode.SECRET_UNRESOLVED


def test_a_value_copied_into_another_row_does_not_open() -> None:
    keep()
    other = keep("other-key", "other-value-5")
    stolen = SecretVersion.objects.get(secret__name="search-key").sealed
    SecretVersion.objects.filter(secret=other).update(sealed=stolen)
    assert refused(sender({"profile": "bearer", "secretRef": "other-key"})).code is ErrorCode.SECRET_UNRESOLVED


@pytest.mark.parametrize(
    "auth",
    [
        {"profile": "bearer"},
        {"profile": "api_key_header", "secretRef": "search-key"},
        {"profile": "oauth2_client_credentials", "secretRef": "search-key"},
        {"profile": "oauth2_client_credentials", "secretRef": "search-key:x", "tokenUrl": "https://t.example"},
        {"profile": "mutual_tls", "secretRef": "search-key"},
        {"secretRef": "search-key"},
    ],
)
def test_a_setup_that_no_manifest_could_have_is_told_as_such(auth: dict[str, Any]) -> None:
    keep(value={"value": VALUE, "client_id": "placet", "client_secret": VALUE})
    assert refused(replace(sender({}), auth=auth)).code is ErrorCode.RUNTIME_INVALID


def test_a_database_that_is_away_is_an_outage_and_not_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = sender(BEARER)

    def away(*args: Any) -> Any:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(secrets, "_looked_up", away)
    error = refused(tool)
    assert error.code is ErrorCode.SECRET_UNRESOLVED
    assert error.failure.can_retry


def test_credentials_show_nothing_and_cannot_be_pickled_or_copied_into_a_message() -> None:
    keep()
    found = secrets.resolve(sender(BEARER))
    said = f"{found!r} {found} {found.headers!r} {found.headers} {found.needles} {vars_of(found)!r}"
    assert VALUE not in said
    for thing in (found, found.headers, found.environment):
        with pytest.raises(TypeError):
            pickle.dumps(thing)


def vars_of(credentials: Credentials) -> list[Any]:
    return [getattr(credentials, name) for name in ("headers", "environment", "needles")]


def test_the_use_of_a_secret_is_written_down_once_a_minute_and_tool(django_assert_num_queries: Any) -> None:
    secret, tool = keep(), sender(BEARER)
    for _ in range(5):
        secrets.resolve(tool)
    use = SecretUse.objects.get()
    assert (use.secret_id, use.tool_id) == (secret.pk, tool.id)
    with django_assert_num_queries(3):  # the secret, its toolkits, its version: nothing is written
        secrets.resolve(tool)
    secretstore._noted.clear()
    secretstore.used(secret.pk, tool.id)
    assert SecretUse.objects.get().used_at == use.used_at  # another process within the minute


# Through the pipeline


@pytest.fixture
def send(caller: Caller, call: MakeCall, unsent: list[Any]) -> Any:
    return partial(run_sender, call)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    runtime = FakeRuntime(lambda invocation: RunResult(value=str(dict(invocation.credentials.headers))))
    monkeypatch.setitem(RUNTIMES, "http", runtime)
    return runtime


def test_what_a_tool_echoes_of_its_secret_is_masked_for_people_and_for_the_caller(
    send: Any, backend: FakeRuntime
) -> None:
    keep()
    call = send(BEARER)
    assert backend.seen[0].credentials.headers == {"Authorization": f"Bearer {VALUE}"}
    assert call.state == State.SUCCEEDED
    assert VALUE not in call.result
    assert "[REDACTED:search-key:" in call.result


def test_a_missing_secret_means_that_the_backend_is_never_asked(send: Any, backend: FakeRuntime) -> None:
    call = send(BEARER)
    assert backend.seen == []
    assert call.state == State.FAILED
    assert '"secret_resolution_failed"' in call.error


def test_what_a_failing_tool_says_is_masked_in_error_event_and_attempt(send: Any, backend: FakeRuntime) -> None:
    keep()

    def fail(invocation: Invocation) -> RunResult:
        raise CallError(ErrorCode.EXECUTION_FAILED, f"bad key {VALUE}", developer_message=VALUE, details={"x": [VALUE]})

    backend.answers = [fail]
    call = send(BEARER)
    told = [call.error, call.attempts.get().detail]
    told += Event.objects.values_list("detail", flat=True)
    assert not any(VALUE in text for text in told)
    assert "[REDACTED:search-key:" in call.error


def test_a_bug_that_quotes_a_secret_is_told_without_it(
    send: Any, backend: FakeRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    keep()

    def explode(invocation: Invocation) -> RunResult:
        try:
            raise KeyError(VALUE)
        except KeyError as error:
            raise ZeroDivisionError(f"around {invocation.credentials.headers['Authorization']}") from error

    backend.answers = [explode]
    with pytest.raises(RuntimeError) as caught:
        send(BEARER)
    assert VALUE not in str(caught.value)
    assert caught.value.__suppress_context__
    assert "ZeroDivisionError" in caplog.text
    assert VALUE not in caplog.text


def test_every_attempt_gets_the_value_of_its_own_moment(send: Any, backend: FakeRuntime) -> None:
    secret = keep()

    def fail(invocation: Invocation) -> RunResult:
        secretstore.add_version(secret, from_json("a-newer-value-2"), actor="shell")
        raise CallError(ErrorCode.EXECUTION_FAILED, "not now", can_retry=True)

    backend.answers = [fail, lambda invocation: RunResult(value="done")]
    runtime = {"type": "http", "endpoint": "https://tool.example/send", "retry": {"maxAttempts": 2}}
    call = send(BEARER, runtime=runtime)
    perform(call.pk)
    sent = [invocation.credentials.headers["Authorization"] for invocation in backend.seen]
    assert sent == [f"Bearer {VALUE}", "Bearer a-newer-value-2"]


def test_a_value_in_the_database_is_not_readable_there(transactional_db: None, settings: Any) -> None:
    keep(value={"client_id": "an-id-8901", "client_secret": VALUE})
    version = SecretVersion.objects.get()
    assert version.sealed is not None
    assert VALUE.encode() not in bytes(version.sealed)
    database = Path(settings.DATABASES["default"]["NAME"])
    if database.exists():
        for file in database.parent.glob(f"{database.name}*"):
            assert VALUE.encode() not in file.read_bytes()
