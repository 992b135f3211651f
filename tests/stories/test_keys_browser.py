"""Key rotation in a real browser: the old key works until it ends, the new one at once, and the trail has both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory
from tests.stories.product import wait_until
from tests.stories.windows import Window, chromium

pytestmark = [pytest.mark.story, pytest.mark.needs("chromium")]

OWNER = """
import django; django.setup()
from django.contrib.auth.models import User
from django.test import Client
from policy.models import Agent
olga = User.objects.create_user("olga", is_staff=True)
Agent.objects.filter(name="tester").update(owner=olga)
def session(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client.cookies["sessionid"].value
import json
print(json.dumps({name: session(name) for name in ("olga", "admin")}))
"""
# The clock of a day is not waited for: the key ends now instead of tomorrow.
END = """
import django; django.setup()
from django.utils import timezone
from policy.models import Credential
Credential.objects.filter(prefix=sys.argv[1]).update(expires_at=timezone.now())
"""
# Beside the pages that test_portal_browser looks at, those that need something of this laboratory.
PAGES = [
    "/agents/tester/",
    "/permissions/of/?holder=agent:tester&toolkit=Lab&take=call",
    "/permissions/of/",
    "/permissions/why/?agent=tester&tool=Lab.Echo",
    "/new-agent/",
]


@pytest.fixture(scope="module")
def sessions(laboratory: Laboratory) -> dict[str, str]:
    return json.loads(laboratory.script(OWNER))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def window_of(laboratory: Laboratory, browser: Any, session: str, **options: Any) -> Window:
    return Window(browser, f"http://127.0.0.1:{laboratory.product.port}", session, **options)


def called_with(laboratory: Laboratory, key: str) -> int:
    """The status that a call with this key is answered with."""
    body = {"request": {"tool_id": "Lab.Echo", "input": {"value": "hello"}}}
    return laboratory.send("POST", "/tools/call", body, headers={"OXP-API-Key": key}).status


def test_an_owner_rotates_a_key_and_programs_move_over_without_a_gap(
    laboratory: Laboratory, sessions: dict[str, str], browser: Any
) -> None:
    old = laboratory.key
    prefix = old.split("_")[1]
    window = window_of(laboratory, browser, sessions["olga"], permissions=["clipboard-read", "clipboard-write"])
    page = window.open("/agents/")
    page.get_by_role("link", name="tester").click()
    page.locator("summary", has_text="Rotate, ending").focus()
    page.keyboard.press("Enter")  # by keys alone
    assert page.get_by_label("When the old key ends").input_value() == "24"
    page.get_by_role("button", name=f"Rotate {prefix}").click()  # and that is what one click takes
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    new = page.evaluate("navigator.clipboard.readText()")
    assert new == page.locator("#key").text_content()
    assert new != old

    assert [called_with(laboratory, key) for key in (old, new)] == [200, 200]
    assert wait_until(lambda: len(laboratory.query("SELECT used_at FROM policy_keyuse")) == 2)
    laboratory.script(END, prefix)
    assert [called_with(laboratory, key) for key in (old, new)] == [401, 200]

    page.get_by_role("link", name="I have copied it").click()
    assert new not in page.content()
    assert page.locator("tr", has_text=prefix).get_by_text("expired", exact=True).is_visible()
    page.get_by_role("link", name="What happened to its keys").click()
    page.get_by_text("agent.key_rotated").wait_for()
    window.close()

    auditor = window_of(laboratory, browser, sessions["admin"])
    for key in (prefix, new.split("_")[1]):
        found = auditor.open(f"/search/?in=events&q=event:call.received+%22key:{key}%22")
        assert found.get_by_text("call.received").first.is_visible()
    auditor.close()


@pytest.mark.needs("axe")
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_these_pages_have_no_barriers_that_axe_finds(
    laboratory: Laboratory, sessions: dict[str, str], browser: Any, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 900}
    window = window_of(laboratory, browser, sessions["admin"], color_scheme=scheme, viewport=size)
    found = {}
    for address in PAGES:
        page = window.open(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        found[address] = window.violations()
    assert found == {address: [] for address in PAGES}
    window.close()
