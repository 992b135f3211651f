"""Evidence in the web admin: read, searched, taken along, never touched."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit import trail
from audit.admin.filters import names_of
from audit.models import Event
from audit.sealing import seal_new_events
from tests.audit.signing import signed_in

pytestmark = pytest.mark.django_db

EVENTS = "/admin/audit/event/"
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"


@pytest.fixture
def admin() -> Client:
    return signed_in(User.objects.create_superuser("root"))


def rows(page: bytes) -> int:
    return page.count(b'class="field-when')


def test_the_list_shows_events_and_links_calls_to_their_timeline(admin: Client) -> None:
    call = "0197a5c0-0000-7000-8000-000000000001"
    trail.record("call", call, "call.received", actor="agent:scout")
    trail.record("agent", "scout", "agent.created", actor="shell")
    page = admin.get(EVENTS).content
    assert rows(page) == 2
    assert reverse("subject-call", args=[call]).encode() in page
    assert b"agent scout" in page


@pytest.mark.parametrize(
    "asked",
    [
        {"q": "kingfisher"},
        {"event": "agent.special"},
        {"subject_kind": "version"},
        {"outcome": "refused"},
        {"actor": "user:ada"},
        {"subject_id": "Mail@1.0.0"},
    ],
)
def test_search_and_filters_narrow_the_list_and_its_exports(admin: Client, asked: dict[str, str]) -> None:
    trail.record("agent", "scout", "agent.created", actor="shell")
    trail.record(
        "version", "Mail@1.0.0", "agent.special", actor="user:ada", outcome="refused", detail={"b": "Kingfisher"}
    )
    page = admin.get(EVENTS, asked).content
    assert rows(page) == 1
    (link,) = set(re.findall(rb'href="(/admin/audit/event/export/jsonl/[^"]*)"', page))
    answer = admin.get(link.decode().replace("&amp;", "&"))
    assert b"".join(answer).count(b"\n") == 1
    assert b"Mail@1.0.0" in b"".join(admin.get(f"{EVENTS}export/csv/", asked))


def test_the_list_can_be_narrowed_to_a_span_of_time(admin: Client) -> None:
    trail.record("agent", "scout", "agent.created", actor="shell")
    for hours, count in ((-1, 1), (1, 0)):
        start = datetime.now(UTC) + timedelta(hours=hours)
        asked = {"at_from_0": f"{start:%Y-%m-%d}", "at_from_1": f"{start:%H:%M:%S}"}
        assert rows(admin.get(EVENTS, asked).content) == count
    assert rows(admin.get(EVENTS, {"at_to_0": f"{datetime.now(UTC):%Y-%m-%d}"}).content) == 1
    assert admin.get(EVENTS, {"at_from_0": "soon", "at_from_1": "=1"}).status_code == 200


def test_an_export_of_an_unknown_form_or_question_is_refused(admin: Client) -> None:
    assert admin.get(f"{EVENTS}export/xml/").status_code == 404
    assert admin.get(f"{EVENTS}export/csv/", {"colour": "blue"}).status_code == 400
    assert admin.post(f"{EVENTS}export/csv/").status_code == 404


def test_hostile_text_is_shown_as_text(admin: Client) -> None:
    trail.record(
        "agent", HOSTILE, HOSTILE, actor=f"user:{HOSTILE}", outcome="ok", detail={HOSTILE: HOSTILE}, trace_id=HOSTILE
    )
    event = Event.objects.get()
    for address in (EVENTS, f"{EVENTS}{event.pk}/change/"):
        page = admin.get(address).content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩␛[31m" in page
        assert "\u202e" not in page
        assert "\x1b" not in page


def test_events_and_seals_cannot_be_added_changed_or_removed(admin: Client) -> None:
    trail.record("agent", "scout", "agent.created", actor="shell")
    assert seal_new_events() is not None
    event = Event.objects.get()
    for kind, pk in (("event", event.pk), ("seal", 1)):
        base = f"/admin/audit/{kind}/"
        assert admin.get(f"{base}add/").status_code == 403
        assert admin.post(f"{base}add/", {}).status_code == 403
        assert admin.post(f"{base}{pk}/change/", {"event": "other"}).status_code == 403
        assert admin.post(f"{base}{pk}/delete/", {"post": "yes"}).status_code == 403
        admin.post(base, {"action": "delete_selected", "_selected_action": [pk], "post": "yes"})
        page = admin.get(f"{base}{pk}/change/").content
        assert b'name="_save"' not in page
    assert Event.objects.get().event == "agent.created"


def test_seals_say_whether_their_signature_holds(admin: Client, owner_sql: Any) -> None:
    trail.record("agent", "scout", "agent.created", actor="shell")
    assert seal_new_events() is not None
    assert b"not valid" not in admin.get("/admin/audit/seal/").content
    owner_sql("UPDATE audit_seal SET count = 7")
    assert b"not valid" in admin.get("/admin/audit/seal/").content


def test_staff_see_only_what_is_theirs_and_no_seals() -> None:
    trail.record("agent", "scout", "agent.created", actor="shell")
    client = signed_in(User.objects.create_user("clerk", is_staff=True))
    assert rows(client.get(EVENTS).content) == 0
    assert client.get(f"{EVENTS}{Event.objects.get().pk}/change/").status_code == 302
    assert b"".join(client.get(f"{EVENTS}export/jsonl/")) == b""
    assert client.get("/admin/audit/seal/").status_code == 403


def test_a_list_costs_the_same_queries_whatever_its_length(admin: Client) -> None:
    spent = []
    for count in (2, 40):
        for number in range(count):
            trail.record("call", f"0197a5c0-0000-7000-8000-{number:012}", "call.received", actor="agent:scout")
        admin.get(EVENTS)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            admin.get(EVENTS)
        spent.append(len(queries))
    assert spent[0] == spent[1]


def test_the_choices_of_a_filter_are_the_names_in_use() -> None:
    for name in ("b", "a", "b", "c"):
        trail.record("agent", "scout", name, actor="shell")
    assert names_of("event") == ["a", "b", "c"]
