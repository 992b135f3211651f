"""The page of who may do what with a toolkit: the same writer, the same refusals, and never by a GET."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm, get_perms

from audit.models import Event
from policy import permissions
from policy.models import Notice
from registry.models import Toolkit
from tests.factories.cast import Cast, cast_of


@pytest.fixture
def cast(toolkit: Toolkit) -> Cast:
    cast = cast_of(toolkit)
    Toolkit.objects.filter(pk=toolkit.pk).update(owner=cast.stranger)  # who owns it has no other permission on it
    return cast


@pytest.fixture
def page(toolkit: Toolkit) -> str:
    return reverse("admin:registry_toolkit_permissions", args=[toolkit.pk])


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_the_owner_gives_takes_and_sees_a_table_of_all(cast: Cast, toolkit: Toolkit, page: str) -> None:
    client = browser(cast.stranger)
    shown = client.get(page).content.decode()
    for holder in ("user:publisher", "user:reviewer", "agent:demo", "agent:release-bot"):
        assert holder in shown
    assert client.post(page, {"holder": "user:viewer", "give": ["approve", "audit"]}).status_code == 302
    assert set(get_perms(cast.viewer, toolkit)) == {"view_toolkit", "approve_toolkit", "audit_toolkit"}
    assert client.post(page, {"cell": "take approve user:viewer"}).status_code == 302
    assert client.post(page, {"cell": "give review user:viewer"}).status_code == 302
    assert set(get_perms(cast.viewer, toolkit)) == {"view_toolkit", "audit_toolkit", "review_toolkit"}
    told = Event.objects.filter(subject_kind="toolkit", actor="user:stranger").order_by("id")
    assert [event.event for event in told] == ["permission.given"] * 2 + ["permission.taken", "permission.given"]


def test_a_group_gets_permissions_too(cast: Cast, toolkit: Toolkit, page: str) -> None:
    group = Group.objects.create(name="the approvers, all of them")
    client = browser(cast.superuser)
    assert client.post(page, {"holder": f"group:{group.name}", "give": ["approve"]}).status_code == 302
    cast.viewer.groups.add(group)
    assert "approve_toolkit" in get_perms(cast.viewer, toolkit)
    assert client.post(page, {"cell": f"take approve group:{group.name}"}).status_code == 302
    assert permissions.held(toolkit, group).permissions == ()


@pytest.mark.parametrize("role", ["reviewer", "viewer", "with_model_permissions"])
def test_nobody_else_sees_or_changes_it(cast: Cast, toolkit: Toolkit, page: str, role: str) -> None:
    user = getattr(cast, role)
    before = permissions.all_held(toolkit)
    client = browser(user)
    assert client.get(page).status_code == 403
    assert client.post(page, {"holder": f"user:{role}", "give": ["approve"]}).status_code == 403
    assert client.post(page, {"cell": f"give approve user:{role}"}).status_code == 403
    assert permissions.all_held(toolkit) == before
    assert page not in client.get(reverse("admin:registry_toolkit_change", args=[toolkit.pk])).content.decode()


def test_nobody_gives_to_themselves_on_the_page_either(cast: Cast, toolkit: Toolkit, page: str) -> None:
    client = browser(cast.stranger)
    assert client.post(page, {"holder": "user:stranger", "give": ["view", "approve"]}).status_code == 403
    assert client.post(page, {"cell": "give approve user:stranger"}).status_code == 403
    assert get_perms(cast.stranger, toolkit) == []


def test_who_publishes_is_offered_what_they_may_give(cast: Cast, toolkit: Toolkit, page: str) -> None:
    client = browser(cast.publisher)
    shown = client.get(page).content.decode()
    assert 'value="take call agent:demo"' in shown
    assert 'value="give approve user:viewer"' not in shown
    assert client.post(page, {"holder": "user:viewer", "give": ["approve"]}).status_code == 200
    assert client.post(page, {"cell": "give approve user:viewer"}).status_code == 403
    assert get_perms(cast.viewer, toolkit) == ["view_toolkit"]


def test_an_auditor_reads_the_table_and_is_offered_no_button(cast: Cast, toolkit: Toolkit, page: str) -> None:
    assign_perm("registry.audit_toolkit", cast.viewer, toolkit)
    shown = browser(cast.viewer).get(page).content.decode()
    assert "agent:demo" in shown
    assert 'name="cell"' not in shown
    assert 'name="give"' not in shown


def test_an_agent_gets_nothing_that_is_a_persons(cast: Cast, toolkit: Toolkit, page: str) -> None:
    client = browser(cast.superuser)
    assert 'value="give approve agent:demo"' not in client.get(page).content.decode()
    refused = client.post(page, {"holder": "agent:demo", "give": ["view", "approve"]})
    assert "is for people" in refused.content.decode()
    told = client.post(page, {"cell": "give approve agent:demo"}, follow=True)
    assert "is for people" in told.content.decode()
    assert permissions.held(toolkit, cast.agent.agent).permissions == ("call",)  # all of it or nothing


@pytest.mark.parametrize("holder", ["viewer", "user:' OR 1=1 --", "group:", "user:agent:demo", "x" * 300, ""])
def test_a_name_that_nobody_has_is_said_so(cast: Cast, page: str, holder: str) -> None:
    response = browser(cast.superuser).post(page, {"holder": holder, "give": ["view"]})
    assert response.status_code == 200
    assert response.context["form"].errors["holder"]


@pytest.mark.parametrize(
    "cell", ["", "give", "give delete user:viewer", "drop view user:viewer", "take view user:none"]
)
def test_a_cell_that_is_not_in_the_table_changes_nothing(cast: Cast, toolkit: Toolkit, page: str, cell: str) -> None:
    before = permissions.all_held(toolkit)
    assert browser(cast.superuser).post(page, {"cell": cell}).status_code in (302, 404)
    assert permissions.all_held(toolkit) == before


def test_the_page_needs_the_token_of_its_form_and_a_get_changes_nothing(
    cast: Cast, toolkit: Toolkit, page: str
) -> None:
    before = permissions.all_held(toolkit)
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.superuser)
    assert client.post(page, {"cell": "take call agent:demo"}).status_code == 403
    assert client.get(f"{page}?cell=take+call+agent:demo").status_code == 200
    assert client.put(page).status_code == 403
    assert browser(cast.superuser).put(page).status_code == 405
    assert permissions.all_held(toolkit) == before


def test_the_toolkits_page_leads_to_permissions_and_requests(cast: Cast, toolkit: Toolkit, page: str) -> None:
    shown = browser(cast.publisher).get(reverse("admin:registry_toolkit_change", args=[toolkit.pk])).content.decode()
    requests = reverse("admin:registry_toolkit_access_requests", args=[toolkit.pk])
    assert page in shown
    assert requests in shown
    led = browser(cast.publisher).get(requests)
    assert led["Location"] == f"/admin/policy/accessrequest/?toolkit__id__exact={toolkit.pk}"
    assert browser(cast.publisher).get(led["Location"]).status_code == 200


def test_notices_are_shown_to_those_who_may_view_them(cast: Cast) -> None:
    Notice.objects.create(
        kind="approval.asked", channel="mail", target="ana@example.org", content={"subject": "x\u202ey"}, error="<b>"
    )
    Notice.objects.update(state="failed", attempts=8)
    address = reverse("admin:policy_notice_changelist")
    assert browser(cast.viewer).get(address).status_code == 403
    shown = browser(cast.superuser).get(address).content.decode()
    assert "ana@example.org" in shown
    assert "x⟨U+202E⟩y" in shown
    again = {"action": "send_again", "_selected_action": [Notice.objects.get().pk]}
    assert browser(cast.superuser).post(address, again).status_code == 302
    assert Notice.objects.get().state == "waiting"


def test_who_owns_a_toolkit_sees_it_and_who_publishes_it_does_not_take_it_over(cast: Cast, toolkit: Toolkit) -> None:
    change = reverse("admin:registry_toolkit_change", args=[toolkit.pk])
    assert browser(cast.stranger).get(change).status_code == 200
    assert cast.api("stranger").get("/api/toolkits/Calculator/").status_code == 200
    taken = cast.api("publisher").patch("/api/toolkits/Calculator/", {"title": "x", "owner": "publisher"}, "json")
    assert taken.status_code == 403
    inline = {"versions-TOTAL_FORMS": "0", "versions-INITIAL_FORMS": "0"}
    form = {"title": "Mine", "description": "", "owner": cast.publisher.pk, **inline}
    assert browser(cast.publisher).post(change, form).status_code == 302
    toolkit.refresh_from_db()
    assert (toolkit.owner, toolkit.title) == (cast.stranger, "Mine")
    assert cast.api("superuser").patch("/api/toolkits/Calculator/", {"owner": "viewer"}, "json").status_code == 200
