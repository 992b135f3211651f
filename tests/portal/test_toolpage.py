"""A tool's page: what it does in words, what changed, who uses it; each reader sees what is theirs to see."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from guardian.shortcuts import assign_perm

from execution.portal.callers import permitted_agents
from policy import agents
from registry import publishing
from registry.models import Tool, ToolkitVersion
from tests.factories.registry import draft, numbers, published
from tests.portal.conftest import MakeCall

pytestmark = pytest.mark.django_db

Seen = Callable[..., str]


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def orders(db: None) -> ToolkitVersion:
    """Two versions of a tool with parameters inside parameters."""
    line = {"type": "object", "properties": {"sku": {"type": "string", "description": "Which <i>item</i>."}}}
    place = {
        "name": "Place",
        "title": "Place an order",
        "description": "Orders things.\n\nAnd <b>more</b>.",
        "risk": "high",
        "capabilities": ["external.side_effect", "shop.order"],
        "input": {
            "type": "object",
            "properties": {
                "lines": {"type": "array", "items": line, "minItems": 1},
                "to": {"$ref": "#/$defs/address"},
            },
            "required": ["lines"],
            "$defs": {"address": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 80}}}},
        },
        "output": {"type": "object", "properties": {"number": {"type": "integer", "description": "Of the order."}}},
    }
    elsewhere = {"type": "http", "endpoint": "http://127.0.0.1:9/add-once"}
    published("Orders", "1.0.0", {**place, "input": numbers("a"), "runtime": elsewhere})
    return published("Orders", "1.1.0", place)


def told(page: str) -> str:
    return page.partition("<main")[2].partition("</main>")[0]


def test_it_says_in_words_what_the_tool_does_and_takes(root: User, orders: ToolkitVersion, seen_by: Seen) -> None:
    page = told(seen_by(root, "/catalogue/orders/PLACE/"))  # names know no case, as at the doors
    for words in (
        "Place an order",
        "Orders things.\n\nAnd &lt;b&gt;more&lt;/b&gt;.",
        "Has an effect outside that cannot be taken back",
        "One person agrees to each call",
        "A lost one is never run again"[2:],
        "A JSON request to a web service",
        "<code>lines[].sku</code>",
        "Which &lt;i&gt;item&lt;/i&gt;.",
        "<code>to.city</code>",
        "at most 80 characters",
        "<code>number</code>",
    ):
        assert words in page, words


def test_versions_stand_side_by_side_with_a_verdict(root: User, orders: ToolkitVersion, seen_by: Seen) -> None:
    page = told(seen_by(root, "/catalogue/Orders/Place/"))
    assert "Breaking" in page
    assert "parameter lines" in page
    assert "1.0.0 and 1.1.0 side by side" in page
    old = told(seen_by(root, "/catalogue/Orders/Place/?version=1.0.0&against=1.1.0"))
    assert "1.1.0 and 1.0.0 side by side" in old
    assert "<code>a</code>" in old
    publishing.withdraw(orders, by=None, reason="it <ordered> twice")
    page = told(seen_by(root, "/catalogue/Orders/Place/"))
    assert "<code>a</code>" in page  # callers get 1.0.0 now
    assert "it &lt;ordered&gt; twice" in page
    gone = told(seen_by(root, "/catalogue/Orders/Place/?version=1.1.0"))
    assert "is withdrawn and cannot be called" in gone


def test_what_is_not_there_or_not_to_be_seen_is_not_found(
    root: User, person: Callable[..., User], orders: ToolkitVersion
) -> None:
    draft("Orders", "2.0.0", {"name": "Place"})
    vic, sol = person("vic"), person("sol")
    assign_perm("registry.view_toolkit", vic, orders.toolkit)
    for user, address, status in (
        (root, "/catalogue/Orders/Place/?version=2.0.0", 200),
        (vic, "/catalogue/Orders/Place/", 200),
        (vic, "/catalogue/Orders/Place/?version=2.0.0", 404),  # a draft
        (vic, "/catalogue/Orders/Place/?version=9.9.9", 404),
        (vic, "/catalogue/Orders/Place/?version=%00", 404),
        (vic, "/catalogue/Orders/Nothing/", 404),
        (sol, "/catalogue/Orders/Place/", 404),
    ):
        client = Client()
        client.force_login(user)
        assert client.get(address).status_code == status, (user, address)
    assert Client().get("/catalogue/Orders/Place/").headers["Location"].startswith("/login/")


def test_where_it_runs_and_who_calls_it_is_told_to_those_who_may_know(
    root: User, person: Callable[..., User], orders: ToolkitVersion, seen_by: Seen
) -> None:
    agents.create("shopper", actor="shell", call=["Orders"], owner="root")
    cal, ada, pia = person("cal"), person("ada"), person("pia")
    for user, verb in ((cal, "call"), (ada, "audit"), (pia, "publish")):
        assign_perm(f"registry.{verb}_toolkit", user, orders.toolkit)
    pages = {user.username: told(seen_by(user, "/catalogue/Orders/Place/")) for user in (cal, ada, pia, root)}
    assert [name for name, page in pages.items() if "127.0.0.1:9/add" in page] == ["ada", "pia", "root"]
    assert [name for name, page in pages.items() if "Who may call it" in page] == ["ada", "pia", "root"]
    assert [name for name, page in pages.items() if "shopper" in page] == ["ada", "pia", "root"]
    assert "side by side" in pages["cal"]  # without where it runs


def test_an_agent_may_call_whichever_way_it_was_permitted(orders: ToolkitVersion) -> None:
    ways = {name: agents.create(name, actor="shell").agent for name in ("direct", "group", "wide", "none", "off")}
    agents.create("all", actor="shell", call_all=True)
    near, wide = Group.objects.create(name="near"), Group.objects.create(name="wide")
    assign_perm("registry.call_toolkit", ways["direct"].user, orders.toolkit)
    assign_perm("registry.call_toolkit", ways["off"].user, orders.toolkit)
    assign_perm("registry.call_toolkit", near, orders.toolkit)
    assign_perm("registry.call_toolkit", wide)
    ways["group"].user.groups.add(near)
    ways["wide"].user.groups.add(wide)
    agents.set_active(ways["off"], False, actor="shell")
    assert [agent.name for agent in permitted_agents(orders.toolkit)] == ["all", "direct", "group", "wide"]


def test_usage_counts_and_lists_what_the_reader_may_see(
    root: User, person: Callable[..., User], tool: Tool, call: MakeCall, seen_by: Seen
) -> None:
    newer = published("Calculator", "1.1.0").tools.get()
    mine = call("succeeded")
    call("failed", tool=newer, tool_ref=newer.tool_id, error='{"message": "<b>broken</b>"}')
    call("denied", tool=published("Other").tools.get(), tool_ref="Other.Add@1.0.0")
    page = told(seen_by(root, "/catalogue/Calculator/Add/"))
    assert "2 calls in the last 30 days, 50.0 % of them succeeded." in page
    assert f"/calls/{mine.pk}/" in page
    assert "&lt;b&gt;broken&lt;/b&gt;" in page
    assert "Other.Add" not in page
    vic, pia = person("vic"), person("pia")
    assign_perm("registry.view_toolkit", vic, tool.version.toolkit)
    assign_perm("registry.publish_toolkit", pia, tool.version.toolkit)
    assert "Usage" not in told(seen_by(vic, "/catalogue/Calculator/Add/"))
    counted = told(seen_by(pia, "/catalogue/Calculator/Add/"))  # may count its calls, and not read them
    assert "2 calls in the last 30 days" in counted
    assert f"/calls/{mine.pk}/" not in counted
    assert "/admin/execution/call/" not in counted


def test_admin_pages_lead_to_the_catalogue_and_back(root: User, tool: Tool, seen_by: Seen) -> None:
    assert f"/admin/registry/tool/{tool.pk}/change/" in seen_by(root, "/catalogue/Calculator/Add/")
    for address in (f"registry/tool/{tool.pk}", f"registry/toolkitversion/{tool.version_id}"):
        assert "/catalogue/Calculator/Add/?version=1.0.0" in seen_by(root, f"/admin/{address}/change/")


def test_nothing_on_the_page_is_inline(root: User, tool: Tool, call: MakeCall, seen_by: Seen) -> None:
    call()
    published(
        "Calculator", "1.1.0", {"name": "Add", "description": "<script>alert(1)</script>\u202e"}, reviewed_by=root
    )
    page = told(seen_by(root, "/catalogue/Calculator/Add/"))
    for inline in (" style=", "<style", "<script", "onclick", "javascript:", "\u202e"):
        assert inline not in page


def test_it_asks_the_database_as_often_however_much_there_is(root: User, tool: Tool, call: MakeCall) -> None:
    client = Client()
    client.force_login(root)

    def queries() -> int:
        with CaptureQueriesContext(connection) as made:
            client.get("/catalogue/Calculator/Add/")
        return len(made)

    agents.create("one", actor="shell", owner="root", call=["Calculator"])
    published("Calculator", "1.0.1")
    call()
    queries()  # the first look also fills what the process remembers
    few = queries()
    for number in range(6):
        agents.create(f"more{number}", actor="shell", owner="root", call=["Calculator"])
        later: Any = published("Calculator", f"1.{number + 1}.0", {"name": "Add"}, {"name": "Sub"}).tools.first()
        call("failed", tool=later)
    assert queries() == few <= 34
