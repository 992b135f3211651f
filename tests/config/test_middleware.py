"""What surrounds every page: no script that stands in it runs, and a POST never turns into a reading."""

import logging

import pytest
from django.test import Client

from config.logs import LineFormatter


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/admin/login/", "/nowhere/"])
def test_a_page_runs_only_scripts_that_we_serve(page: str) -> None:
    policy = Client().get(page, headers={"Accept": "text/html"})["Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert "'unsafe-inline'" not in rules["script-src"]
    assert (rules["default-src"], rules["object-src"], rules["frame-ancestors"]) == ("'self'", "'none'", "'none'")


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


@pytest.mark.parametrize("path", ["/health", "/tools", "/api/tools/"])
def test_a_foreign_host_is_told_so_and_costs_one_line_of_the_log(path: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = Client().get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.json()["message"]
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "\n" not in LineFormatter().format(record)
