"""An empty registry: every page of every role opens, and every empty list says what to do next."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse

pytestmark = pytest.mark.django_db

NEVER_EMPTY = {"user", "group"}  # whoever looks is one, and the ready-made groups are there
EMPTY = ("portal-empty", "portal-nothing", "inbox-empty", "policy-empty")
MORE = [
    *("/approvals/", "/approvals/history/", "/approvals/grants/", "/approvals/break-glass/"),
    *("/agents/", "/permissions/", "/permissions/unused/", "/evidence/", "/search/"),
]


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_every_list_of_the_admin_says_in_its_own_words_how_it_fills() -> None:
    root = User.objects.create_superuser("root")
    client, said = logged_in(root), {}
    request = RequestFactory().get("/")
    request.user = root
    for model, page in admin.site._registry.items():
        name = model._meta.model_name
        if name in NEVER_EMPTY or not page.has_view_permission(request):
            continue
        text = getattr(page, "empty_text", "")
        assert text.endswith("."), f"{name} has no word for an empty list"
        said[name] = text
        address = reverse(f"admin:{model._meta.app_label}_{name}_changelist")
        shown = unescape(client.get(address).content.decode())
        assert text in shown or name == "event", name  # the making of a superuser or a login may be an event
    assert len(set(said.values())) == len(said) > 12
    assert 'href="/new-agent/"' in client.get("/admin/").content.decode()
    assert "Paste a manifest" in client.get("/permissions/").content.decode()


@pytest.mark.parametrize("role", ["", "publisher", "approver", "policy owner", "auditor", "operator"])
def test_every_page_that_a_role_is_led_to_opens_and_explains_itself(role: str, person: Callable[..., User]) -> None:
    client = logged_in(person("one", *filter(None, [role])))
    home = client.get("/admin/").content.decode()
    assert "There is no toolkit here yet" in home
    assert "Load the examples" not in home
    led_to = [
        each for each in re.findall(r'href="(/[^"?#]*/)"', home) if "/static/" not in each and "logout" not in each
    ]
    lists = [text for page in admin.site._registry.values() if (text := getattr(page, "empty_text", ""))]
    for address in dict.fromkeys([*led_to, *MORE]):
        answer = client.get(address)
        assert answer.status_code == 200, address
        page = unescape(answer.content.decode())
        if address.endswith("/add/") or address in ("/api/docs/", "/admin/auth/user/", "/admin/auth/group/"):
            continue
        if address == "/admin/audit/event/" and "field-when" in page:
            continue  # that one logged in
        assert any(mark in page for mark in EMPTY) or any(text in page for text in lists), address


def test_an_empty_page_leads_nowhere_that_is_refused(person: Callable[..., User]) -> None:
    for number, role in enumerate(("publisher", "approver", "policy owner", "auditor", "operator")):
        client = logged_in(person(f"one{number}", role))
        for address in ("/agents/", "/permissions/", "/permissions/unused/"):
            main = client.get(address).content.decode().partition("<main")[2].partition("</main>")[0]
            for link in re.findall(r'href="(/[^"]*)"', main):
                assert client.get(unescape(link)).status_code == 200, (role, address, link)
