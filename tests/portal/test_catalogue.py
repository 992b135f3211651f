"""The catalogue: every tool once, for those who may see it, found by words and filters that the address keeps."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from registry import publishing
from registry.models import ToolkitVersion
from tests.factories.registry import draft, numbers, published

pytestmark = pytest.mark.django_db

Seen = Callable[..., str]


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def shelf(db: None) -> dict[str, ToolkitVersion]:
    """A handful of tools that differ in everything one can ask for."""
    wide = {
        "type": "object",
        "properties": {"address": {"type": "object", "properties": {"postcode": {"type": "string"}}}},
    }
    container = {"type": "container", "image": "tool@sha256:" + "a" * 64}
    return {
        "sums": published("Calculator", "1.0.0", {"name": "Add", "title": "Add numbers"}, {"name": "Sub"}),
        "mail": published(
            "Mail", "1.0.0", {"name": "Send", "risk": "high", "capabilities": ["external.side_effect"], "input": wide}
        ),
        "box": published("Box", "1.0.0", {"name": "Run", "runtime": container, "description": "Runs a <b>box</b>."}),
    }


def names(page: str) -> list[str]:
    found = page.partition('id="found"')[2].partition("</section>")[0]
    return re.findall(r'<a (?:class="text-link" )?href="/catalogue/[^"?]+/">([^<]+)</a>', found)


def test_every_tool_is_there_once_in_the_version_that_callers_get(
    root: User, shelf: dict[str, ToolkitVersion], seen_by: Seen
) -> None:
    published("Calculator", "1.2.0", {"name": "Add", "title": "Add with care"})
    draft("Calculator", "2.0.0", {"name": "Add"}, {"name": "Multiply"})
    page = seen_by(root, "/catalogue/")
    assert names(page) == ["Box.Run", "Calculator.Add", "Calculator.Multiply", "Calculator.Sub", "Mail.Send"]
    assert "Add with care" in page
    assert "Add numbers" not in page
    assert "&lt;b&gt;box&lt;/b&gt;" in page


def test_words_and_filters_narrow_it(root: User, shelf: dict[str, ToolkitVersion], seen_by: Seen) -> None:
    questions = {
        "q=send": ["Mail.Send"],
        "q=calculator.ADD+numbers": ["Calculator.Add"],
        "q=postcode": ["Mail.Send"],  # a parameter inside a parameter
        "q=two+numbers": ["Calculator.Add", "Calculator.Sub", "Mail.Send"],  # what they say they do
        "risk=high": ["Mail.Send"],
        "capability=external.side_effect": ["Mail.Send"],
        "runtime=container": ["Box.Run"],
        "runtime=http&q=calc&layout=list": ["Calculator.Add", "Calculator.Sub"],
        "state=draft": [],
        "risk=x&runtime=%00&state=x": ["Box.Run", "Calculator.Add", "Calculator.Sub", "Mail.Send"],  # no such filters
    }
    assert {asked: names(seen_by(root, f"/catalogue/?{asked}")) for asked in questions} == questions


def test_it_is_narrowed_by_who_may_publish(root: User, shelf: dict[str, ToolkitVersion], seen_by: Seen) -> None:
    ana, gus, team = User.objects.create_user("ana"), User.objects.create_user("gus"), Group.objects.create(name="t")
    assign_perm("registry.publish_toolkit", ana, shelf["mail"].toolkit)
    assign_perm("registry.publish_toolkit", team, shelf["box"].toolkit)
    gus.groups.add(team)
    type(shelf["sums"].toolkit).objects.filter(name="Calculator").update(owner=gus)
    page = seen_by(root, "/catalogue/?owner=ana")
    assert names(page) == ["Mail.Send"]
    assert all(f'<option value="{name}"' in page for name in ("ana", "gus"))
    assert names(seen_by(root, "/catalogue/?owner=gus")) == ["Box.Run", "Calculator.Add", "Calculator.Sub"]
    assert names(seen_by(ana, "/catalogue/")) == ["Mail.Send"]
    assert 'value="gus"' not in seen_by(ana, "/catalogue/")  # answers for nothing that ana sees


def test_a_state_shows_what_is_in_it(root: User, shelf: dict[str, ToolkitVersion], seen_by: Seen) -> None:
    publishing.deprecate(shelf["box"], by=None, reason="use Crate")
    publishing.withdraw(shelf["mail"], by=None, reason="it leaked")
    published("Calculator", "1.1.0", {"name": "Add"})
    assert names(seen_by(root, "/catalogue/?state=deprecated")) == ["Box.Run"]
    assert names(seen_by(root, "/catalogue/?state=withdrawn")) == ["Mail.Send"]
    assert names(seen_by(root, "/catalogue/?state=published")) == ["Calculator.Add", "Calculator.Sub"]
    assert "Withdrawn" in seen_by(root, "/catalogue/?q=mail")


def test_people_see_the_toolkits_they_may_see(
    person: Callable[..., User], shelf: dict[str, ToolkitVersion], seen_by: Seen
) -> None:
    draft("Mail", "2.0.0", {"name": "Recall"})
    vic, pia, sol = person("vic"), person("pia"), User.objects.create_user("sol")
    assign_perm("registry.view_toolkit", vic, shelf["mail"].toolkit)
    assign_perm("registry.publish_toolkit", pia, shelf["mail"].toolkit)
    assert names(seen_by(vic, "/catalogue/")) == ["Mail.Send"]
    assert 'value="draft"' not in seen_by(vic, "/catalogue/")
    assert names(seen_by(pia, "/catalogue/?state=draft")) == ["Mail.Recall"]
    page = seen_by(sol, "/catalogue/")
    assert "There is no tool that you may see" in page
    assert "Mail" not in page.partition("<main")[2]
    assert "No tool fits all of this" in seen_by(vic, "/catalogue/?q=nothing+like+it")


def test_while_one_types_only_what_was_found_comes_back(root: User, shelf: dict[str, ToolkitVersion]) -> None:
    client = Client()
    client.force_login(root)
    asked = "/catalogue/?q=send&capability=&risk=&layout=list"
    part = client.get(asked, headers={"HX-Request": "true"})
    assert part.content.decode().lstrip().startswith('<section id="found"')
    assert part.headers["HX-Replace-Url"] == "/catalogue/?q=send&layout=list"
    back = client.get(asked, headers={"HX-Request": "true", "HX-History-Restore-Request": "true"})
    assert "<main" in back.content.decode()


def test_pages_keep_the_question(root: User, seen_by: Seen) -> None:
    published("Many", "1.0.0", *({"name": f"Tool{number:02}"} for number in range(30)))
    page = seen_by(root, "/catalogue/?q=tool&risk=low")
    assert len(names(page)) == 24
    assert "/catalogue/?q=tool&amp;risk=low&amp;page=2" in page
    assert names(seen_by(root, "/catalogue/?q=tool&risk=low&page=2"))[0] == "Many.Tool24"
    assert len(names(seen_by(root, "/catalogue/?q=tool&layout=list"))) == 30


def test_hostile_texts_stay_text(root: User, seen_by: Seen) -> None:
    words = "<script>alert(1)</script>\u202e\x07"
    published("Bad", "1.0.0", {"name": "Tool", "title": words, "description": words}, reviewed_by=root)
    for layout in ("cards", "list"):
        page = seen_by(root, f"/catalogue/?layout={layout}&q=%3Cscript%3Ealert(1)")
        assert "<script>alert" not in page
        assert "\u202e" not in page


def test_nothing_on_the_page_is_inline(root: User, shelf: dict[str, ToolkitVersion], seen_by: Seen) -> None:
    own = seen_by(root, "/catalogue/").partition("<main")[2].partition("</main>")[0]
    for inline in (" style=", "<style", "<script", "onclick", "javascript:", "http://", "https://"):
        assert inline not in own


@pytest.mark.parametrize("asked", ["", "?q=add+number&risk=low&layout=list"])
def test_it_asks_the_database_as_often_however_much_there_is(root: User, asked: str) -> None:
    client = Client()
    client.force_login(root)

    def queries() -> int:
        with CaptureQueriesContext(connection) as made:
            client.get(f"/catalogue/{asked}")
        return len(made)

    published("First")
    few = queries()
    for number in range(6):
        tools: list[dict[str, Any]] = [{"name": f"Add{place}", "input": numbers("a")} for place in range(4)]
        published(f"More{number}", "1.0.0", *tools, by=User.objects.create_user(f"p{number}"))
    assert queries() == few <= 18
