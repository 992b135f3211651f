"""The portal in a real browser: usable by keys, by everyone, in light and dark, in one's own zone, and by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.needs import AXE
from tests.stories.laboratory import Laboratory
from tests.stories.windows import Window, chromium, open_all

pytestmark = [pytest.mark.story, pytest.mark.needs("chromium")]

HISTORY = """
import django; django.setup()
from django.core.management import call_command
from django.contrib.auth.models import User
from django.test import Client
call_command("make_demo_history", calls=400, stdout=sys.stderr)
import json
def session(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client.cookies["sessionid"].value
names = ["admin", "petra", "amir", "polly", "audrey", "otto"]
print(json.dumps({name: session(name) for name in names}))
"""
# Pages that pass axe; whoever adds a page adds its address.
PAGES = [
    *("/admin/", "/admin/?window=7d", "/admin/?window=30d"),
    *("/catalogue/", "/catalogue/?layout=list&q=ticket", "/catalogue/?q=nothing+fits+this", "/catalogue/Tickets/Find/"),
    *("/agents/", "/agents/support-bot/", "/permissions/", "/permissions/?who=people", "/permissions/unused/"),
    *("/permissions/why/?agent=support-bot&tool=Billing.Refund", "/secrets/"),
    *("/publish/", "/publish/new/?from=Billing@1.0.0", "/publish/form/", "/publish/Billing@1.1.0/"),
    *("/publish/Billing@1.1.0/review/", "/publish/Billing@1.0.0/deprecate/"),
    *("/approvals/?group=tool", "/approvals/history/?who=all", "/approvals/statistics/", "/access-requests/"),
    *("/policy/", "/policy/revisions/", "/policy/evaluate/", "/policy/replays/", "/policy/shadow/"),
]
ABREAST = 5  # windows that load pages side by side
Sit = Callable[..., Window]
Tour = Callable[[str, int], dict[str, list[str]]]


def is_dark(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.classList.contains('dark')"))


@pytest.fixture(scope="module")
def sessions(laboratory: Laboratory) -> dict[str, str]:
    return json.loads(laboratory.script(HISTORY))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def sit(laboratory: Laboratory, sessions: dict[str, str], browser: Any) -> Iterator[Sit]:
    """Opens windows; when the story is told, none of them may have complained or talked to another host."""
    opened: list[Window] = []

    def sit_down(name: str = "admin", **options: Any) -> Window:
        opened.append(Window(browser, f"http://127.0.0.1:{laboratory.product.port}", sessions.get(name, ""), **options))
        return opened[-1]

    yield sit_down
    for each in opened:
        each.close()


@pytest.fixture(scope="module")
def tour(laboratory: Laboratory, sessions: dict[str, str], browser: Any) -> Tour:
    """Opens every page, once for all who ask; what axe found on each. A window that complained fails whoever asks."""

    @cache
    def go(scheme: str, width: int) -> dict[str, list[str]]:
        url, own = f"http://127.0.0.1:{laboratory.product.port}", {"width": width, "height": 900}
        windows = [Window(browser, url, sessions["admin"], color_scheme=scheme, viewport=own) for _ in range(ABREAST)]
        opened = open_all(windows, PAGES)
        found = {address: window.violations() if AXE.exists() else [] for address, window in opened}
        for window in windows:
            window.close()
        return found

    return go


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_the_content_policy_is_strict_and_stops_nothing_on_our_pages(
    sit: Sit, tour: Tour, scheme: str, width: int
) -> None:
    assert list(tour(scheme, width)) == PAGES
    sit("", color_scheme=scheme, viewport={"width": width, "height": 900}).open("/login/")


@pytest.mark.needs("axe")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_barriers_that_axe_finds(tour: Tour, scheme: str, width: int) -> None:
    assert tour(scheme, width) == {address: [] for address in PAGES}


@pytest.mark.needs("axe")
@pytest.mark.parametrize("name", ["petra", "amir", "polly", "audrey", "otto"])
def test_home_has_no_barriers_for_any_role(sit: Sit, name: str) -> None:
    window = sit(name)
    window.open("/admin/")
    assert window.violations() == []


@pytest.mark.needs("axe")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_way_in_has_no_barriers(sit: Sit, scheme: str, width: int) -> None:
    window = sit("", color_scheme=scheme, viewport={"width": width, "height": 900})
    window.open("/login/")
    assert window.violations() == []
    assert window.focused() == ""
    assert window.page.evaluate("document.activeElement.name") == "username"


def test_home_is_used_by_keys_alone(sit: Sit) -> None:
    window = sit()
    page = window.open("/admin/")
    reached = []
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.append(window.focused())
        if reached[-1] == "7 days":
            break
    assert any("Approvals" in text and "calls that wait" in text for text in reached)
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/?window=7d")
    page.locator("main summary").first.focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("table").first
    assert table.is_visible()
    page.keyboard.press("Tab")  # the table scrolls by keys
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/execution/call/**")


def test_the_sidebar_opens_by_keys_on_a_narrow_screen(sit: Sit) -> None:
    window = sit(viewport={"width": 390, "height": 844})
    page = window.open("/admin/")
    toggle = page.get_by_role("button", name="Show or hide the sidebar")
    toggle.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Policy", exact=False).first.wait_for(state="visible")


def test_the_sidebar_closes_by_keys_on_a_narrow_screen(sit: Sit) -> None:
    page = sit(viewport={"width": 390, "height": 844}).open("/policy/")
    toggle = page.get_by_role("button", name="Show or hide the sidebar")
    toggle.click()
    assert toggle.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Escape")
    page.locator("#nav-sidebar").wait_for(state="hidden")
    assert toggle.get_attribute("aria-expanded") == "false"


def test_a_theme_and_a_closed_sidebar_are_remembered_here_and_in_the_admin(sit: Sit) -> None:
    window = sit(color_scheme="light")
    page = window.open("/policy/")
    assert not is_dark(page)
    page.locator("summary", has_text="admin").click()
    page.get_by_role("button", name="Dark").click()
    assert is_dark(page)
    page.get_by_role("button", name="Show or hide the sidebar").click()
    page.locator("#nav-sidebar").wait_for(state="hidden")
    for address in ("/admin/registry/tool/", "/catalogue/"):
        window.open(address)
        assert is_dark(page), address
        assert not page.locator("#nav-sidebar").is_visible(), address
    page.get_by_role("button", name="Show or hide the sidebar").click()
    page.locator("#nav-sidebar").wait_for(state="visible")


def test_without_a_choice_the_theme_follows_the_system(sit: Sit) -> None:
    page = sit(color_scheme="light").open("/policy/")
    for scheme, worn in (("dark", "html.dark"), ("light", "html:not(.dark)")):
        page.emulate_media(color_scheme=scheme)
        page.locator(worn).wait_for(state="attached")


def test_pages_are_found_by_keys_in_the_sidebar(sit: Sit) -> None:
    page = sit().open("/policy/")
    page.keyboard.press("t")
    page.keyboard.type("capab")
    page.locator("#search-results a").first.wait_for(state="visible")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/registry/capability/")


def test_nothing_is_wider_than_a_phone(sit: Sit) -> None:
    page = sit(viewport={"width": 360, "height": 800}).open("/admin/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_times_are_shown_in_the_viewers_zone_with_utc_on_hover(sit: Sit) -> None:
    texts = {}
    for zone in ("UTC", "Asia/Tokyo"):
        page = sit(timezone_id=zone, locale="en-GB").open("/admin/")
        time = page.locator("figure time").first
        texts[zone] = (time.get_attribute("title"), time.text_content())
    assert texts["UTC"][0] == texts["Asia/Tokyo"][0]
    assert texts["UTC"][0].endswith("Z")
    hours = [int(text[1].rpartition(" ")[2][:2]) for text in texts.values()]
    assert (hours[0] + 9) % 24 == hours[1]


def test_a_time_in_a_search_is_the_viewers(sit: Sit) -> None:
    page = sit(timezone_id="Asia/Tokyo").open("/search/")
    page.fill("#q", 'since:"Nov 1, 2026, 09:30" until:2026-11-02')
    page.keyboard.press("Enter")
    page.wait_for_url("**q=since%3A2026-11-01T00%3A30Z+until%3A2026-11-02T15%3A00Z**")


def test_home_says_the_same_without_scripts(sit: Sit) -> None:
    page = sit(java_script_enabled=False).open("/admin/")
    assert "What needs you" in page.content()
    assert page.locator("figure svg rect").count() > 10
    assert "UTC</time>" in page.content()
    assert not page.get_by_role("button", name="Show or hide the sidebar").is_visible()
    page.locator("summary", has_text="admin").click()
    assert page.get_by_role("button", name="Log out").is_visible()
