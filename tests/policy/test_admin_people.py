"""People and groups in the admin: every change is told, and nobody climbs."""

import json

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from audit.models import Event
from policy.agents import NewAgent

PASSWORD = "a long enough passphrase"


@pytest.fixture
def root(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def clerk(db: None) -> Client:
    """Staff who may view, add and change users, but is no superuser."""
    user = User.objects.create_user("clerk", is_staff=True)
    names = ["view_user", "add_user", "change_user", "delete_user", "view_group", "add_group", "change_group"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client = Client()
    client.force_login(user)
    return client


def test_making_and_changing_a_user_is_on_the_trail_without_the_password(root: Client) -> None:
    form = {"username": "nina", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    assert root.post(reverse("admin:auth_user_add"), form).status_code == 302
    nina = User.objects.get(username="nina")
    told = Event.objects.get(subject_kind="user", subject_id="nina", event="user.created")
    assert told.actor == "user:root"
    assert PASSWORD not in str(told.detail)
    assert root.get(reverse("admin:auth_user_change", args=[nina.pk])).status_code == 200
    assert root.post(reverse("admin:auth_user_delete", args=[nina.pk]), {"post": "yes"}).status_code == 302
    assert Event.objects.filter(subject_id="nina", event="user.deleted").exists()


def test_making_a_group_is_on_the_trail(root: Client) -> None:
    assert root.post(reverse("admin:auth_group_add"), {"name": "approvers", "permissions": []}).status_code == 302
    assert Event.objects.filter(subject_kind="group", subject_id="approvers", event="group.created").exists()


def test_the_user_behind_an_agent_is_not_shown_and_gets_no_password(root: Client, made: NewAgent) -> None:
    assert "agent:demo" not in root.get(reverse("admin:auth_user_changelist")).content.decode()
    pk = made.agent.user_id
    assert root.get(reverse("admin:auth_user_change", args=[pk])).status_code == 302
    form = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert root.post(reverse("admin:auth_user_password_change", args=[pk]), form).status_code in (302, 404)
    assert not User.objects.get(pk=pk).has_usable_password()


def test_a_user_name_cannot_pretend_to_be_an_agents(root: Client) -> None:
    form = {"username": "agent:fake", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    assert root.post(reverse("admin:auth_user_add"), form).status_code == 200
    assert not User.objects.filter(username="agent:fake").exists()


def test_who_may_change_users_cannot_make_anyone_more_powerful(clerk: Client) -> None:
    clerk_user, group = User.objects.get(username="clerk"), Group.objects.create(name="powers")
    form = {
        "username": "clerk",
        "is_active": "on",
        "is_superuser": "on",
        "is_staff": "on",
        "groups": [group.pk],
        "user_permissions": list(Permission.objects.values_list("pk", flat=True)[:5]),
    }
    clerk.post(reverse("admin:auth_user_change", args=[clerk_user.pk]), form)
    after = User.objects.get(username="clerk")
    assert not after.is_superuser
    assert not after.groups.exists()
    assert after.user_permissions.count() == 7
    clerk.post(reverse("admin:auth_group_change", args=[group.pk]), {"name": "powers", "permissions": [1, 2]})
    assert not group.permissions.exists()


def test_a_superuser_is_beyond_the_reach_of_who_may_change_users(clerk: Client) -> None:
    boss = User.objects.create_superuser("boss", password=PASSWORD)
    form = {"password1": PASSWORD + "!", "password2": PASSWORD + "!", "usable_password": "true"}
    clerk.post(reverse("admin:auth_user_password_change", args=[boss.pk]), form)
    clerk.post(reverse("admin:auth_user_change", args=[boss.pk]), {"username": "boss"})
    clerk.post(reverse("admin:auth_user_delete", args=[boss.pk]), {"post": "yes"})
    after = User.objects.get(username="boss")
    assert after.check_password(PASSWORD)
    assert after.is_active


def test_which_rights_a_person_got_and_lost_is_on_the_trail(root: Client) -> None:
    nina = User.objects.create_user("nina", is_staff=True)
    group = Group.objects.create(name="approvers")
    permission = Permission.objects.get(content_type__app_label="policy", codename="edit_policy")
    form = {
        "username": "nina",
        "is_active": "on",
        "is_superuser": "on",
        "groups": [group.pk],
        "user_permissions": [permission.pk],
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00",
    }
    assert root.post(reverse("admin:auth_user_change", args=[nina.pk]), form).status_code == 302
    told = Event.objects.get(subject_kind="user", subject_id="nina", event="user.rights_changed")
    assert told.actor == "user:root"
    assert json.loads(told.detail) == {
        "given": ["group:approvers", "is_superuser", "policy.edit_policy"],
        "taken": ["is_staff"],
    }


def test_which_permissions_a_group_got_is_on_the_trail(root: Client) -> None:
    group = Group.objects.create(name="approvers")
    permission = Permission.objects.get(content_type__app_label="policy", codename="break_glass")
    page = reverse("admin:auth_group_change", args=[group.pk])
    assert root.post(page, {"name": "approvers", "permissions": [permission.pk]}).status_code == 302
    told = Event.objects.get(subject_kind="group", subject_id="approvers", event="group.rights_changed")
    assert json.loads(told.detail) == {"given": ["policy.break_glass"], "taken": []}
    assert root.post(page, {"name": "approvers", "permissions": [permission.pk]}).status_code == 302
    assert Event.objects.filter(event="group.rights_changed").count() == 1


@pytest.mark.parametrize("right", ["groups", "is_superuser", "is_staff", "user_permissions"])
def test_nobody_changes_their_own_rights_not_even_a_superuser(root: Client, clerk: Client, right: str) -> None:
    group = Group.objects.create(name="approvers")
    for client, name in ((root, "root"), (clerk, "clerk")):
        user = User.objects.get(username=name)
        page = reverse("admin:auth_user_change", args=[user.pk])
        assert client.get(page).status_code == 200
        assert client.post(page, {"username": name, "is_active": "on", right: [group.pk]}).status_code == 403
        assert not user.groups.exists()
        assert User.objects.get(pk=user.pk).is_staff


def test_one_still_changes_ones_own_name_and_keeps_ones_rights(root: Client) -> None:
    user = User.objects.get(username="root")
    page = reverse("admin:auth_user_change", args=[user.pk])
    form = {"username": "root", "first_name": "Ruth", "is_active": "on"}
    form |= {"last_login_0": "", "last_login_1": "", "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    assert root.post(page, form).status_code == 302
    user.refresh_from_db()
    assert (user.first_name, user.is_superuser, user.is_staff) == ("Ruth", True, True)


def test_only_a_superuser_gives_a_group_a_new_name(clerk: Client, root: Client) -> None:
    group = Group.objects.create(name="tea round")
    page = reverse("admin:auth_group_change", args=[group.pk])
    clerk.post(page, {"name": "payments-approvers"})
    assert Group.objects.get(pk=group.pk).name == "tea round"
    root.post(page, {"name": "payments-approvers", "permissions": []})
    assert Group.objects.get(pk=group.pk).name == "payments-approvers"
