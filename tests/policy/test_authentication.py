"""A key or a JWT proves an agent; everything else is refused, at once and without a trace of the token."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpHeaders
from django.utils import timezone

from policy import agents
from policy.agents import NewAgent
from policy.authentication import MAX_TOKEN, NotAuthenticated, authenticate
from policy.models import Credential
from tests.policy.tokens import bearer, signed

# Keys


def test_a_key_opens_the_door_in_either_header(made: NewAgent) -> None:
    by_bearer = authenticate(bearer(made.key))
    by_header = authenticate({"OXP-API-Key": made.key})
    assert by_bearer == by_header
    assert (by_bearer.name, by_bearer.user_id) == ("demo", made.agent.user_id)
    assert by_bearer.credential == f"key:{made.agent.credentials.get().prefix}"


def test_header_names_and_the_scheme_are_read_without_regard_to_case(made: NewAgent) -> None:
    assert authenticate(HttpHeaders({"HTTP_AUTHORIZATION": f"bEaReR   {made.key} "})).name == "demo"
    assert authenticate(HttpHeaders({"HTTP_OXP_API_KEY": made.key})).name == "demo"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic ZGVtbzpkZW1v"},
        {"Authorization": "Digest x"},
        {"OXP-API-Key": ""},
        {"Cookie": "key=KEY"},
    ],
)
def test_nothing_or_another_scheme_is_refused_with_what_to_send(made: NewAgent, headers: dict[str, str]) -> None:
    with pytest.raises(NotAuthenticated, match="OXP-API-Key"):
        authenticate(headers)


@pytest.mark.parametrize(
    "change",
    [
        lambda key: key[:-1],
        lambda key: key + "x",
        lambda key: key.swapcase(),
        lambda key: key.replace("plc_", "abc_"),
        lambda key: key.split("_", 2)[2],
        lambda key: "plc__" + key.split("_", 2)[2],
        lambda key: f"{key}' OR '1'='1",
        lambda key: "plc_' OR 1=1 --_x",
        lambda key: "plc_%_x",
        lambda key: "plc_\0_x",
        lambda key: "plc_\ud800_x",
        lambda key: "plc_ٱ_x",
        lambda key: "plc_" + "a" * 17 + "_x",
        lambda key: "x" * (MAX_TOKEN + 1),
        lambda key: "_",
        lambda key: "{{7*7}}",
    ],
)
def test_a_wrong_key_is_refused_without_an_error_of_the_database(made: NewAgent, change: Callable[[str], str]) -> None:
    with pytest.raises(NotAuthenticated) as refusal:
        authenticate(bearer(change(made.key)))
    assert made.key.split("_", 2)[2] not in str(refusal.value)


def test_a_right_prefix_and_a_wrong_prefix_are_refused_in_the_same_words(made: NewAgent) -> None:
    prefix = made.agent.credentials.get().prefix
    refusals = set()
    for guess in (f"plc_{prefix}_guess", "plc_0123456789_guess", "guess"):
        with pytest.raises(NotAuthenticated) as refusal:
            authenticate(bearer(guess))
        refusals.add(str(refusal.value))
    assert len(refusals) == 1


def test_the_hash_is_compared_in_constant_time_also_for_an_unknown_prefix(
    made: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []

    def compare(given: str, expected: str) -> bool:
        compared.append((given, expected))
        return False

    monkeypatch.setattr("policy.authentication.hmac.compare_digest", compare)
    for guess in (f"plc_{made.agent.credentials.get().prefix}_guess", "plc_0123456789_guess", "no form at all"):
        with pytest.raises(NotAuthenticated):
            authenticate(bearer(guess))
    assert [(len(given), len(expected)) for given, expected in compared] == [(64, 64)] * 3


def test_a_revoked_key_is_refused_at_once_although_it_was_remembered(made: NewAgent) -> None:
    authenticate(bearer(made.key))
    authenticate(bearer(made.key))
    agents.revoke_key(made.agent.credentials.get(), actor="shell")
    with pytest.raises(NotAuthenticated, match="revoked"):
        authenticate(bearer(made.key))


def test_revoking_one_key_leaves_the_other(made: NewAgent) -> None:
    second = agents.new_key(made.agent, actor="shell")
    agents.revoke_key(made.agent.credentials.get(hash=agents.hash_of(made.key)), actor="shell")
    assert authenticate(bearer(second)).name == "demo"


@pytest.mark.parametrize("kind", ["key", "jwt"])
def test_a_disabled_agent_is_refused_at_once_and_comes_back_when_enabled(made: NewAgent, kind: str) -> None:
    token = made.key if kind == "key" else signed(made)
    authenticate(bearer(token))
    agents.set_active(made.agent, False, actor="shell")
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))
    agents.set_active(made.agent, True, actor="shell")
    assert authenticate(bearer(token)).name == "demo"


@pytest.mark.parametrize("kind", ["key", "jwt"])
def test_an_agent_whose_user_was_disabled_is_refused_at_once(made: NewAgent, kind: str) -> None:
    token = made.key if kind == "key" else signed(made)
    authenticate(bearer(token))
    User.objects.filter(pk=made.agent.user_id).update(is_active=False)
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))


def test_an_expired_key_is_refused(made: NewAgent) -> None:
    key = agents.new_key(made.agent, actor="shell", expires_at=timezone.now() + timedelta(seconds=60))
    assert authenticate(bearer(key)).name == "demo"
    Credential.objects.filter(hash=agents.hash_of(key)).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotAuthenticated, match="expired"):
        authenticate(bearer(key))


def test_a_remembered_key_stops_at_its_expiry_without_any_change(
    made: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = agents.new_key(made.agent, actor="shell", expires_at=timezone.now() + timedelta(seconds=0.3))
    assert authenticate(bearer(key)).name == "demo"
    time.sleep(0.5)
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(key))


def test_a_proof_is_remembered_until_something_changes(
    made: NewAgent, django_assert_num_queries: Callable[..., Any]
) -> None:
    authenticate(bearer(made.key))
    with django_assert_num_queries(0):  # the glance at the revision does not count
        authenticate(bearer(made.key))


def test_a_proof_from_before_a_change_is_not_remembered_after_it(
    made: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is revoked, and another request moves the cache on, between our look-up and our remembering."""
    from policy import authentication

    look_up = authentication._by_key
    other = agents.new_key(made.agent, actor="shell")

    def slow(key: str) -> Any:
        found = look_up(key)
        if key == made.key:
            agents.revoke_key(made.agent.credentials.get(hash=agents.hash_of(key)), actor="shell")
            authenticate(bearer(other))
        return found

    monkeypatch.setattr(authentication, "_by_key", slow)
    authenticate(bearer(made.key))
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(made.key))


# Nobody


def test_without_credentials_the_anonymous_agent_acts_if_there_is_one(made: NewAgent, settings: Any) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    assert authenticate({}).credential == "anonymous"


def test_the_anonymous_agent_is_nobody_where_other_machines_can_connect(made: NewAgent, settings: Any) -> None:
    settings.PLACET_ANONYMOUS_AGENT, settings.PLACET_HOST = "demo", "0.0.0.0"
    with pytest.raises(NotAuthenticated):
        authenticate({})


@pytest.mark.parametrize("headers", [bearer("wrong"), {"Authorization": "Bearer "}, {"OXP-API-Key": "wrong"}])
def test_a_bad_credential_never_falls_back_to_the_anonymous_agent(
    made: NewAgent, settings: Any, headers: dict[str, str]
) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    with pytest.raises(NotAuthenticated):
        authenticate(headers)


def test_a_disabled_anonymous_agent_is_nobody(made: NewAgent, settings: Any) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    agents.set_active(made.agent, False, actor="shell")
    with pytest.raises(NotAuthenticated):
        authenticate({})
