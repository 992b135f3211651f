"""Secrets in the admin: kept, rotated, discarded and deleted by people who may, and never shown."""

import html

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from execution import secrets, secretstore
from execution.models import Secret, SecretVersion
from execution.secretsources.stored import opened
from tests.execution.secretkit import BEARER, VALUE, keep, sender

pytestmark = pytest.mark.django_db

ALL = ("view_secret", "add_secret", "change_secret", "delete_secret")


def browser(*codenames: str) -> Client:
    user = User.objects.create_user(f"person-{len(codenames)}", password=None, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def keeper() -> Client:
    return browser(*ALL)


def at(secret: Secret, step: str = "change") -> str:
    return reverse(f"admin:execution_secret_{step}", args=[secret.pk])


def test_a_secret_is_kept_by_the_form_and_shown_by_no_page(keeper: Client) -> None:
    add = reverse("admin:execution_secret_add")
    assert keeper.get(add).status_code == 200
    answer = keeper.post(add, {"name": "search-key", "source": "stored", "value": f" {VALUE} ", "description": "d"})
    assert answer.status_code == 302
    secret = Secret.objects.get()
    assert opened(SecretVersion.objects.get()) == {"value": f" {VALUE} "}  # exactly as it was given
    for address in (reverse("admin:execution_secret_changelist"), at(secret)):
        page = keeper.get(address)
        assert page.status_code == 200
        assert VALUE not in page.content.decode()
    assert "no-store" in keeper.get(at(secret))["Cache-Control"]


def test_a_form_that_comes_back_does_not_hold_the_value(keeper: Client) -> None:
    for value in (f"{VALUE}\r\nx", "short-7"):
        page = keeper.post(reverse("admin:execution_secret_add"), {"name": "x", "source": "stored", "value": value})
        assert page.status_code == 200
        assert value not in html.unescape(page.content.decode())
    assert not Secret.objects.exists()


def test_versions_settings_discarding_and_deleting(keeper: Client) -> None:
    secret = keep()
    keeper.post(at(secret, "new_version"), {"value": "a-newer-value-2"})
    assert secret.versions.count() == 2
    keeper.post(at(secret, "new_version"), {"value": "short"})
    keeper.post(at(secret, "new_version"), {"value": ""})
    assert secret.versions.count() == 2
    keeper.post(at(secret, "settings"), {"description": "For search"})
    assert Secret.objects.get().description == "For search"
    keeper.post(at(secret, "discard"), {"number": "1"})
    assert SecretVersion.objects.get(number=1).sealed is None
    assert keeper.post(at(secret, "discard"), {"number": "x"}).status_code == 404
    keeper.post(at(secret, "delete"), {"name": "something else"})
    assert Secret.objects.exists()
    keeper.post(at(secret, "delete"), {"name": "search-key"})
    assert not Secret.objects.exists()


def test_saving_the_settings_does_not_drop_a_toolkit_that_one_cannot_see(keeper: Client) -> None:
    sender({}, name="Hidden")
    secret = keep(toolkits=["Hidden"])
    keeper.post(at(secret, "settings"), {"description": "changed"})
    assert [toolkit.name for toolkit in secret.toolkits.all()] == ["Hidden"]


def test_the_page_tells_which_tools_name_and_used_it(keeper: Client) -> None:
    secretstore._noted.clear()
    secret = keep(value={"value": VALUE, "other": VALUE})
    secrets.resolve(sender(BEARER))
    sender({"profile": "bearer", "secretRef": "search-key:other"}, name="Second")
    sender({"profile": "bearer", "secretRef": "search-key-2"}, name="Third")
    page = keeper.get(at(secret)).content.decode()
    assert page.count("Sender.Send@1.0.0") == 2  # names it, and used it
    assert page.count("Second.Send@1.0.0") == 1
    assert "Third.Send" not in page


def test_the_page_of_a_secret_elsewhere_says_where_to_put_it(keeper: Client) -> None:
    for source, path, said in (
        ("env", "", "PLACET_SECRET_AN_ENV"),
        ("file", "", "/an-file"),
        ("vault", "team/app", "secret/team/app"),
    ):
        secret = secretstore.create(f"an-{source}", None, actor="shell", source=source, path=path)
        page = keeper.get(at(secret)).content.decode()
        assert said in page
        assert "Add version" not in page


def test_without_a_permission_there_is_no_page_and_no_step() -> None:
    secret = keep()
    viewer, stranger = browser("view_secret"), browser()
    assert viewer.get(at(secret)).status_code == 200
    assert "Add version" not in viewer.get(at(secret)).content.decode()
    assert stranger.get(at(secret)).status_code == 403
    assert stranger.get(reverse("admin:execution_secret_changelist")).status_code == 403
    for client in (viewer, stranger):
        assert client.get(reverse("admin:execution_secret_add")).status_code == 403
        for step, body in (
            ("new_version", {"value": "a-newer-value-2"}),
            ("settings", {}),
            ("discard", {"number": "1"}),
            ("delete", {"name": "search-key"}),
        ):
            assert client.post(at(secret, step), body).status_code == 403
    assert opened(SecretVersion.objects.get()) == {"value": VALUE}


def test_a_step_is_never_done_by_a_link(keeper: Client) -> None:
    secret = keep()
    for step in ("new_version", "settings", "discard", "delete"):
        assert keeper.get(at(secret, step)).status_code == 405
