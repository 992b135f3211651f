"""Packs on pages, the buttons that lead to them, and a call's durations drawn to scale."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit import trail
from audit.models import Event
from audit.sealing import seal_new_events
from execution import packs
from execution.durations import WIDTH, spans_of, spans_of_attempts
from execution.models import Attempt, Call, Pack
from tests.execution.conftest import Call as MakeCall
from tests.execution.test_packs import content, person, subjects
from tests.execution.test_timeline import client_of, page, row, succeeded

pytestmark = pytest.mark.django_db

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.PLACET_HOME = tmp_path
    return tmp_path


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create_superuser("root"))


@pytest.fixture
def done(call: MakeCall, unsent: list[Any]) -> Call:
    made = succeeded(call, value=7)
    assert seal_new_events() is not None
    return made


def asked(client: Client, query: str = "", form: str = "zip") -> Pack:
    answer = client.post(f"/evidence/new/{query}", {"form": form})
    assert answer.status_code == 302, answer.content.decode()
    made = Pack.objects.latest("id")
    assert answer["Location"] == f"/evidence/{made.pk}/"
    return made


def test_the_page_of_a_call_gives_its_evidence_to_those_who_see_it(root: Client, done: Call) -> None:
    assert f'href="/calls/{done.pk}/evidence/"' in page(root, done)
    assert subjects(content(root, f"/calls/{done.pk}/evidence/")) == {("call", str(done.pk))}
    _, stranger = person("stranger")
    assert stranger.get(f"/calls/{done.pk}/evidence/").status_code == 404
    assert root.get(f"/calls/{uuid4()}/evidence/").status_code == 404
    assert Client().get(f"/calls/{done.pk}/evidence/").status_code == 302
    assert root.post(f"/calls/{done.pk}/evidence/").status_code == 405


def test_the_list_of_events_leads_to_a_pack_of_what_it_shows(root: Client, done: Call) -> None:
    query = "?event=call.queued&actor=agent%3A&q=call&at_from_0=2020-01-01&at_to_0=2099-12-31&at_to_1=10:00:00"
    listed = root.get(f"/admin/audit/event/{query}").content.decode()
    (link,) = re.findall(r'href="(/evidence/new/\?[^"]*)"', listed)
    new = root.get(link.replace("&amp;", "&"))
    assert new.status_code == 200
    told = new.content.decode()
    for each in ("event is call.queued", "actor begins with agent:", "holds call", "since 2020-01-01T00:00:00+00:00"):
        assert each in told
    made = asked(root, "?event=call.queued&q=call")
    assert made.filters == {"event": "call.queued", "search": "call"}


def test_a_pack_is_watched_until_it_is_done_and_then_downloaded(root: Client, done: Call) -> None:
    made = asked(root, "?subject_kind=call")
    told = root.get(f"/evidence/{made.pk}/").content.decode()
    assert f'hx-get="/evidence/{made.pk}/story/"' in told
    assert root.get(f"/evidence/{made.pk}/download/").status_code == 302
    packs.work_off(made.pk)
    story = root.get(f"/evidence/{made.pk}/story/").content.decode()
    assert "hx-get" not in story
    assert "<html" not in story
    assert "5 events" in story
    assert subjects(content(root, f"/evidence/{made.pk}/download/")) == {("call", str(done.pk))}
    assert f'href="/evidence/{made.pk}/"' in root.get("/evidence/").content.decode()
    (packs.folder() / f"{made.pk}.zip").unlink()
    gone = root.get(f"/evidence/{made.pk}/download/")
    assert gone.status_code == 410
    assert "another machine" in gone.content.decode()


def test_a_failed_pack_says_why(root: Client, done: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MAX_EVENTS", 1)
    made = asked(root)
    packs.work_off(made.pk)
    assert "narrow the filters" in root.get(f"/evidence/{made.pk}/").content.decode()


def test_nobody_sees_the_packs_of_others(root: Client, done: Call) -> None:
    made = asked(root)
    _, other = person("other")
    for address in ("", "story/", "download/"):
        assert other.get(f"/evidence/{made.pk}/{address}").status_code == 404
    assert "No pack yet" in other.get("/evidence/").content.decode()
    assert Client().get(f"/evidence/{made.pk}/story/")["HX-Refresh"] == "true"
    assert client_of(done.agent.user).get("/evidence/").status_code == 403


@pytest.mark.parametrize("query", ["?scope=1&since=soon", "?scope=1&nonsense=x", "?scope=1&call.state=broken"])
def test_filters_that_cannot_be_read_make_no_pack(root: Client, query: str) -> None:
    for answer in (root.get(f"/evidence/new/{query}"), root.post(f"/evidence/new/{query}", {"form": "zip"})):
        assert answer.status_code == 422
        assert 'role="alert"' in answer.content.decode()
    assert not Pack.objects.exists()


def test_too_many_packs_are_refused_on_the_page(root: Client) -> None:
    for _ in range(packs.MAX_OPEN):
        asked(root)
    answer = root.post("/evidence/new/", {"form": "csv"})
    assert answer.status_code == 422
    assert "under way already" in answer.content.decode()


def test_hostile_filters_are_shown_and_not_obeyed(root: Client) -> None:
    text = "<script>x</script>\x1b\u202e"
    told = root.get("/evidence/new/", {"q": text}).content.decode()
    made = asked(root, "?q=%3Cscript%3Ex%3C/script%3E%1B")
    told += root.get(f"/evidence/{made.pk}/").content.decode() + root.get("/evidence/").content.decode()
    assert "<script>x" not in told
    assert "\x1b" not in told
    assert "\u202e" not in told


def history(*steps: tuple[str, float]) -> list[Event]:
    return [Event(event=f"call.{name}", at=START + timedelta(seconds=at), seq=1) for name, at in steps]


def test_durations_are_drawn_to_one_scale() -> None:
    events = history(("received", 0), ("awaiting_approval", 0), ("approved", 50), ("started", 75), ("succeeded", 100))
    spans = spans_of(events, START)
    assert [(span.kind, span.x, span.width) for span in spans] == [
        ("people", 0, 500),
        ("queue", 500, 250),
        ("run", 750, 250),
    ]
    assert [span.milliseconds for span in spans] == [50_000, 25_000, 25_000]


def test_each_attempt_is_a_span_and_the_shortest_can_be_seen() -> None:
    events = history(
        ("queued", 0), ("started", 0), ("retry_scheduled", 0.001), ("started", 1_000), ("waiting_callback", 1_000.1)
    )
    spans = spans_of(events, START + timedelta(seconds=2_000))
    assert [span.title for span in spans] == [
        "In the queue",
        "Attempt 1",
        "Waiting for another attempt",
        "Attempt 2",
        "Waiting for the tool's answer, so far",
    ]
    assert all(span.width >= 4 and 0 <= span.x <= WIDTH - span.width for span in spans)


def test_attempts_are_drawn_where_events_have_one_moment() -> None:
    at = [START + timedelta(seconds=seconds) for seconds in (0, 10, 20, 60, 100)]
    attempts = [
        Attempt(number=1, started_at=at[1], finished_at=at[2]),
        Attempt(number=2, started_at=at[3], finished_at=at[4]),
    ]
    assert [(span.title, span.x, span.width) for span in spans_of_attempts(at[0], attempts)] == [
        ("In the queue", 0, 100),
        ("Attempt 1", 100, 100),
        ("Waiting for another attempt", 200, 400),
        ("Attempt 2", 600, 400),
    ]


def test_a_clock_that_went_back_breaks_no_drawing() -> None:
    spans = spans_of(history(("queued", 10), ("started", 5), ("failed", 0)), START)
    assert all(0 <= span.x <= WIDTH and span.milliseconds >= 0 for span in spans)
    assert spans_of([], START) == ()
    assert spans_of(history(("rejected", 0)), START) == ()


def test_the_page_draws_them_without_a_style_in_it(root: Client, done: Call, call: MakeCall) -> None:
    told = page(root, done)
    drawn = told[told.index("Where the time went") : told.index("What happened")]
    assert drawn.count("<rect") == 4
    assert "Attempt 1" in drawn
    assert "style=" not in drawn
    trail.record("agent", "x", "agent.changed", actor="shell")
    assert "In the queue, so far" in page(root, row(call("Ring", ledger="/nowhere")))
