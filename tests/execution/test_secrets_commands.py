"""Secrets at the shell: set_secret reads standard input, rotate_keys moves everything to the first key."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from audit.models import Event
from execution import resealing, secrets
from execution.models import Call, Secret, SecretVersion, State
from execution.outcomes import answer_of
from execution.pipeline.perform import perform
from execution.secretsources.stored import opened
from policy import agents
from policy.models import Agent, Approval
from policy.sealedbox import key_of, seal, unseal
from tests.execution.conftest import Call as MakeCall
from tests.execution.secretkit import BEARER, VALUE, keep, sender

pytestmark = pytest.mark.django_db

NEW = {"t2": b"2" * 32, "t1": b"k" * 32}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command with this standard input; what it printed."""

    def run(*arguments: str, given: str | bytes = "") -> str:
        raw = given.encode() if isinstance(given, str) else given
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
        out = io.StringIO()
        call_command(*arguments, stdout=out)
        return out.getvalue()

    return run


def test_a_secret_is_kept_without_the_line_end_that_echo_adds(shell: Any) -> None:
    assert shell("set_secret", "search-key", "--description", "For search", given=f"{VALUE}\n") == (
        "search-key is kept, version 1\n"
    )
    assert secrets.resolve(sender(BEARER)).needles == {"search-key": VALUE}
    assert Secret.objects.get().description == "For search"


def test_a_second_value_is_the_next_version_and_keeps_what_was_said_before(shell: Any) -> None:
    sender({}, name="Other")
    shell("set_secret", "search-key", "--toolkit", "Other", "--description", "For search", given=VALUE)
    assert "version 2" in shell("set_secret", "search-key", given="a-newer-value-2")
    secret = Secret.objects.get()
    assert secret.description == "For search"
    assert [toolkit.name for toolkit in secret.toolkits.all()] == ["Other"]
    assert secret.versions.count() == 2


def test_a_json_object_is_its_texts(shell: Any) -> None:
    shell("set_secret", "app", given='{"client_id": "placet", "client_secret": "client-secret-51c0"}\r\n')
    assert SecretVersion.objects.get().keys == ["client_id", "client_secret"]


def test_a_secret_elsewhere_needs_no_input(shell: Any) -> None:
    said = shell("set_secret", "app", "--source", "vault", "--path", "team/app")
    assert said == "app is kept; its source is vault\n"
    assert Secret.objects.get().path == "team/app"


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["a b"], VALUE),
        (["../x"], VALUE),
        (["a/versions"], VALUE),
        (["x"], ""),
        (["x"], " \n"),
        (["x"], "short"),
        (["x"], "password123"),
        (["x"], "line one\nline two"),
        (["x"], "with\0nul-inside"),
        (["x"], "euro-€-euro-€"),
        (["x"], b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff"),
        (["x"], '{"a": 1}'),
        (["x"], "{}"),
        (["x"], '{"a b": "some-value-1"}'),
        (["x"], "***"),
        (["x", "--toolkit", "Nope"], VALUE),
        (["x", "--path", "p"], VALUE),
        (["key", "--source", "env"], ""),
        (["files", "--source", "env"], ""),
    ],
)
def test_what_cannot_be_kept_is_refused_and_leaves_nothing(shell: Any, arguments: list[str], given: str) -> None:
    with pytest.raises(CommandError) as caught:
        shell("set_secret", *arguments, given=given)
    assert not Secret.objects.exists()
    assert not Event.objects.filter(subject_kind="secret").exists()
    if len(given) > 3:
        assert str(given) not in str(caught.value)


def test_a_value_for_a_secret_that_lies_elsewhere_is_refused_and_says_where(shell: Any) -> None:
    shell("set_secret", "search-key", "--source", "env")
    with pytest.raises(CommandError, match="source of search-key is env; the value is set there") as caught:
        shell("set_secret", "search-key", "--description", "For search", given=VALUE)
    assert VALUE not in str(caught.value)
    assert (Secret.objects.get().description, SecretVersion.objects.count()) == ("", 0)
    assert shell("set_secret", "search-key", "--source", "env", "--description", "For search") == "search-key is kept\n"
    assert Secret.objects.get().description == "For search"


def test_a_secret_keeps_its_source(shell: Any) -> None:
    shell("set_secret", "search-key", given=VALUE)
    with pytest.raises(CommandError, match="delete it to begin anew"):
        shell("set_secret", "search-key", "--source", "vault")
    assert Secret.objects.get().source == "stored"


def test_a_new_version_with_a_wrong_toolkit_changes_nothing(shell: Any) -> None:
    keep()
    with pytest.raises(CommandError):
        shell("set_secret", "search-key", "--toolkit", "Nope", given="a-newer-value-2")
    assert SecretVersion.objects.count() == 1


