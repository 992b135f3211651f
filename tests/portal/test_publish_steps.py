"""A version's steps: confirmed on a page that says what will happen and to whom, taken by the API's own writers."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from audit.models import Event
from policy import reviews
from policy.models import Review
from registry.models import Tool, ToolkitVersion
from registry.publishing import deprecate
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import draft, published
from tests.portal.conftest import MakeCall
from tests.portal.publishkit import browser, everything, read, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(tool: Tool) -> Cast:
    return cast_of(tool.version.toolkit)


@pytest.fixture
def risky(cast: Cast) -> ToolkitVersion:
    return draft("Calculator", "2.0.0", {"risk": "high"}, by=cast.publisher)


def step(version: ToolkitVersion, key: str) -> str:
    return f"/publish/{version}/{key}/"


def stored(version: ToolkitVersion) -> ToolkitVersion:
    return ToolkitVersion.objects.select_related("toolkit").get(pk=version.pk)


def test_a_version_goes_from_draft_to_withdrawn_by_two_people(cast: Cast, risky: ToolkitVersion) -> None:
    writer, second = browser(cast.publisher), browser(cast.reviewer)
    page = read(writer.get(step(risky, "publish")))
    assert "another person has to review it first: it holds a tool of high risk" in page
    assert "user:reviewer" in read(writer.get(step(risky, "request-review")))
    writer.post(step(risky, "request-review"))
    page = read(second.get(step(risky, "review")))
    assert "risk was raised from low to high" in page  # the same preview that the writer saw
    answer = {"answer": "approve", "note": "fine", "digest": stored(risky).digest}
    assert second.post(step(risky, "review"), answer)["Location"] == f"/publish/{risky}/"
    assert "reviewed by reviewer" in read(writer.get(f"/publish/{risky}/"))
    assert "never changes again" in read(writer.get(step(risky, "publish")))
    writer.post(step(risky, "publish"))
    assert (stored(risky).state, stored(risky).reviewed_by) == ("published", cast.reviewer)
    assert "get Calculator@1.0.0 instead" in read(writer.get(step(risky, "deprecate")))
    writer.post(step(risky, "deprecate"), {"sunset_on": "2099-01-31", "reason": "use 3.0.0"})
    gone = stored(risky)
    assert (gone.state, gone.sunset_on, gone.deprecation_note) == ("deprecated", date(2099, 1, 31), "use 3.0.0")
    assert "2099-01-31" in read(writer.get(f"/publish/{risky}/"))
    assert "it never comes back" in read(writer.get(step(risky, "withdraw")))
    writer.post(step(risky, "withdraw"), {"reason": "It rounds."})
    assert (stored(risky).state, stored(risky).withdrawal_reason) == ("withdrawn", "It rounds.")
    assert "It rounds." in read(writer.get(f"/publish/{risky}/"))
    told = Event.objects.filter(subject_kind="version", subject_id=str(risky)).order_by("seq")
    assert [event.removeprefix("version.") for event in told.values_list("event", flat=True)] == [
        *("created", "review_requested", "review_approved", "published", "deprecated", "withdrawn")
    ]


def test_a_refusal_says_why_and_sends_the_draft_back(cast: Cast, risky: ToolkitVersion) -> None:
    reviews.request(risky, by=cast.publisher)
    second = browser(cast.reviewer)
    answer = {"answer": "refuse", "note": " ", "digest": stored(risky).digest}
    assert "A refusal says why." in read(second.post(step(risky, "review"), answer), 422)
    second.post(step(risky, "review"), {**answer, "note": "too dangerous"})
    assert not stored(risky).is_in_review
    assert "too dangerous" in read(browser(cast.publisher).get(f"/publish/{risky}/"))


def test_an_answer_counts_only_for_what_was_on_the_screen(cast: Cast, risky: ToolkitVersion) -> None:
    reviews.request(risky, by=cast.publisher)
    seen = stored(risky).digest
    other = text("Calculator", "2.0.0", {"risk": "critical"})
    browser(cast.publisher).post("/publish/new/", {"manifest": other, "do": "review"})
    page = read(browser(cast.reviewer).post(step(risky, "review"), {"answer": "approve", "digest": seen}), 422)
    assert "has changed since you read it" in page
    assert not Review.objects.exists()


@pytest.mark.parametrize(
    ("key", "given", "reason"),
    [
        ("deprecate", {"sunset_on": "2020-01-01"}, "must lie ahead"),
        ("deprecate", {"sunset_on": "next week"}, "Enter a valid date"),
        ("withdraw", {"reason": "  "}, "This field is required"),
    ],
)
def test_a_step_that_is_refused_says_why_and_changes_nothing(
    cast: Cast, tool: Tool, key: str, given: dict[str, str], reason: str
) -> None:
    client = browser(cast.publisher)
    before = everything()
    assert reason in read(client.post(step(tool.version, key), given), 422)
    assert everything() == before


def test_steps_are_refused_to_those_without_the_permission_and_looking_takes_none(
    cast: Cast, tool: Tool, risky: ToolkitVersion
) -> None:
    reviews.request(risky, by=cast.publisher)
    roles = ("publisher", "reviewer", "viewer", "stranger", "with_model_permissions")
    clients = {role: browser(getattr(cast, role)) for role in roles}
    before = everything()
    given = {"reason": "x", "answer": "approve", "digest": stored(risky).digest, "manifest": "x"}
    for role, version, key, status in (
        ("reviewer", risky, "publish", 403),
        ("reviewer", risky, "edit", 403),
        ("reviewer", tool.version, "withdraw", 403),
        ("viewer", tool.version, "withdraw", 403),
        ("viewer", risky, "review", 404),
        ("publisher", risky, "review", 403),
        ("stranger", tool.version, "deprecate", 404),
        ("with_model_permissions", tool.version, "withdraw", 403),
        ("publisher", risky, "burn", 404),
        ("publisher", risky, "withdraw", 302),  # a draft is not withdrawn: back to its page
        ("publisher", tool.version, "publish", 302),
        ("publisher", risky, "request-review", 302),  # it waits already
    ):
        assert clients[role].post(step(version, key), given).status_code == status, (role, key)
    for key in ("publish", "deprecate", "withdraw", "request-review"):
        clients["publisher"].get(step(risky, key))
        clients["publisher"].get(step(tool.version, key))
    assert everything() == before
    for address in ("/publish/Calculator/", "/publish/Calculator@9.9.9/", "/publish/%00@1.0.0/"):
        assert clients["publisher"].get(address).status_code == 404


def test_who_is_affected_is_counted_from_totals_and_from_calls(cast: Cast, tool: Tool, call: MakeCall) -> None:
    from datetime import timedelta

    from execution import totals
    from execution.portal.affected import affected
    from policy import agents

    other = agents.create("other", actor="shell", call=["Calculator"]).agent
    for days in (0.01, 0.3, 2, 9, 29, 45):
        call(ago=timedelta(days=days))
    call("denied", ago=timedelta(days=12), agent=other)
    fresh = affected(Tool.objects.all())
    while totals.count_due():
        continue
    counted = affected(Tool.objects.all(), broken=["add"])
    for found in (fresh, counted):
        assert [(each.agent, each.calls, each.tools) for each in found.callers] == [
            ("caller", 5, ("Add",)),
            ("other", 1, ("Add",)),
        ]
        assert (found.agents, found.calls) == (2, 6)
        assert found.callers[0].last.date() == (datetime.now(UTC) - timedelta(days=0.01)).date()
    assert counted.callers[0].hit == ("Add",)
    page = read(browser(cast.publisher).get(step(tool.version, "withdraw")))
    assert "<strong>2 agents</strong> called it 6 times in the last 30 days." in page
    assert "all of its callers are refused" in page


def test_the_number_of_callers_does_not_change_how_often_the_database_is_asked(
    cast: Cast, tool: Tool, call: MakeCall, risky: ToolkitVersion, django_assert_max_num_queries: Any
) -> None:
    from policy import agents

    client = browser(cast.publisher)

    def asked() -> int:
        with django_assert_max_num_queries(50) as seen:
            client.get(f"/publish/{risky}/")
            client.get(step(tool.version, "withdraw"))
        return len(seen)

    call()
    few = asked()
    for number in range(8):
        call(agent=agents.create(f"bot{number}", actor="shell", call=["Calculator"]).agent)
    assert asked() == few


def test_the_page_of_a_deprecated_version_leads_on(cast: Cast, tool: Tool) -> None:
    deprecate(tool.version, by=None)
    page = read(browser(cast.publisher).get(f"/publish/{tool.version}/"))
    assert f'href="/publish/new/?from={tool.version}"' in page
    assert step(tool.version, "withdraw") in page
    assert step(tool.version, "deprecate") not in page
    assert "Withdraw" not in read(browser(cast.reviewer).get(f"/publish/{tool.version}/"))


def test_a_step_says_what_agents_get_that_name_no_version(cast: Cast, tool: Tool) -> None:
    published(version="1.5.0", by=cast.publisher)
    client = browser(cast.publisher)
    assert "Agents that name no version get Calculator@1.5.0." in read(client.get(step(tool.version, "withdraw")))
    newest, older = draft(version="1.6.0", by=cast.publisher), draft(version="1.4.0", by=cast.publisher)
    assert "all others get this one from their next call on" in read(client.get(step(newest, "publish")))
    assert "stay with Calculator@1.5.0, which is higher" in read(client.get(step(older, "publish")))


def test_api_and_admin_deprecate_with_a_day_too(cast: Cast, tool: Tool) -> None:
    api, address = cast.api("publisher"), f"/api/versions/{tool.version}/deprecate/"
    assert api.post(address, {"sunset_on": "2020-01-01"}, format="json").status_code == 409
    assert api.post(address, {"sunset_on": "2099-01-31"}, format="json").json()["sunset_on"] == "2099-01-31"
    other = published(version="1.5.0", by=cast.publisher)
    admin = f"/admin/registry/toolkitversion/{other.pk}/"
    browser(cast.publisher).post(f"{admin}deprecate/", {"note": "", "sunset_on": "2099-02-01"})
    assert stored(other).sunset_on == date(2099, 2, 1)
    assert "2099-02-01" in read(browser(cast.publisher).get(f"{admin}change/"))
