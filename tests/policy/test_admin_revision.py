"""Policy in the web admin: to read, by those who may."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from policy import revisions
from policy.models import Rule
from tests.policy.rules import rule

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader() -> Client:
    user = User.objects.create_user("rita", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_revision"))
    return browser(user)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def live() -> None:
    rules = [rule("small refunds", tools=["Payments.Refund"], when="input.amount <= 100.0"), rule("never", "deny")]
    revisions.activate(revisions.new_draft(by=None, rules=rules, note="spring"), by=None)


def test_revisions_and_rules_are_read_as_sentences(reader: Client) -> None:
    told = "Any agent may call Payments.Refund when input.amount &lt;= 100.0."
    assert "spring" in reader.get("/admin/policy/revision/").content.decode()
    assert told in reader.get("/admin/policy/revision/1/change/").content.decode()
    assert told in reader.get("/admin/policy/rule/?q=small").content.decode()
    row = Rule.objects.get(name="small refunds")
    assert "small refunds" in reader.get(f"/admin/policy/rule/{row.pk}/change/").content.decode()


def test_nothing_is_written_there_not_even_by_a_superuser() -> None:
    root, row = browser(User.objects.create_superuser("root")), Rule.objects.get(name="small refunds")
    for path in (
        "/admin/policy/revision/add/",
        "/admin/policy/revision/1/change/",
        "/admin/policy/revision/1/delete/",
        "/admin/policy/rule/add/",
        f"/admin/policy/rule/{row.pk}/change/",
        f"/admin/policy/rule/{row.pk}/delete/",
    ):
        assert root.post(path, {"note": "other", "name": "other", "post": "yes"}).status_code == 403
    assert Rule.objects.filter(name="small refunds").exists()


def test_who_may_not_read_policy_does_not_see_it() -> None:
    stranger = browser(User.objects.create_user("sam", is_staff=True))
    for path in ("/admin/policy/revision/", "/admin/policy/revision/1/change/", "/admin/policy/rule/"):
        assert stranger.get(path).status_code == 403
