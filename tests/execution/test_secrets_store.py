"""The store: versions in order whoever writes, evidence for every change, and a database that keeps it true."""

import threading
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from audit.models import Event
from execution import secretstore
from execution.models import Secret, SecretUse, SecretVersion
from execution.secretstore import SecretError
from execution.secretvalues import from_json
from execution.sentences import sentence
from tests.execution.secretkit import VALUE, keep, sender

pytestmark = pytest.mark.django_db


def at_once(count: int, step: Any) -> list[Any]:
    """What `count` threads with connections of their own got, or the kind of error that they met."""
    gate, got = threading.Barrier(count), []

    def one(number: int) -> None:
        try:
            gate.wait(10)
            got.append(step(number))
        except Exception as error:
            got.append(type(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return got


@pytest.mark.django_db(transaction=True)
def test_values_that_come_at_once_are_versions_one_after_the_other() -> None:
    secret = keep()
    at_once(6, lambda number: secretstore.add_version(secret, from_json(f"some-value-{number}"), actor="shell"))
    assert sorted(SecretVersion.objects.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6, 7]
    assert Event.objects.filter(event="secret.version_added").count() == 7


@pytest.mark.django_db(transaction=True)
def test_of_two_who_make_the_same_secret_one_is_told_so() -> None:
    got = at_once(4, lambda number: secretstore.create("one", from_json(f"some-value-{number}"), actor="shell").name)
    assert sorted(got, key=str) == [SecretError, SecretError, SecretError, "one"]
    assert SecretVersion.objects.count() == 1


def test_a_change_leaves_an_event_and_no_change_none() -> None:
    sender({}, name="Search")
    secret = keep()
    assert secretstore.change(secret, actor="user:ana", toolkits=["Search"])
    assert not secretstore.change(secret, actor="user:ana", toolkits=["search"])
    assert not secretstore.change(secret, actor="user:ana")
    event = Event.objects.get(event="secret.changed")
    assert (event.actor, event.subject_id) == ("user:ana", "search-key")
    assert "Search" in event.detail


def test_a_secret_that_was_deleted_meanwhile_takes_nothing_more() -> None:
    secret = keep()
    secretstore.delete(Secret.objects.get(), actor="shell")
    for step in (
        lambda: secretstore.add_version(secret, from_json(VALUE), actor="shell"),
        lambda: secretstore.change(secret, actor="shell", description="x"),
        lambda: secretstore.discard(secret, 1, actor="shell"),
        lambda: secretstore.delete(secret, actor="shell"),
    ):
        with pytest.raises(SecretError, match="was deleted"):
            step()


def test_a_call_does_not_fail_because_a_use_cannot_be_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    secret, tool = keep(), sender({})
    secretstore._noted.clear()

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise DatabaseError("no")

    monkeypatch.setattr(SecretUse.objects, "filter", refuse)
    secretstore.used(secret.pk, tool.id)


@pytest.mark.parametrize("facts", [{"sealed": None}, {"discarded_at": "2026-01-01T00:00:00Z"}])
def test_no_version_is_empty_without_being_discarded_nor_discarded_with_its_value(facts: dict[str, Any]) -> None:
    keep()
    with pytest.raises(IntegrityError), transaction.atomic():
        SecretVersion.objects.update(**facts)


def test_a_replaced_token_is_told_in_words() -> None:
    assert "went on with a new one" in sentence("call.auth_expired", "worker", {"attempt": 1})
