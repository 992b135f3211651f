"""Toolkits, tools and capabilities in the web admin, and who gives permissions on them."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from guardian.shortcuts import assign_perm

from audit.models import Event
from registry.models import Toolkit
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import numbers, published


@pytest.fixture
def cast(db: None) -> Cast:
    published(
        "Calculator",
        "1.0.0",
        {"name": "Add", "capabilities": ["data.read"]},
        {"name": "Power", "risk": "medium", "input": numbers("base", exponent={"type": "number"})},
    )
    return cast_of(Toolkit.objects.get(name="Calculator"))


@pytest.fixture
def toolkit(cast: Cast) -> Toolkit:
    return Toolkit.objects.get(name="Calculator")


def browser(user: object) -> Client:
    client = Client()
    client.force_login(user)  # type: ignore[arg-type]
    return client


def change(toolkit: Toolkit, step: str = "change", *more: int) -> str:
    return reverse(f"admin:registry_toolkit_{step}", args=[toolkit.pk, *more])


# Toolkits


def test_the_list_shows_the_latest_version_and_only_what_is_yours(cast: Cast) -> None:
    address = reverse("admin:registry_toolkit_changelist")
    assert "1.0.0" in browser(cast.viewer).get(address).content.decode()
    assert "Calculator" not in browser(cast.stranger).get(address).content.decode()


def test_a_toolkit_is_made_and_described_on_the_trail(cast: Cast) -> None:
    cast.publisher.user_permissions.add(Permission.objects.get(codename="add_toolkit"))
    client = browser(cast.publisher)
    form = {"name": "Fresh", "title": "New", "description": "", "owner": cast.publisher.pk}
    assert client.post(reverse("admin:registry_toolkit_add"), form).status_code == 302
    made = Toolkit.objects.get(name="Fresh")
    inline = {"versions-TOTAL_FORMS": 0, "versions-INITIAL_FORMS": 0}
    assert client.post(change(made), {**form, **inline, "title": "Newer", "name": "Renamed"}).status_code == 302
    assert Toolkit.objects.get(pk=made.pk).title == "Newer"
    assert Toolkit.objects.get(pk=made.pk).name == "Fresh"
    told = Event.objects.filter(subject_kind="toolkit", subject_id="Fresh", actor="user:publisher")
    assert list(told.order_by("seq").values_list("event", flat=True)) == ["toolkit.created", "toolkit.described"]


@pytest.mark.parametrize("name", ["calculator", "1st", "a b", "é", "", "<b>"])
def test_a_name_that_cannot_be_is_refused_with_words(cast: Cast, name: str) -> None:
    form = {"name": name, "title": "", "description": "", "owner": ""}
    response = browser(cast.superuser).post(reverse("admin:registry_toolkit_add"), form)
    assert response.status_code == 200
    assert response.context["adminform"].form.errors
    assert Toolkit.objects.count() == 1


def test_only_publishers_describe_and_nobody_deletes(cast: Cast, toolkit: Toolkit) -> None:
    form = {"title": "Hacked", "description": "", "owner": ""}
    for role, status in (("viewer", 403), ("reviewer", 403), ("with_model_permissions", 403), ("stranger", 302)):
        assert browser(getattr(cast, role)).post(change(toolkit), form).status_code == status
    assert browser(cast.viewer).get(change(toolkit)).status_code == 200
    assert browser(cast.viewer).get(reverse("admin:registry_toolkit_add")).status_code == 403
    assert browser(cast.superuser).post(change(toolkit, "delete"), {"post": "yes"}).status_code == 403
    assert Toolkit.objects.get().title != "Hacked"


def test_an_owner_is_a_link_only_for_who_may_open_the_account(cast: Cast, toolkit: Toolkit) -> None:
    Toolkit.objects.filter(pk=toolkit.pk).update(owner=cast.stranger)
    account = reverse("admin:auth_user_change", args=[cast.stranger.pk])
    for reader in (cast.publisher, cast.viewer):
        text = browser(reader).get(change(toolkit)).content.decode()
        assert cast.stranger.get_username() in text
        assert account not in text
    cast.viewer.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert account in browser(cast.viewer).get(change(toolkit)).content.decode()


def test_an_agent_cannot_be_made_the_owner(cast: Cast, toolkit: Toolkit) -> None:
    form = {"title": "", "description": "", "owner": cast.agent.agent.user_id}
    response = browser(cast.superuser).post(change(toolkit), form)
    assert "owner" in response.context["adminform"].form.errors


# Tools


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["Calculator.Add@1.0.0", "Calculator.Power@1.0.0"]),
        ("?q=exponent", ["Calculator.Power@1.0.0"]),
        ("?q=calculator.add", ["Calculator.Add@1.0.0"]),
        ("?q=%27%20OR%201=1", []),
        ("?risk__exact=2", ["Calculator.Power@1.0.0"]),
        ("?runtime=http", ["Calculator.Add@1.0.0", "Calculator.Power@1.0.0"]),
        ("?runtime=python", []),
        ("?version__state__exact=draft", []),
    ],
)
def test_tools_are_found_in_the_admin(cast: Cast, query: str, found: list[str]) -> None:
    response = browser(cast.viewer).get(reverse("admin:registry_tool_changelist") + query)
    assert [str(tool) for tool in response.context["cl"].result_list] == found


def test_a_filter_that_does_not_exist_leaks_nothing(cast: Cast) -> None:
    address = reverse("admin:registry_tool_changelist")
    for query in ("?version__toolkit__owner__password__startswith=x", "?version__created_by__password=x"):
        response = browser(cast.superuser).get(address + query)
        assert response.status_code in (302, 400)


def test_tools_and_capabilities_cannot_be_changed(cast: Cast, toolkit: Toolkit) -> None:
    root, tool = browser(cast.superuser), toolkit.versions.get().tools.first()
    assert tool is not None
    assert root.get(reverse("admin:registry_tool_change", args=[tool.pk])).status_code == 200
    assert root.post(reverse("admin:registry_tool_change", args=[tool.pk]), {"risk": 4}).status_code == 405
    assert root.post(reverse("admin:registry_tool_delete", args=[tool.pk]), {"post": "yes"}).status_code == 403
    assert root.post(reverse("admin:registry_tool_add"), {"name": "X"}).status_code == 403
    assert root.post(reverse("admin:registry_capability_add"), {"name": "x.y"}).status_code == 403
    assert root.get(reverse("admin:registry_capability_changelist")).status_code == 200


def test_where_a_tool_runs_is_told_only_to_those_who_may_read_the_manifest(cast: Cast, toolkit: Toolkit) -> None:
    tool = toolkit.versions.get().tools.all()[0]
    address = reverse("admin:registry_tool_change", args=[tool.pk])
    assert "127.0.0.1:9" in browser(cast.viewer).get(address).content.decode()
    assign_perm("registry.call_toolkit", cast.stranger, toolkit)
    page = browser(cast.stranger).get(address)
    assert page.status_code == 200
    assert "127.0.0.1:9" not in page.content.decode()


@pytest.mark.parametrize("model", ["registry_toolkit", "registry_toolkitversion", "registry_tool", "policy_agent"])
def test_a_longer_list_takes_no_more_queries(cast: Cast, model: str) -> None:
    counts = []
    for size in (1, 5):
        for number in range(size):
            published(f"More{size}x{number}", "1.0.0", {"name": "A", "capabilities": ["data.read"]})
        client = browser(cast.superuser)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse(f"admin:{model}_changelist")).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20
