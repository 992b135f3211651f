"""Secrets on a page: what there is, who uses it and how old it is; never a value, and not for everybody."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from execution import secretstore
from execution.models import SecretUse, SecretVersion
from execution.secretvalues import from_text
from registry.models import Tool
from tests.execution.secretkit import BEARER, VALUE, publish_sender

pytestmark = pytest.mark.django_db

Seen = Callable[..., str]


def keep(name: str, value: str = VALUE) -> None:
    secretstore.create(name, from_text(value), actor="shell")


def test_a_secret_is_told_by_its_tools_use_and_age_and_never_by_its_value(
    person: Callable[..., User], seen_by: Seen
) -> None:
    publish_sender(BEARER)
    keep("search-key")
    keep("idle-key")
    secret = SecretVersion.objects.get(secret__name="search-key").secret
    SecretUse.objects.create(secret=secret, tool=Tool.objects.get(), used_at=timezone.now())
    SecretVersion.objects.filter(secret=secret).update(created_at=timezone.now() - timedelta(days=200))
    page = seen_by(person("otto", "operator"), "/secrets/")
    assert VALUE not in page
    of_search = page.partition(">search-key</a>")[2].partition("</tr>")[0]
    for part in ("Sender.Send", "old", "every toolkit", "Stored here"):
        assert part in of_search
    assert "never" not in of_search
    of_idle = page.partition(">idle-key</a>")[2].partition("</tr>")[0]
    assert "no tool" in of_idle
    assert "never" in of_idle
    assert "idle-key" not in seen_by(User.objects.get(username="otto"), "/secrets/?q=search")


def test_a_secret_that_tools_name_and_nobody_keeps_is_called_missing(
    person: Callable[..., User], seen_by: Seen
) -> None:
    publish_sender(BEARER)
    otto = person("otto", "operator")
    assert "<code>search-key</code> for Sender.Send" in seen_by(otto, "/secrets/")
    keep("search-key")
    assert "nobody keeps" not in seen_by(otto, "/secrets/")


@pytest.mark.parametrize("role", ["publisher", "approver", "policy owner", "auditor"])
def test_other_roles_do_not_learn_which_secrets_there_are(person: Callable[..., User], role: str) -> None:
    keep("search-key")
    client = Client()
    client.force_login(person("one", role))
    answer = client.get("/secrets/")
    assert answer.status_code == 403
    assert "search-key" not in answer.content.decode()


def test_many_secrets_cost_as_few(person: Callable[..., User]) -> None:
    client = Client()
    client.force_login(person("otto", "operator"))

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/secrets/").status_code == 200
        return len(queries)

    publish_sender(BEARER)
    keep("search-key")
    client.get("/secrets/")
    few = cost()
    for number in range(20):
        keep(f"key{number}")
    assert cost() == few < 25