# rotate_keys


@pytest.fixture
def everything_sealed(call: MakeCall, unsent: list[Any], ledger: Path) -> dict[str, Any]:
    """One of each thing that is sealed, under the key t1."""
    keep()
    parked = call("Launch")
    queued = call("Ring", ledger=str(ledger))
    answered = call("Token")
    perform(answered.id)
    assert Call.objects.get(pk=answered.id).sealed_answer is not None
    return {"parked": parked.id, "queued": queued.id, "answered": answered.id}


def test_everything_is_sealed_anew_and_works_without_the_old_key(
    shell: Any, settings: Any, everything_sealed: dict[str, Any]
) -> None:
    before = answer_of(Call.objects.get(pk=everything_sealed["answered"]))
    jwt = agents.jwt_secret_of(Agent.objects.get(name="tester"))
    settings.PLACET_SEALING_KEYS = NEW
    said = shell("rotate_keys")
    assert "versions of secrets: 1 sealed anew, 0 already were" in said
    assert "open calls: 2 sealed anew" in said
    assert "exact answers: 1 sealed anew" in said
    assert "JWT secrets of agents: 1 sealed anew" in said
    assert "arguments that people decide about: 1 sealed anew" in said
    assert "Key t1 is no longer needed" in said
    settings.PLACET_SEALING_KEYS = {"t2": NEW["t2"]}
    assert opened(SecretVersion.objects.get()) == {"value": VALUE}
    assert answer_of(Call.objects.get(pk=everything_sealed["answered"])) == before
    assert agents.jwt_secret_of(Agent.objects.get(name="tester")) == jwt
    perform(everything_sealed["queued"])
    assert Call.objects.get(pk=everything_sealed["queued"]).state == State.SUCCEEDED
    assert Approval.objects.get().sealed_arguments is not None


def test_a_second_run_changes_nothing(shell: Any, settings: Any, everything_sealed: dict[str, Any]) -> None:
    settings.PLACET_SEALING_KEYS = NEW
    shell("rotate_keys")
    before = SecretVersion.objects.get().sealed
    assert "versions of secrets: 0 sealed anew, 1 already were" in shell("rotate_keys")
    assert SecretVersion.objects.get().sealed == before


def test_what_cannot_be_opened_is_counted_and_left_alone(shell: Any, settings: Any) -> None:
    keep()
    keep("other-key", "other-value-5")
    broken = seal(b"x", bound_to="another row")
    SecretVersion.objects.filter(secret__name="search-key").update(sealed=broken)
    settings.PLACET_SEALING_KEYS = NEW
    with pytest.raises(CommandError, match="1 cannot be opened"):
        shell("rotate_keys")
    assert bytes(SecretVersion.objects.get(secret__name="search-key").sealed or b"") == broken
    assert key_of(SecretVersion.objects.get(secret__name="other-key").sealed or b"") == "t2"


def test_a_run_that_was_stopped_goes_on_and_reads_in_portions(
    shell: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resealing, "BATCH", 2)
    for number in range(5):
        keep(f"key-{number}", f"some-value-{number}")
    settings.PLACET_SEALING_KEYS = NEW
    moved: list[str] = []

    def failing(plain: bytes, *, bound_to: str) -> bytes:
        if len(moved) == 3:
            raise KeyboardInterrupt
        moved.append(bound_to)
        return seal(plain, bound_to=bound_to)

    monkeypatch.setattr(resealing, "seal", failing)
    with pytest.raises(KeyboardInterrupt):
        shell("rotate_keys")
    assert resealing.keys_in_use() == {"t2": 3, "t1": 2}
    monkeypatch.setattr(resealing, "seal", seal)
    assert "versions of secrets: 2 sealed anew, 3 already were" in shell("rotate_keys")


def test_a_row_that_changed_meanwhile_keeps_what_it_has(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = keep()
    settings.PLACET_SEALING_KEYS = NEW

    def discarded_in_between(sealed: bytes, *, bound_to: str) -> bytes:
        from execution import secretstore

        secretstore.discard(secret, 1, actor="shell")
        return unseal(sealed, bound_to=bound_to)

    monkeypatch.setattr(resealing, "unseal", discarded_in_between)
    assert resealing.reseal(resealing.BOXES[0]).moved == 0
    assert SecretVersion.objects.get().sealed is None


def test_no_event_about_a_secret_tells_its_value_or_length(shell: Any) -> None:
    shell("set_secret", "search-key", given=VALUE)
    events = Event.objects.filter(subject_kind="secret").order_by("seq")
    details = [json.loads(event.detail) for event in events]
    assert details == [{"source": "stored", "toolkits": []}, {"version": 1, "keys": ["value"]}]
