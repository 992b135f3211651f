"""A policy owner at work in a real browser: a draft, its order, a replay and its picture, and then it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory
from tests.stories.windows import Window, chromium

pytestmark = [pytest.mark.story, pytest.mark.needs("chromium")]

POLLY = """
import django; django.setup()
from django.contrib.auth.models import Group, User
from django.test import Client
import json
polly, is_new = User.objects.get_or_create(username="polly", is_staff=True)
polly.groups.add(Group.objects.get(name="policy owner"))
client = Client()
client.force_login(polly)
print(json.dumps(client.cookies["sessionid"].value))
"""
POLICY = """\
apiVersion: placet.dev/v1
kind: Policy
spec:
  rules:
    - {name: people look at echoes, tools: [Lab.Echo], effect: ask, ask: {quorum: 1}}
    - {name: the lab is open, tools: ["Lab.*"], effect: allow}
    - {name: nobody crashes, tools: [Lab.Crash], effect: deny}
"""


TRIED = """
import django; django.setup()
from django.contrib.auth.models import User
from policy import replays, revisions
from policy.handedin import from_text
polly = User.objects.get(username="polly")
made = revisions.new_draft(by=polly, rules=from_text(sys.argv[1]).rules, note="To look at")
asked = replays.ask(made.number, 100, by=polly)
replays.work_off(asked.pk)
print(made.number, replays.wait_for(asked.pk, patience=30).pk)
"""


@pytest.fixture
def window(laboratory: Laboratory) -> Iterator[Window]:
    session = json.loads(laboratory.script(POLLY))
    with chromium() as browser:
        opened = Window(browser, f"http://127.0.0.1:{laboratory.product.port}", session)
        yield opened
        opened.close()


def order(page: Any) -> list[str]:
    return [str(each.get_attribute("data-rule")) for each in page.locator("[data-rule]").all()]


def grip(page: Any, rule: str) -> Any:
    return page.locator(f"[data-rule='{rule}'] [data-grip]")


def test_a_policy_is_drafted_dragged_replayed_looked_at_and_activated(laboratory: Laboratory, window: Window) -> None:
    from playwright.sync_api import expect

    for number in range(3):
        assert laboratory.post("Echo", wait=20, value=str(number))["state"] == "succeeded"
    page = window.open("/policy/revisions/new/")
    page.fill("[name=note]", "Echoes are looked at")
    page.fill("[name=text]", POLICY)
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("heading", name="Rules, in their order")).to_be_visible()
    expect(page.get_by_text("No agent may call Lab.Crash.").first).to_be_visible()
    draft = page.url

    # With the pointer: the open lab goes to the top, above the rule that asks.
    grip(page, "the lab is open").hover()
    page.mouse.down()
    box = page.locator("[data-rule='people look at echoes']").bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + 4, steps=6)
    page.mouse.up()
    expect(page.locator("#draft [role=status]")).to_have_text("The rule “the lab is open” is now number 1.")
    assert order(page) == ["the lab is open", "people look at echoes", "nobody crashes"]
    # With keys: down again, and the handle keeps the focus.
    expect(grip(page, "the lab is open")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#draft [role=status]")).to_have_text("The rule “the lab is open” is now number 2.")
    expect(grip(page, "the lab is open")).to_be_focused()
    page.get_by_role("button", name="Move “nobody crashes” up").click()
    expect(page.locator("#draft [role=status]")).to_have_text("The rule “nobody crashes” is moved up.")
    # A drag that is given up changes nothing, and what was saved is still there after a reload.
    grip(page, "nobody crashes").hover()
    page.mouse.down()
    page.mouse.move(box["x"] + 40, 5, steps=3)
    page.keyboard.press("Escape")
    page.mouse.up()
    page.reload()
    assert order(page) == ["people look at echoes", "nobody crashes", "the lab is open"]
    expect(page.get_by_role("heading", name="6 rules differ")).to_be_visible()

    page.get_by_role("link", name="Replay", exact=True).last.click()
    page.get_by_role("button", name="Replay").click()
    picture = page.get_by_role("figure", name="What changes")
    expect(picture).to_be_visible(timeout=20_000)
    expect(page.get_by_role("heading", name="Newly asked: 3")).to_be_visible()
    assert picture.locator("path.turns-flow.is-other").count() == 1
    picture.get_by_text("Show as a table").click()
    expect(picture.get_by_role("row", name="Allowed 3 3")).to_be_visible()

    page.get_by_role("link", name="Activate revision").click()
    page.get_by_role("button", name="Activate revision").click()
    expect(page.get_by_text("is live now.")).to_be_visible()
    assert page.url == draft
    assert page.locator("[data-grip]").count() == 0  # what was live never changes
    judged = laboratory.post("Echo", value="4")
    assert judged["state"] == "awaiting_approval"
    assert judged["decision"]["rule"] == "people look at echoes"


@pytest.mark.needs("axe")
def test_a_draft_and_a_replay_have_no_barriers_that_axe_finds(laboratory: Laboratory, window: Window) -> None:
    laboratory.post("Echo", wait=20, value="seen")
    number, replay = laboratory.script(TRIED, POLICY).split()
    found = []
    for scheme, width in (("light", 1280), ("dark", 390)):
        window.page.emulate_media(color_scheme=scheme)
        window.page.set_viewport_size({"width": width, "height": 900})
        for address in (f"/policy/revisions/{number}/", f"/policy/replays/{replay}/"):
            page = window.open(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            found += window.violations()
    assert found == []
