"""The export: everything that was found, in a form nothing can break out of, without holding it in memory."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit import exports, trail
from audit.models import Event
from tests.audit.signing import signed_in

pytestmark = pytest.mark.django_db

HOSTILE = "\r\nfake \x1b[2Jline\u2028\u2029\u0085\u202egnp.exe"


@pytest.fixture
def admin() -> Client:
    return signed_in(User.objects.create_superuser("root"))


def lines(answer: Any) -> list[dict[str, Any]]:
    whole = b"".join(answer).decode()
    return [json.loads(line) for line in whole.split("\n")[:-1]]


def test_json_lines_hold_every_event_as_the_list_tells_it(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "CHUNK", 3)
    for number in range(10):
        trail.record("agent", "scout", f"e.{number}", actor="shell", detail={"n": number})
    answer = admin.get("/api/audit/events/export/")
    assert answer.streaming
    assert answer["Content-Type"] == "application/x-ndjson"
    listed = admin.get("/api/audit/events/", {"ordering": "id"}).json()["results"]
    assert lines(answer) == listed


def test_the_export_keeps_to_the_same_filters_and_search(admin: Client) -> None:
    for name in ("one", "two"):
        trail.record("agent", name, "agent.created", actor="shell", detail={"owner": f"{name}-owner"})
    for asked in ({"subject_id": "two"}, {"search": "TWO-owner"}):
        assert [row["subject_id"] for row in lines(admin.get("/api/audit/events/export/", asked))] == ["two"]
    assert admin.get("/api/audit/events/export/", {"subject": "two"}).status_code == 400
    assert admin.get("/api/audit/events/export/", {"format": "xml"}).status_code == 400


def test_any_accept_header_gets_the_form_that_was_asked_for(admin: Client) -> None:
    trail.record("agent", "scout", "agent.created", actor="shell")
    answer = admin.get("/api/audit/events/export/", {"format": "csv"}, headers={"Accept": "text/csv"})
    assert answer.status_code == 200
    assert answer["Content-Disposition"].endswith('.csv"')


def test_hostile_text_stays_inside_its_line(admin: Client) -> None:
    trail.record("agent", "scout", "agent.created", actor="user:eve", detail={"reason": HOSTILE}, trace_id=HOSTILE[:60])
    trail.record("agent", "scout", "agent.second", actor="shell")
    whole = b"".join(admin.get("/api/audit/events/export/"))
    assert whole.isascii()
    assert len(whole.decode().splitlines()) == 2
    assert not any(byte < 0x20 for byte in whole if byte != 0x0A)
    assert json.loads(whole.splitlines()[0])["detail"]["reason"] == HOSTILE


@pytest.mark.parametrize("formula", ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1"])
def test_no_cell_of_a_csv_is_a_formula(admin: Client, formula: str) -> None:
    trail.record("agent", formula, formula, actor=formula, outcome="ok", trace_id=formula)
    whole = b"".join(admin.get("/api/audit/events/export/", {"format": "csv"})).decode()
    header, row = csv.reader(io.StringIO(whole, newline=""))
    assert tuple(header) == exports.FIELDS
    told = dict(zip(header, row, strict=True))
    for field in ("subject_id", "event", "actor", "trace_id"):
        assert told[field] == f"'{formula}"
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row)


def test_csv_cells_with_quotes_and_line_ends_come_back_whole(admin: Client) -> None:
    detail = {"reason": 'said "no",\nthen left'}
    trail.record("agent", "scout", "agent.created", actor="shell", detail=detail)
    whole = b"".join(admin.get("/api/audit/events/export/", {"format": "csv"})).decode()
    header, row = csv.reader(io.StringIO(whole, newline=""))
    assert json.loads(dict(zip(header, row, strict=True))["detail"]) == detail


def test_the_first_rows_are_sent_before_the_last_are_read(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(exports, "CHUNK", 200)
    for number in range(410):
        trail.record("agent", f"a{number}", "agent.created", actor="shell")
    found: Iterator[bytes] = exports.jsonl(exports.rows(Event.objects.all()))
    with django_assert_num_queries(2):  # the bound, and the first piece
        first = next(found)
    assert first.count(b"\n") == 200
    trail.record("agent", "late", "agent.created", actor="shell")
    rest = b"".join(found)
    assert rest.count(b"\n") == 210
    assert b'"late"' not in rest


def test_an_event_whose_detail_was_spoiled_is_still_one_line(admin: Client, owner_sql: Any) -> None:
    trail.record("agent", "scout", "agent.created", actor="shell")
    owner_sql("UPDATE audit_event SET detail = %s", '}\n{"id": 7}')
    (row,) = lines(admin.get("/api/audit/events/export/"))
    assert row["detail"] == '}\n{"id": 7}'
