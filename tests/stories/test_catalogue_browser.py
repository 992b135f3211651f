"""Somebody finds a tool while typing, copies a call that works, and tries it: by keys, with people, without scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory
from tests.stories.windows import Window, chromium

pytestmark = [pytest.mark.story, pytest.mark.needs("chromium")]

SESSION = """
import django; django.setup()
from django.contrib.auth.models import User
from django.test import Client
client = Client()
client.force_login(User.objects.get(username=sys.argv[1]))
print(client.cookies["sessionid"].value)
"""
APPROVE = """
import django; django.setup()
from django.contrib.auth.models import User
from policy import approvals
from policy.models import Approval
approvals.decide(Approval.objects.get(state="pending").pk, by=User.objects.get(username="ana"), answer="approve")
"""
Sit = Callable[..., Window]


@pytest.fixture(scope="module")
def session(laboratory: Laboratory) -> str:
    return laboratory.script(SESSION, "admin").strip()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def sit(laboratory: Laboratory, session: str, browser: Any) -> Iterator[Sit]:
    """Opens windows; when the story is told, none of them may have complained or talked to another host."""
    opened: list[Window] = []

    def sit_down(**options: Any) -> Window:
        opened.append(Window(browser, f"http://127.0.0.1:{laboratory.product.port}", session, **options))
        return opened[-1]

    yield sit_down
    for each in opened:
        each.close()


def test_a_tool_is_found_while_typing_and_tried_by_keys_alone(sit: Sit) -> None:
    window = sit(permissions=["clipboard-read", "clipboard-write"])
    page = window.open("/catalogue/")
    page.locator("#q").focus()
    page.keyboard.type("third number")  # what a parameter says
    page.wait_for_url("**/catalogue/?q=third+number")
    page.get_by_text("1 tool found").wait_for()
    assert page.evaluate("document.activeElement.id") == "q"
    page.select_option("select[name=risk]", "low")
    page.wait_for_url("**/catalogue/?q=third+number&risk=low")
    for _ in range(20):
        page.keyboard.press("Tab")
        if window.focused() == "Calculator.Add":
            break
    page.wait_for_load_state("networkidle")
    assert window.focused() == "Calculator.Add"  # to leave the box asks for nothing anew
    page.keyboard.press("Enter")
    page.wait_for_url("**/catalogue/Calculator/Add/")
    page.get_by_label("a", exact=True).focus()
    page.keyboard.type("2")
    page.keyboard.press("Tab")
    page.keyboard.type("many")
    page.keyboard.press("Enter")
    page.get_by_text("Must be a number, such as 2.5.").wait_for()
    page.wait_for_function("document.activeElement.name === 'p-1'")  # where it was wrong
    page.keyboard.press("Control+a")
    page.keyboard.type("3.5")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="It worked").wait_for()
    assert page.locator("#try-panel pre").inner_text() == "5.5"
    page.get_by_role("button", name="Copy").first.focus()
    page.keyboard.press("Enter")
    page.get_by_text("Copied to the clipboard.").wait_for(state="attached")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#snippet-curl").inner_text()
    page.get_by_role("link", name="Its timeline").click()
    page.get_by_role("heading", name="Verified just now").wait_for()


def test_the_calls_to_copy_work_as_they_are(sit: Sit, laboratory: Laboratory) -> None:
    page = sit().open("/catalogue/Calculator/Add/")
    key = json.loads((laboratory.home / "demo.json").read_text())["agents"][0]["key"]
    program = page.locator("#snippet-python").text_content()
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program],
        env=os.environ | {"PLACET_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(ran.stdout)["result"]["value"] == 2


def test_a_call_that_waits_for_a_person_ends_on_the_page_once_they_agreed(sit: Sit, laboratory: Laboratory) -> None:
    page = sit().open("/catalogue/Payments/Refund/")
    page.get_by_label("order", exact=True).fill("A-17")
    page.get_by_label("amount", exact=True).fill("450")
    page.get_by_role("button", name="Run it").click()
    page.get_by_role("heading", name="A person must agree first").wait_for()
    assert page.get_by_role("link", name="The question to them").is_visible()
    laboratory.script(APPROVE)
    page.get_by_role("heading", name="It worked").wait_for(timeout=30_000)
    assert '"amount": 450' in page.locator("#try-panel pre").inner_text()


def test_without_scripts_and_on_a_phone_one_lets_an_agent_of_ones_own_in_and_tries(sit: Sit) -> None:
    window = sit(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = window.open("/catalogue/?q=timestamp&layout=list")
    page.get_by_role("link", name="System.GetTimestamp").click()
    page.get_by_text("Let another agent of yours call it").click()
    page.get_by_role("button", name="Let it call System").click()
    page.locator("select[name=agent]").first.select_option("me")
    page.get_by_role("button", name="Run it").click()
    page.get_by_role("heading", name="It worked").wait_for()
    assert "Made as person-admin" in page.locator("#try-panel").inner_text()


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_is_wider_than_the_screen(sit: Sit, width: int) -> None:
    window = sit(viewport={"width": width, "height": 800})
    for address in (
        "/catalogue/",
        "/catalogue/?layout=list",
        "/catalogue/Calculator/Add/",
        "/catalogue/Payments/Payout/",
    ):
        page = window.open(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
