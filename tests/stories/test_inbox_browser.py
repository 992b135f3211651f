"""An approver at work in a real browser: the inbox, its keys, and a call that finishes before their eyes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory, lines
from tests.stories.windows import ARGUMENTS, PATIENCE

pytestmark = [pytest.mark.story, pytest.mark.needs("chromium")]

PASSWORD = "correct horse battery"
PEOPLE = """
import django; django.setup()
from django.contrib.auth.models import User
from guardian.shortcuts import assign_perm
from registry.models import Toolkit
for name in ("cleo", "dirk"):
    user = User.objects.create_user(name, password=sys.argv[1])
    assign_perm("registry.approve_toolkit", user, Toolkit.objects.get(name="Lab"))
"""
ANSWER = """
import django; django.setup()
from django.contrib.auth.models import User
from policy import approvals
from policy.models import Approval
approval = Approval.objects.get(call=sys.argv[2])
approvals.decide(approval.pk, by=User.objects.get(username=sys.argv[1]), answer=sys.argv[3], reason="no ticket")
"""


@pytest.fixture(scope="module")
def people(laboratory: Laboratory) -> None:
    """Two approvers who are not staff."""
    laboratory.script(PEOPLE, PASSWORD)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(ARGUMENTS))
        yield browser
        browser.close()


class Desk:
    """One person's window, and everything it asked for or complained about."""

    def __init__(self, chromium: Any, laboratory: Laboratory, name: str, width: int = 1280) -> None:
        self.url = f"http://127.0.0.1:{laboratory.product.port}"
        self.context = chromium.new_context(viewport={"width": width, "height": 900})
        self.context.set_default_timeout(PATIENCE * 1000)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._sent)
        self.page.on("dialog", self._opened)
        self.page.goto(f"{self.url}/approvals/")
        self.page.fill("[name=username]", name)
        self.page.fill("[name=password]", PASSWORD)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.url}/approvals/")

    def card(self, call: Any) -> Any:
        return self.page.locator(f"article[data-call='{call['id']}']")

    def outcome(self, call: Any) -> Any:
        """What the card says became of its question; the decisions on like calls say the same of others."""
        return self.card(call).locator(".inbox-outcome")

    def send_now(self) -> None:
        """Ends the seconds in which the last answer can be taken back."""
        self.page.get_by_role("button", name="Send now").last.click()

    def current(self) -> str:
        """The call of the card that keys act on."""
        return str(self.page.locator("article.is-current").get_attribute("data-call"))

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _sent(self, request: Any) -> None:
        if not request.url.startswith(self.url):
            self.elsewhere.append(request.url)

    def _opened(self, dialog: Any) -> None:
        self.complaints.append(f"opened a dialog: {dialog.message}")
        dialog.dismiss()

    def close(self) -> None:
        assert self.complaints == []
        assert self.elsewhere == []
        self.context.close()


@pytest.fixture
def desk(laboratory: Laboratory, people: None, chromium: Any) -> Iterator[Any]:
    """Opens windows; when the story is told, none of them may have complained or talked to another host."""
    opened: list[Desk] = []

    def sit_down(name: str, width: int = 1280) -> Desk:
        opened.append(Desk(chromium, laboratory, name, width))
        return opened[-1]

    yield sit_down
    for each in opened:
        each.close()


