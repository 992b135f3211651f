"""A tool that prints a secret it was never given: no record shows it, whoever's it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from guardian.shortcuts import assign_perm

from execution import secretsinforce, secretstore
from execution.models import Call, SecretVersion
from execution.outcomes import outcome_of
from execution.pipeline.perform import perform
from execution.runtimes import RUNTIMES
from execution.runtimes.base import RunResult
from policy.models import Agent
from registry.models import Toolkit
from tests.execution.secretkit import VALUE, FakeRuntime, keep, publish_sender

if TYPE_CHECKING:
    from policy.caller import Caller
    from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db


@pytest.fixture
def printed(caller: Caller, call: MakeCall, unsent: list[Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a tool that is sent nothing and prints a text."""
    publish_sender({})
    assign_perm("registry.call_toolkit", Agent.objects.get(name="tester").user, Toolkit.objects.get(name="Sender"))

    def run(text: str) -> Call:
        monkeypatch.setitem(RUNTIMES, "http", FakeRuntime(lambda invocation: RunResult(value=text)))
        outcome = call("Sender.Send", text="hello")
        perform(outcome.id)
        return Call.objects.get(pk=outcome.id)

    return run


def test_a_secret_of_another_tool_is_masked_in_what_is_kept_and_the_caller_gets_its_answer(printed: Any) -> None:
    keep()
    done = printed(f"found {VALUE} lying around")
    assert VALUE not in done.result
    assert "[REDACTED:search-key:" in done.result
    assert outcome_of(done).value == f"found {VALUE} lying around"


def test_it_is_masked_from_the_moment_it_is_kept_until_it_is_discarded(printed: Any) -> None:
    assert VALUE in printed(VALUE).result
    secret = keep()
    assert VALUE not in printed(VALUE).result
    secretstore.discard(secret, 1, actor="test")
    assert VALUE in printed(VALUE).result


def test_an_older_version_counts_as_long_as_it_is_not_discarded(printed: Any) -> None:
    secret = keep()
    secretstore.add_version(secret, {"value": "another-canary-55aa"}, actor="test")
    done = printed(f"{VALUE} another-canary-55aa")
    assert VALUE not in done.result
    assert "another-canary-55aa" not in done.result


def test_a_secret_in_the_environment_counts_too(printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACET_SECRET_OUTSIDE", "canary-from-outside-1")
    secretstore.create("outside", None, source="env", actor="test")
    assert "canary-from-outside-1" not in printed("it was canary-from-outside-1").result


def test_a_value_that_cannot_be_opened_is_told_and_does_not_hide_the_others(
    printed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lost = secretstore.create("lost", {"value": "a value nobody can read"}, actor="test")
    SecretVersion.objects.filter(secret=lost).update(sealed=b"not a box")
    keep()
    assert VALUE not in printed(VALUE).result
    assert "cannot be opened" in caplog.text


def test_while_nothing_changes_the_secrets_are_not_read_again(django_assert_num_queries: Any) -> None:
    keep()
    assert secretsinforce.needles()
    with django_assert_num_queries(0):  # the revision is read below Django's count
        assert secretsinforce.needles()
