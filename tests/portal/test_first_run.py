"""An empty registry explains itself, and offers the examples to whoever may load them."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from policy.agents import AgentError
from policy.models import Agent
from registry.models import Toolkit

pytestmark = pytest.mark.django_db

DEMO = "/portal/demo/"


@pytest.fixture
def root(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_an_empty_registry_says_what_to_do_next(root: Client) -> None:
    page = root.get("/admin/").content.decode()
    for text in ("There is no toolkit here yet", "import_toolkit", "create_agent", "Load the examples"):
        assert text in page


def test_the_examples_are_loaded_once_and_their_key_is_shown_once(root: Client) -> None:
    answer = root.post(DEMO)
    page = answer.content.decode()
    key = page.partition('aria-label="Key">')[2].partition("<")[0]
    assert key.startswith("plc")
    assert "no-store" in answer.headers["Cache-Control"]
    assert set(Toolkit.objects.values_list("name", flat=True)) == {"Calculator", "Doorbell", "System", "Payments"}
    body = {"request": {"tool_id": "Calculator.Add", "input": {"a": 1, "b": 2}}}
    told = Client().post("/tools/call", body, content_type="application/json", headers={"OXP-API-Key": key})
    assert told.json()["result"]["value"] == 3
    assert root.post(DEMO).headers["Location"] == "/admin/"
    assert Agent.objects.count() == 1


def test_others_are_not_offered_the_examples_and_cannot_load_them(person: Callable[..., User]) -> None:
    client = Client()
    client.force_login(person("pia", "publisher"))
    assert "Load the examples" not in client.get("/admin/").content.decode()
    assert client.post(DEMO).status_code == 403
    assert not Toolkit.objects.exists()


def test_looking_at_the_address_loads_nothing(root: Client) -> None:
    assert root.get(DEMO).status_code == 302
    assert not Toolkit.objects.exists()


def test_a_form_of_another_site_loads_nothing(root: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="root"))
    assert strict.post(DEMO).status_code == 403
    assert not Toolkit.objects.exists()


def test_examples_that_cannot_be_loaded_leave_nothing_and_say_why(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AgentError("there is already an agent named 'demo'")

    monkeypatch.setattr("policy.agents.create", fail)
    answer = root.post(DEMO, follow=True)
    assert "there is already an agent" in answer.content.decode()
    assert not Toolkit.objects.exists()


def test_production_is_offered_no_examples(root: Client, settings: LazySettings) -> None:
    settings.PLACET_PRODUCTION = True
    assert "Load the examples" not in root.get("/admin/").content.decode()
    root.post(DEMO)
    assert not Toolkit.objects.exists()