def test_an_approver_approves_by_keyboard_and_the_caller_gets_the_result(laboratory: Laboratory, desk: Any) -> None:
    """The journey of a call that needs a person: asked over REST, thought over once, agreed to, run, and answered."""
    from playwright.sync_api import expect

    ledger = laboratory.ledger()
    cleo = desk("cleo")
    expect(cleo.page.get_by_text("Nothing waits for an answer")).to_be_visible()
    call = laboratory.post("Fire", ledger=str(ledger))
    assert call["state"] == "awaiting_approval"
    card = cleo.card(call)
    expect(card).to_be_visible(timeout=10_000)  # by itself: nobody reloads
    expect(card).to_contain_text(str(ledger))
    cleo.page.keyboard.press("j")
    assert cleo.current() == call["id"]
    cleo.page.keyboard.press("a")
    cleo.page.keyboard.type("ticket 7")
    cleo.page.keyboard.press("Enter")
    bar = cleo.page.get_by_role("region", name="Answers that are not sent yet")
    expect(bar).to_contain_text("Approve: Lab.Fire@1.0.0 for tester.")
    expect(card).to_be_focused()
    cleo.page.keyboard.press("u")
    expect(cleo.page.locator("#inbox-news")).to_contain_text("Taken back; nothing was sent.")
    expect(bar).to_be_hidden()
    assert laboratory.get(call["id"])["state"] == "awaiting_approval"
    expect(card.get_by_label("Reason", exact=True)).to_be_focused()
    expect(card.get_by_label("Reason", exact=True)).to_have_value("ticket 7")
    cleo.page.keyboard.press("Enter")
    expect(bar).to_contain_text("sent in")
    expect(cleo.outcome(call)).to_contain_text("Approved by cleo", timeout=10_000)  # after some seconds, by itself
    expect(card).to_contain_text("The call: succeeded", timeout=15_000)
    assert lines(ledger) == 1
    ended = laboratory.ended(call["id"])
    assert (ended["state"], ended["error"]) == ("succeeded", None)
    votes = "SELECT v.reason FROM policy_vote v JOIN policy_approval a ON a.id = v.approval_id WHERE a.call_id = %s"
    assert laboratory.query(votes, [ended["call_id"]]) == [("ticket 7",)]  # what was taken back left no trace
    card.get_by_role("link", name="its timeline").click()
    expect(cleo.page.get_by_text("Verified just now")).to_be_visible()


def test_who_types_while_another_decides_keeps_the_focus_and_sees_who_won(laboratory: Laboratory, desk: Any) -> None:
    from playwright.sync_api import expect

    first = laboratory.post("Fire", ledger=str(laboratory.ledger()))
    second = laboratory.post("Fire", ledger=str(laboratory.ledger()))
    cleo = desk("cleo")
    typing = cleo.card(second).get_by_label("Reason", exact=True)
    typing.click()
    cleo.page.keyboard.type("I was about to")
    laboratory.script(ANSWER, "dirk", first["id"], "deny")
    expect(cleo.outcome(first)).to_contain_text("Denied by dirk", timeout=10_000)
    expect(cleo.outcome(first)).to_contain_text("no ticket")
    expect(typing).to_be_focused()
    expect(typing).to_have_value("I was about to")
    # Dirk answers in the moment between two looks: the loser is told, and nothing is overwritten.
    cleo.page.route("**/approvals/cards/**", lambda route: route.abort())
    laboratory.script(ANSWER, "dirk", second["id"], "deny")
    cleo.complaints.clear()
    cleo.card(second).get_by_role("button", name="Approve a", exact=True).click()
    cleo.send_now()
    expect(cleo.page.locator("#inbox-news")).to_contain_text("The call was denied by dirk")
    cleo.page.unroute("**/approvals/cards/**")
    expect(cleo.outcome(second)).to_contain_text("Denied by dirk", timeout=10_000)
    cleo.complaints[:] = [each for each in cleo.complaints if "ERR_FAILED" not in each]
    assert laboratory.get(second["id"])["state"] == "denied"


