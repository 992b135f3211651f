"""One box for calls and events: readable filters, kept searches, what holds of it, and nothing that is not theirs."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from audit import trail
from audit.models import Event
from audit.sealing import seal_new_events
from execution import savedfilters
from execution.models import Call, Pack, SavedFilter
from execution.portal import finding
from execution.portal.query import Query, QueryError
from registry.models import ToolkitVersion
from tests.execution.conftest import Call as MakeCall
from tests.execution.test_timeline import client_of, row, succeeded, tamper, unknown

pytestmark = pytest.mark.django_db

SEARCH = "/search/"
HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> None:
    settings.PLACET_HOME = tmp_path


@pytest.fixture
def root() -> Client:
    return client_of(User.objects.create_superuser("root"))


@pytest.fixture
def some(call: MakeCall, unsent: list[Any]) -> dict[str, Call]:
    made = {"done": succeeded(call, value=1), "lost": unknown(call), "queued": row(call("Ring", ledger="/nowhere"))}
    assert seal_new_events() is not None
    return made


def found(client: Client, q: str = "", place: str = "calls", **more: str) -> str:
    answer = client.get(SEARCH, {"in": place, "q": q, **more})
    assert answer.status_code == 200, answer.content.decode()
    return answer.content.decode()


def ids(client: Client, calls: dict[str, Call], q: str) -> set[str]:
    told = found(client, q)
    return {name for name, call in calls.items() if f'href="/calls/{call.pk}/"' in told}


def test_a_box_is_read_and_written_back_the_same() -> None:
    for text in (
        "",
        "agent:tester state:failed state:timed_out since:2h refund",
        'tool:Lab.Ring "two words" id:01a1',
        '"with:colon" trace:abc door:mcp until:2026-11-01T12:30',
        "event:call.received actor:agent: kind:call outcome:ok subject:x since:2026-11-01",
    ):
        assert str(Query.parse(text)) == text
    assert Query.parse("http://x.example/y").words == ("http://x.example/y",)
    assert Query.parse('"never closed').words == ("never closed",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("stat:failed", "There is no filter “stat”"),
        ("state:broken", "There is no state “broken”"),
        ("door:back", "There is no door"),
        ("since:soon", "“soon” is no time"),
        ("since:9999-99-99", "is no time"),
        ("since:0001-01-01T00:00:00+23:59", "is no time"),
        ("until:9999-12-31T23:59:59-23:59", "is no time"),
        ('agent:""', "Say which agent"),
        ("agent: x", "Say which agent"),
        ("agent:a agent:b", "Give agent once"),
        ("a b c d e f g h i", "at most 8 words"),
        ("x" * 501, "at most 500 characters"),
    ],
)
def test_a_question_that_cannot_be_read_is_told_so(root: Client, text: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        Query.parse(text)
    answer = root.get(SEARCH, {"q": text})
    assert answer.status_code == 422
    assert why in answer.content.decode()


def test_filters_are_told_as_people_say_them() -> None:
    told = [term.told for term in Query.parse("since:1d until:2026-11-01 state:timed_out door:mcp x").terms]
    assert told == ["since 1 day ago", "until 2026-11-01 UTC", "state is timed out", "door is MCP", "holds “x”"]


def test_a_time_with_its_zone_is_told_in_utc() -> None:
    (term,) = Query.parse("since:2026-11-01T12:30+02:00").terms
    assert term.told == "since 2026-11-01 10:30 UTC"


def test_calls_are_found_by_each_filter(root: Client, some: dict[str, Call]) -> None:
    everything = {"done", "lost", "queued"}
    done = some["done"]
    Call.objects.filter(pk=some["queued"].pk).update(trace_id="4bf92f3577b34da6")
    for q, wanted in {
        "": everything,
        "agent:tester": everything,
        "agent:other": set(),
        "tool:Lab": everything,
        "tool:lab.ring": everything,
        "tool:Lab.Ring@1.0.0": everything,
        "tool:Lab.Rin": set(),
        "state:unknown": {"lost"},
        "state:unknown state:queued": {"lost", "queued"},
        "since:1h": everything,
        "until:1h": set(),
        f"id:{done.pk}": {"done"},
        f"id:{done.call_id}": {"done"},
        "trace:4bf92f3577b34da6": {"queued"},
        "worker lost": {"lost"},
        '"worker was lost"': {"lost"},
        "ring nothing-like-it": set(),
    }.items():
        assert ids(root, some, q) == wanted, q


def test_events_are_found_by_their_own_filters_and_by_those_of_their_calls(root: Client, some: dict[str, Call]) -> None:
    def count(q: str) -> int:
        return found(root, q, "events").count('href="/admin/audit/event/')

    calls = Event.objects.filter(subject_kind="call")
    sidebar = found(root, "event:nothing", "events").count('href="/admin/audit/event/')
    for q, wanted in {
        "event:call.unknown": 1,
        "kind:call": calls.count(),
        "actor:agent:": calls.filter(actor__startswith="agent:").count(),
        "outcome:ok kind:call event:call.succeeded": 1,
        "state:unknown": calls.filter(subject_id=str(some["lost"].pk)).count(),
        "tool:Lab.Ring state:succeeded": calls.filter(subject_id=str(some["done"].pk)).count(),
        f"subject:{some['queued'].pk}": 3,
        "call.unknown": 1,
    }.items():
        assert count(q) == wanted + sidebar, q
    assert "Attempt 1 was lost with its worker; whether it ran is unknown." in found(root, "state:unknown", "events")


def test_a_filter_of_events_is_not_silently_dropped_among_calls(root: Client) -> None:
    answer = root.get(SEARCH, {"in": "calls", "q": "event:call.unknown"})
    assert answer.status_code == 422
    assert "search events instead" in answer.content.decode()


def test_the_form_writes_the_box(root: Client) -> None:
    asked = {"in": "calls", "q": "refund agent:old", "filter": "1", "agent": "new bot", "state": ["failed", "unknown"]}
    answer = root.get(SEARCH, asked)
    assert answer.status_code == 302
    assert answer["Location"] == ("/search/?in=calls&q=refund+agent%3A%22new+bot%22+state%3Afailed+state%3Aunknown")


def test_pages_follow_one_another_without_gap(
    root: Client, call: MakeCall, unsent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "PER_PAGE", 2)
    made = [row(call("Ring", ledger="/nowhere")) for _ in range(5)][::-1]
    seen, older = [], ""
    for _ in range(3):
        answer = root.get(SEARCH, {"older": older} if older else {})
        seen += [each["call"].pk for each in answer.context["rows"]]
        older = answer.context["found"].older
    assert seen == [each.pk for each in made]
    assert older == ""


def test_a_long_search_through_events_is_handed_back(
    root: Client, some: dict[str, Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "STRETCH", 4)
    monkeypatch.setattr(finding, "PATIENCE", -1.0)
    wanted = Event.objects.filter(event="call.received").order_by("id").first()
    assert wanted is not None
    q, older, steps, seen = f"subject:{wanted.subject_id} event:call.received", "", 0, []
    while True:
        answer = root.get(SEARCH, {"in": "events", "q": q, "older": older})
        seen += [each["event"].pk for each in answer.context["rows"]]
        older, steps = answer.context["found"].older, steps + 1
        if not older:
            break
        assert "Look further back" in answer.content.decode()
    assert seen == [wanted.pk]
    assert steps > 2


@pytest.mark.parametrize("older", ["x", "-1", "9" * 30, "00000000-0000-0000-0000-00000000000g"])
def test_a_broken_address_is_told_so(root: Client, older: str) -> None:
    for place in ("calls", "events"):
        assert root.get(SEARCH, {"in": place, "older": older}).status_code == 422


def test_what_is_shown_is_verified_and_what_is_not_is_marked(root: Client, some: dict[str, Call]) -> None:
    assert "Verified just now:" in found(root)
    assert "All sealed; the newest is seal 1" in found(root)
    trail.record("agent", "late", "agent.changed", actor="shell")
    assert "1 of" in found(root, "subject:late", "events")
    tamper("UPDATE audit_event SET actor = 'user:eve' WHERE event = 'call.unknown'")
    told = found(root)
    assert "1 of what is shown does not verify" in told
    assert "its hash does not fit what it says" in told
    assert "does not verify" in found(root, "event:call.unknown", "events")


def test_each_sees_their_own_calls_and_events_only(some: dict[str, Call], lab: ToolkitVersion) -> None:
    stranger = client_of(User.objects.create_user("stranger"))
    assert ids(stranger, some, "") == set()
    assert "Nothing has happened yet" in found(stranger, "", "events")
    user = User.objects.create_user("auditor")
    assign_perm("registry.audit_toolkit", user, lab.toolkit)
    assert ids(client_of(user), some, "") == {"done", "lost", "queued"}
    assert Client().get(SEARCH).status_code == 302
    agent = some["done"].agent.user
    assert client_of(agent).get(SEARCH).status_code == 403


def test_hostile_texts_are_shown_and_not_obeyed(root: Client, call: MakeCall, unsent: list[Any]) -> None:
    call(f"x{HOSTILE}")
    trail.record("agent", f"x{HOSTILE}", "agent.changed", actor=f"user:{HOSTILE}")
    for place in ("calls", "events"):
        for q in ("", f'"{HOSTILE}"', "x"):
            told = found(root, q, place)
            assert "<script>alert" not in told
            for character in "\x1b\u202e":
                assert character not in told.replace(
                    f'value="&quot;&lt;script&gt;alert(1)&lt;/script&gt;{HOSTILE[25:]}', ""
                )


def test_a_search_is_kept_used_replaced_and_forgotten(root: Client) -> None:
    keep = {"in": "calls", "q": "state:failed since:7d", "name": "  last   week "}
    assert root.post("/search/keep/", keep).status_code == 302
    told = found(root)
    assert "last week" in told
    assert "q=state%3Afailed%20since%3A7d" in told
    assert "last week" not in found(root, "", "events")
    root.post("/search/keep/", {**keep, "name": "LAST WEEK", "q": "state:denied"})
    saved = SavedFilter.objects.get()
    assert (saved.name, saved.query) == ("LAST WEEK", "state:denied")
    other = client_of(User.objects.create_superuser("other"))
    assert "LAST WEEK" not in found(other)
    other.post(f"/search/forget/{saved.pk}/", {"in": "calls"})
    assert SavedFilter.objects.exists()
    root.post(f"/search/forget/{saved.pk}/", {"in": "calls"})
    assert not SavedFilter.objects.exists()
    assert root.get(f"/search/forget/{saved.pk}/").status_code == 405


@pytest.mark.parametrize("wrong", [{"name": " "}, {"name": "x" * 61}, {"q": ""}, {"q": "stat:x"}, {"in": "nowhere"}])
def test_what_cannot_be_kept_is_told_and_not_kept(root: Client, wrong: dict[str, str]) -> None:
    answer = root.post("/search/keep/", {"in": "calls", "q": "state:failed", "name": "mine", **wrong}, follow=True)
    assert answer.status_code in (200, 422)
    assert not SavedFilter.objects.exists()


def test_a_person_keeps_so_many_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savedfilters, "MOST", 1)
    user = User.objects.create_user("ana")
    savedfilters.keep(user, "calls", "one", "x")
    with pytest.raises(savedfilters.SavedFilterError, match="forget one first"):
        savedfilters.keep(user, "events", "two", "x")


def test_the_pack_of_a_search_holds_what_the_search_shows(root: Client, some: dict[str, Call]) -> None:
    for place, q in (("calls", "state:unknown since:1h"), ("events", "event:call.unknown")):
        url = root.get(SEARCH, {"in": place, "q": q}).context["pack_url"]
        assert root.get(url).status_code == 200
        root.post(url, {"form": "zip"})
    first, second = Pack.objects.order_by("id")
    from execution import packs

    for pack in (first, second):
        packs.work_off(pack.pk)
        pack.refresh_from_db()
    lost = Event.objects.filter(subject_id=str(some["lost"].pk))
    assert (first.state, first.total) == ("done", lost.count())
    assert (second.state, second.total) == ("done", 1)


@pytest.mark.parametrize(("place", "most"), [("calls", 20), ("events", 20)])
def test_a_page_asks_the_database_as_often_for_many_as_for_one(
    root: Client, call: MakeCall, unsent: list[Any], place: str, most: int
) -> None:
    row(call("Ring", ledger="/nowhere"))
    found(root, "since:1h", place)
    with CaptureQueriesContext(
        connection,
    ) as one:
        found(root, "since:1h", place)
    for _ in range(12):
        row(call("Ring", ledger="/nowhere"))
    with CaptureQueriesContext(connection) as many:
        found(root, "since:1h", place)
    assert len(many) <= len(one) <= most
