"""What surrounds every page: no script that stands in it runs, and a POST never turns into a reading."""

import json
import logging
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client, RequestFactory

from config.doorway import Doorway
from config.logs import LineFormatter

STRICT = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
OURS = [
    "/admin/",
    "/catalogue/",
    "/approvals/",
    "/policy/",
    "/publish/",
    "/agents/",
    "/search/",
    "/nowhere/",
    "/admin/nowhere/",
]


def rules_of(client: Client, page: str) -> dict[str, str]:
    policy = client.get(page, headers={"Accept": "text/html"})["Content-Security-Policy"]
    return dict(rule.split(" ", 1) for rule in policy.split("; "))


@pytest.mark.django_db
@pytest.mark.parametrize("page", OURS)
def test_a_page_of_ours_runs_and_wears_only_what_we_serve(admin_client: Client, page: str) -> None:
    assert rules_of(admin_client, page) == STRICT


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/login/", "/nowhere/"])
def test_so_does_a_page_for_strangers(page: str) -> None:
    assert rules_of(Client(), page) == STRICT


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/admin/login/", "/admin/registry/tool/", "/api/docs/"])
def test_pages_that_others_wrote_may_compile_and_style_and_nothing_more(admin_client: Client, page: str) -> None:
    client = Client() if page == "/admin/login/" else admin_client
    wider = {"script-src": "'self' 'unsafe-eval'", "style-src": "'self' 'unsafe-inline'"}
    assert rules_of(client, page) == STRICT | wider


@pytest.mark.django_db
def test_a_form_from_elsewhere_is_refused_on_a_page_of_ours() -> None:
    answer = Client(enforce_csrf_checks=True).post("/login/", {"username": "a", "password": "b"})
    page = answer.content.decode()
    assert answer.status_code == 403
    assert ("<style" in page, "<script" in page, 'class="placet-error"' in page) == (False, False, True)


@pytest.mark.django_db
def test_who_reads_is_sent_to_the_address_with_a_slash() -> None:
    answer = Client().get("/api/calls?page_size=2")
    assert (answer.status_code, answer["Location"]) == (301, "/api/calls/?page_size=2")


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_who_writes_is_told_of_the_slash_and_not_answered_with_a_list(method: str) -> None:
    answer = getattr(Client(), method)("/api/calls", data="{}", content_type="application/json")
    assert answer.status_code == 404
    assert answer.json() == {
        "code": "not_found",
        "message": "There is nothing here: addresses under /api/ end with a slash.",
    }


FOREIGN = {"Host": "evil.example", "Accept": "text/html"}  # as a page that rebinds its name would ask
HOST_SAID = "This host name is not served here; the setting ALLOWED_HOSTS names those that are."


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/mcp", ("error", "message")),
        ("/rpc", ("error", "data", "detail")),
        ("/tools/call", ("message",)),
        ("/call", ("output", "error", "message")),
        ("/tools?profile=otc", ("output", "error", "message")),
        ("/contract/v1/execute", ("error", "message")),
        ("/v1/sessions", ("error", "message")),
        ("/v1/sessions/ses_x/requests", ("error", "message")),
        ("/v1/tools/response/ses_x/a", ("error", "message")),
        ("/v1/tool-callbacks/x", ("error", "message")),
    ],
)
@pytest.mark.parametrize("by", ["the doorway", "Django"])
def test_a_foreign_host_is_refused_in_the_form_of_the_door(path: str, where: tuple[str, ...], by: str) -> None:
    if by == "Django":
        answer = Client().post(path, {}, "application/json", headers=FOREIGN)
        status, told = answer.status_code, answer.json()
    else:
        status, told = _through_the_doorway(path)
    assert status == 400
    for key in where:
        told = told[key]
    assert told == HOST_SAID


def test_a_foreign_host_that_lists_tools_is_refused_in_the_form_of_the_profile_it_asks_for() -> None:
    oxp = Client().get("/tools", headers=FOREIGN).json()
    assert oxp == {"$schema": "urn:oxp:1.0", "code": "bad_request", "message": HOST_SAID}
    otc = Client().get("/tools", headers=FOREIGN | {"Accept-Profile": "otc"}).json()
    assert (otc["success"], otc["output"]["error"]["message"]) == (False, HOST_SAID)


def _through_the_doorway(path: str) -> tuple[int, Any]:
    statuses: list[str] = []
    environ = RequestFactory().post(path, {}, "application/json", headers=FOREIGN).environ
    body = b"".join(Doorway()(environ, lambda status, _: statuses.append(status)))
    return int(statuses[0].split()[0]), json.loads(body)


@pytest.mark.parametrize("path", ["/health", "/tools", "/api/tools/"])
def test_a_foreign_host_is_told_so_and_costs_one_line_of_the_log(path: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = Client().get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.json()["message"]
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "\n" not in LineFormatter().format(record)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", ["9" * 20, "9" * 40, "-" + "9" * 20])
def test_a_number_that_no_database_can_hold_is_the_mistake_of_whoever_sent_it(
    admin_client: Client, number: str
) -> None:
    answer = admin_client.post("/admin/auth/group/add/", {"name": "readers", "permissions": number})
    assert answer.status_code in (200, 400)  # the form again, with what is wrong; or a plain no
    assert not Group.objects.filter(name="readers").exists()


@pytest.mark.django_db(transaction=True)
def test_rows_of_the_admin_are_looked_for_by_numbers_alone(admin_client: Client) -> None:
    assert admin_client.get("/admin/auth/group/", {"id__in": "9" * 20}).status_code in (200, 302, 400)  # none, or a no
    chosen = {"action": "delete_selected", "_selected_action": "x"}
    assert admin_client.post("/admin/auth/group/", chosen).status_code in (302, 400)