def test_several_are_listed_and_then_denied_with_one_reason(laboratory: Laboratory, desk: Any) -> None:
    from playwright.sync_api import expect

    ledger = laboratory.ledger()
    twins = [laboratory.post("Fire", ledger=str(ledger)) for _ in range(2)]
    single = laboratory.post("Fire", ledger=str(laboratory.ledger()))
    cleo = desk("cleo")
    expect(cleo.card(twins[0])).to_contain_text("× 2")
    cleo.page.keyboard.press("j")
    cleo.page.keyboard.press("x")
    cleo.page.keyboard.press("j")
    cleo.page.keyboard.press("x")
    expect(cleo.page.locator("#inbox-several")).to_contain_text("3 selected")
    cleo.page.keyboard.press("Shift+D")
    sure = cleo.page.get_by_role("dialog", name="Deny 3 calls?")
    expect(sure.get_by_role("listitem")).to_have_count(2)
    expect(sure).to_contain_text(str(ledger))
    cleo.page.keyboard.press("Enter")
    expect(sure.locator("[name=reason]:invalid")).to_be_focused()  # a denial needs a reason
    cleo.page.keyboard.type("not today")
    cleo.page.keyboard.press("Enter")
    expect(sure).to_be_hidden()
    assert laboratory.get(single["id"])["state"] == "awaiting_approval"
    cleo.send_now()
    for call in (twins[0], single):
        expect(cleo.outcome(call)).to_contain_text("Denied by cleo", timeout=10_000)
    assert {laboratory.ended(call["id"])["state"] for call in (*twins, single)} == {"denied"}
    assert lines(ledger) == 0


def test_on_a_phone_nothing_is_cut_off_and_keys_have_a_help(laboratory: Laboratory, desk: Any) -> None:
    from playwright.sync_api import expect

    call = laboratory.post("Fire", ledger=str(laboratory.ledger("x" * 200)))
    dirk = desk("dirk", width=390)
    expect(dirk.card(call)).to_be_visible()
    for path in (
        "/approvals/",
        "/approvals/history/",
        "/approvals/statistics/",
        "/approvals/grants/",
        "/approvals/break-glass/",
    ):
        dirk.page.goto(dirk.url + path)
        assert dirk.page.evaluate("document.documentElement.scrollWidth") <= 390, path
    dirk.page.goto(f"{dirk.url}/approvals/")
    dirk.page.keyboard.press("?")
    expect(dirk.page.get_by_role("dialog")).to_contain_text("undo the last answer")
    dirk.page.keyboard.press("Escape")
    expect(dirk.page.get_by_role("dialog")).to_be_hidden()
    dirk.page.keyboard.press("o")
    dirk.page.wait_for_url("**/approvals/*-*/")
    dirk.card(call).get_by_label("Reason", exact=True).fill("not on a phone")
    dirk.card(call).get_by_role("button", name="Deny").click()
    dirk.page.goto(f"{dirk.url}/approvals/history/")  # who leaves has meant it: nothing is lost, and nothing doubled
    assert laboratory.ended(call["id"])["state"] == "denied"
    dirk.page.reload()
    expect(dirk.page.locator(".inbox-row").first).to_contain_text("not on a phone")


def test_what_an_agent_sends_runs_nothing_and_nobody_frames_the_page(laboratory: Laboratory, desk: Any) -> None:
    from playwright.sync_api import expect

    payload = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e\"'><svg onload=alert(3)>"
    body = {"tool_id": "Lab.Fire", "input": {"ledger": payload}, "context": {"user_id": payload}}
    call = laboratory.send("POST", "/api/calls/", body, headers={"Prefer": "wait=0"}).body
    cleo = desk("cleo")
    for path in ("/approvals/", f"/approvals/{call['approval']['id']}/"):
        cleo.page.goto(cleo.url + path)
        expect(cleo.card(call)).to_contain_text("<script>alert(2)</script>")
        expect(cleo.card(call).locator("mark").first).to_have_text("⟦U+202E⟧")
    cleo.card(call).get_by_label("Reason", exact=True).fill(payload)
    cleo.card(call).get_by_role("button", name="Deny").click()
    cleo.send_now()
    expect(cleo.outcome(call)).to_contain_text("Denied by cleo")
    cleo.page.goto(f"{cleo.url}/approvals/history/")
    expect(cleo.page.locator(".inbox-row").first).to_contain_text("<svg onload=alert(3)>")
    assert cleo.complaints == []
    cleo.page.evaluate("document.body.append(Object.assign(document.createElement('iframe'), {src: '/approvals/'}))")
    cleo.page.wait_for_timeout(1_000)
    assert "Approvals" not in cleo.page.frames[-1].content()
    assert any("frame" in each.lower() for each in cleo.complaints), cleo.complaints
    cleo.complaints.clear()
