"""Publish: everybody finds their own drafts, reviews and versions, and nobody those of others."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client
from guardian.shortcuts import assign_perm

from policy import reviews
from registry.models import Tool, Toolkit, ToolkitVersion
from registry.publishing import deprecate
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import draft, published
from tests.portal.publishkit import browser, queries, read

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(tool: Tool) -> Cast:
    return cast_of(tool.version.toolkit)


def listed(page: str, key: str) -> list[str]:
    """The versions of one list, in order."""
    section = re.search(rf'<section[^>]*id="{key}".*?</section>', page, re.S)
    return re.findall(r'href="/publish/([^/"]+)/"', section[0]) if section else ["no such list"]


def test_each_list_holds_what_is_this_persons(cast: Cast) -> None:
    draft(version="1.1.0", by=cast.publisher)
    waiting = draft("Calculator", "2.0.0", {"risk": "high"}, by=cast.publisher)
    reviews.request(waiting, by=cast.publisher)
    deprecated = deprecate(published(version="1.0.1", by=cast.publisher), by=None, sunset_on=date(2099, 1, 31))
    draft(version="3.0.0", by=cast.superuser)
    published("Abacus", by=cast.superuser)
    page = read(browser(cast.publisher).get("/publish/"))
    assert listed(page, "drafts") == ["Calculator@1.1.0"]
    assert listed(page, "waiting") == ["Calculator@2.0.0"]
    assert listed(page, "published") == [str(deprecated)]
    assert "until 2099-01-31" in page
    assert 'id="to-review"' not in page
    reviewer = read(browser(cast.reviewer).get("/publish/"))
    assert listed(reviewer, "to-review") == ["Calculator@2.0.0"]
    assert "Paste or upload a manifest" not in reviewer
    assert "Abacus" not in page + reviewer


def test_a_version_whose_day_has_come_says_so(cast: Cast) -> None:
    deprecate(published(version="1.0.1", by=cast.publisher), by=None, sunset_on=date(2099, 1, 31))
    ToolkitVersion.objects.filter(state="deprecated").update(sunset_on=datetime.now(UTC).date())
    assert "may be withdrawn now" in read(browser(cast.publisher).get("/publish/"))


def test_where_there_is_nothing_the_page_says_what_to_do(person: Callable[..., User]) -> None:
    page = read(browser(person("pia", "publisher")).get("/publish/"))
    for told in ("A new version begins with a manifest", "Nothing of yours waits", "You have not published a version"):
        assert told in page


def test_publishing_is_shown_to_those_whose_work_it_is(cast: Cast, person: Callable[..., User]) -> None:
    link = 'href="/publish/"'
    for who in (cast.publisher, cast.reviewer, person("pia", "publisher"), cast.superuser):
        assert link in read(browser(who).get("/admin/")), who
        assert browser(who).get("/publish/").status_code == 200
    for who in (cast.viewer, cast.stranger, person("ada", "auditor"), cast.agent.agent.user):
        assert link not in browser(who).get("/admin/").content.decode(), who
        for address in ("/publish/", "/publish/new/", "/publish/form/"):
            assert browser(who).get(address).status_code == 403, (who, address)
    assert Client().get("/publish/")["Location"] == "/login/?next=/publish/"
    assert browser(cast.publisher).post("/publish/").status_code == 405


def test_the_number_of_versions_does_not_change_how_often_the_database_is_asked(cast: Cast) -> None:
    client = browser(cast.publisher)
    assign_perm("registry.review_toolkit", cast.publisher, Toolkit.objects.get())
    client.get("/publish/")

    def fill(start: int, end: int) -> int:
        for number in range(start, end):
            draft(version=f"1.{number}.0", by=cast.publisher)
            reviews.request(draft(version=f"2.{number}.0", by=cast.publisher), by=cast.publisher)
            reviews.request(draft(version=f"3.{number}.0", by=cast.superuser), by=cast.superuser)
        return len(queries(client, "/publish/"))

    few = fill(1, 3)
    assert fill(3, 12) == few <= 20


def test_hostile_words_are_text_and_nothing_is_inline(cast: Cast) -> None:
    hostile = {"title": "<img src=x onerror=alert(1)>", "description": "</textarea><script>alert(2)</script>\u202e"}
    version = draft("Calculator", "1.1.0", by=cast.publisher, **hostile)
    client = browser(cast.publisher)
    for address in ("/publish/", f"/publish/{version}/", f"/publish/{version}/edit/", f"/publish/{version}/publish/"):
        page = read(client.get(address)).partition("<main")[2].partition("</main>")[0]
        assert "<img src=x" not in page
        for inline in (" style=", "<style", "<script", "onclick", "javascript:"):
            assert inline not in page, (address, inline)
    shown = read(client.get(f"/publish/{version}/"))
    assert "&lt;img src=x" in shown
    assert "\u202e" not in shown
