"""Events and seals over REST: found wherever they lie, read only, and only by those who may."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from audit import trail
from audit.api.serializers import EventSerializer
from audit.models import Event
from audit.sealing import seal_new_events
from tests.audit.signing import signed_in

pytestmark = pytest.mark.django_db

EVENTS = "/api/audit/events/"


@pytest.fixture
def auditor() -> Client:
    """A person who may see every event, and is nobody else."""
    person = User.objects.create_user("auditor")
    person.user_permissions.add(Permission.objects.get(codename="view_event"))
    return signed_in(person)


@pytest.fixture
def stranger() -> Client:
    return signed_in(User.objects.create_user("stranger"))


def tell(event: str = "agent.created", subject: str = "scout", **more: Any) -> Event:
    """One event on the trail."""
    trail.record(more.pop("kind", "agent"), subject, event, actor=more.pop("actor", "shell"), **more)
    return Event.objects.order_by("-id")[0]


def found(client: Client, **asked: Any) -> list[str]:
    answer = client.get(EVENTS, asked)
    assert answer.status_code == 200, answer.content
    return [row["event"] for row in answer.json()["results"]]


def test_an_event_is_told_with_everything_that_its_hash_covers(auditor: Client) -> None:
    event = tell(detail={"owner": "ada", "n": 1.5}, trace_id="4bf92f")
    answer = auditor.get(f"{EVENTS}{event.pk}/")
    assert answer.status_code == 200
    assert answer.json() == {
        "id": event.pk,
        "subject_kind": "agent",
        "subject_id": "scout",
        "seq": 1,
        "event": "agent.created",
        "actor": "shell",
        "at": event.at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "outcome": "ok",
        "detail": {"n": 1.5, "owner": "ada"},
        "prev_hash": "00" * 32,
        "hash": bytes(event.hash).hex(),
        "trace_id": "4bf92f",
    }


def test_a_list_has_the_newest_first_and_says_how_many_there_are(auditor: Client) -> None:
    for number in range(5):
        tell(f"e.{number}")
    answer = auditor.get(EVENTS, {"page_size": 2}).json()
    assert set(answer) == {"count", "next", "previous", "results"}
    assert (answer["count"], answer["previous"]) == (5, None)
    assert [row["event"] for row in answer["results"]] == ["e.4", "e.3"]
    assert found(auditor, page_size=2, page=2) == ["e.2", "e.1"]
    assert found(auditor, page_size=2, page=3) == ["e.0"]
    assert found(auditor, ordering="id")[0] == found(auditor, ordering="at")[0] == "e.0"
    assert found(auditor, ordering="-at")[0] == found(auditor, ordering="-event")[0] == "e.4"


def test_late_pages_hold_what_comes_after_the_early_ones(auditor: Client) -> None:
    for number in range(23):
        tell(f"e.{number:02}")
    leafed = [name for page in range(1, 6) for name in found(auditor, page_size=5, page=page)]
    assert leafed == [f"e.{number:02}" for number in reversed(range(23))]


def test_every_filter_keeps_what_it_names_and_nothing_else(auditor: Client) -> None:
    tell("a.one", kind="toolkit", subject="Mail", actor="user:ada", outcome="refused", trace_id="t1")
    tell("a.two", kind="agent", subject="scout", actor="system")
    for asked in (
        {"subject_kind": "toolkit"},
        {"subject_id": "Mail"},
        {"event": "a.one"},
        {"actor": "user:ada"},
        {"outcome": "refused"},
        {"trace_id": "t1"},
    ):
        assert found(auditor, **asked) == ["a.one"]
    now = datetime.now(UTC)
    assert found(auditor, since=(now - timedelta(minutes=1)).isoformat()) == ["a.two", "a.one"]
    assert found(auditor, since=(now + timedelta(minutes=1)).isoformat()) == []
    assert found(auditor, until=(now - timedelta(minutes=1)).isoformat()) == []


def test_search_finds_text_that_lies_far_behind_the_first_page(auditor: Client) -> None:
    tell("deep.one", detail={"reason": 'the Kingfisher "flew" away\n'}, trace_id="trace-77")
    for number in range(120):
        tell(f"later.{number}")
    for words in ("kingfisher", '"flew"', "deep.one", "trace-77", "kingfisher flew", "scout Kingfisher"):
        assert found(auditor, search=words) == ["deep.one"]
    assert found(auditor, search="kingfisher heron") == []


@pytest.mark.parametrize("text", ["100%", "a_b", "a\\b", "50 % of"])
def test_search_takes_signs_of_patterns_as_they_are(auditor: Client, text: str) -> None:
    tell("literal", detail={"reason": f"x {text} y"})
    tell("other", detail={"reason": "x 100 a-b ab y of 50"})
    assert found(auditor, search=text) == ["literal"]


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"subject": "x"}, "subject"),
        ({"since": "yesterday"}, "since"),
        ({"since": "0001-01-01T00:00:00+23:59"}, "since"),
        ({"until": "9999-12-31T23:59:59-23:59"}, "until"),
        ({"ordering": "hash"}, "ordering"),
        ({"page": "99"}, "page"),
        ({"page_size": "100000"}, "page_size"),
        ({"search": "x" * 501}, "search"),
        ({"event": "a\0b"}, "event"),
        ({"event": ["a.one", "a.two"]}, "event"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_by_name(
    auditor: Client, asked: dict[str, Any], path: str
) -> None:
    answer = auditor.get(EVENTS, asked)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == path


def test_the_state_and_one_event_take_no_questions(auditor: Client) -> None:
    for address in ("/api/audit/status/", f"{EVENTS}{tell().pk}/"):
        assert auditor.get(address, {"format": "json"}).status_code == 200
        answer = auditor.get(address, {"nope": "1"})
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "nope")


@pytest.mark.parametrize(
    "address", [EVENTS, f"{EVENTS}1/", f"{EVENTS}export/", "/api/audit/seals/", "/api/audit/status/"]
)
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_written(auditor: Client, address: str, method: str) -> None:
    tell()
    answer = getattr(auditor, method)(address, data={}, content_type="application/json")
    assert answer.status_code == 405
    assert Event.objects.count() == 1


def test_an_event_of_others_looks_like_one_that_does_not_exist(stranger: Client) -> None:
    event = tell()
    hidden, missing = stranger.get(f"{EVENTS}{event.pk}/"), stranger.get(f"{EVENTS}{event.pk + 99}/")
    assert hidden.status_code == missing.status_code == 404
    assert hidden.json() == missing.json()
    assert found(stranger) == []
    assert b"".join(stranger.get(f"{EVENTS}export/")) == b""


@pytest.mark.parametrize("address", ["/api/audit/seals/", "/api/audit/seals/1/", "/api/audit/status/"])
def test_seals_and_status_are_for_those_who_see_everything(stranger: Client, auditor: Client, address: str) -> None:
    tell()
    assert seal_new_events() is not None
    assert stranger.get(address).status_code == 404
    assert auditor.get(address).status_code == 200


def test_where_nothing_is_searched_a_search_is_refused(auditor: Client) -> None:
    answer = auditor.get("/api/audit/seals/", {"search": "x"})
    assert (answer.status_code, [error["path"] for error in answer.json()["errors"]]) == (400, ["search"])
    assert auditor.get(EVENTS, {"search": "x"}).status_code == 200


def test_without_a_login_there_is_nothing(db: None) -> None:
    for address in (EVENTS, f"{EVENTS}export/", "/api/audit/seals/", "/api/audit/status/"):
        assert Client().get(address).status_code == 401


def test_the_status_counts_what_is_sealed_and_what_is_not(auditor: Client) -> None:
    assert auditor.get("/api/audit/status/").json() == {
        "events": 0,
        "last_event_id": None,
        "seals": 0,
        "last_seal": None,
        "unsealed": 0,
    }
    tell("a")
    tell("b")
    seal = seal_new_events()
    assert seal is not None
    later = tell("c")
    status = auditor.get("/api/audit/status/").json()
    assert (status["events"], status["last_event_id"], status["seals"], status["unsealed"]) == (3, later.pk, 1, 1)
    assert status["last_seal"]["merkle_root"] == bytes(seal.merkle_root).hex()
    assert status["last_seal"]["count"] == 2


def test_a_page_costs_the_same_queries_whatever_its_size(
    auditor: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(60):
        tell(f"e.{number}")
    auditor.get(EVENTS)
    for size in (1, 50):
        with django_assert_num_queries(7) as spent:
            auditor.get(EVENTS, {"page_size": size})
        assert sum("audit_event" in query["sql"] for query in spent.captured_queries) == 3


def test_a_detail_that_is_no_longer_json_is_shown_as_it_is(auditor: Client, owner_sql: Any) -> None:
    event = tell(detail={"a": 1})
    owner_sql("UPDATE audit_event SET detail = %s WHERE id = %s", '{"a": <script>', event.pk)
    assert auditor.get(f"{EVENTS}{event.pk}/").json()["detail"] == '{"a": <script>'


def test_no_field_is_told_that_is_not_documented() -> None:
    assert "key_id" not in EventSerializer().fields
