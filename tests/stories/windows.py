"""Window: one person's browser at the portal, with everything it asked for or complained about, and what axe says."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.needs import AXE

PATIENCE = 90.0  # seconds; four stories at a time on a slow machine let a browser stand still for half a minute
SILENCE = 0.15  # seconds; with `networkidle` a browser would wait half a second at each page
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
# Only what the product itself draws; the rules are all of axe's, best practices included.
RUN = "axe.run(document, {resultTypes: ['violations']})"
# What the content policy stopped is a complaint, wherever on the page and however late it happens.
WATCH = """document.addEventListener("securitypolicyviolation",
    (event) => console.error(`${event.effectiveDirective} stopped ${event.blockedURI} ${event.sample}`))"""


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(ARGUMENTS))
        yield browser
        browser.close()


class Window:
    """Opened with a session; closed, it may not have complained or talked to another host."""

    def __init__(self, browser: Any, url: str, session: str, **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        if session:
            self.context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
        self.context.set_default_timeout(PATIENCE * 1000)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self._underway: set[Any] = set()
        self._heard = time.monotonic()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._sent)
        self.page.on("requestfinished", self._answered)
        self.page.on("requestfailed", self._answered)
        self.page.on("dialog", self._opened)
        self.page.add_init_script(WATCH)

    def open(self, address: str) -> Any:
        self.begin(address)
        return self.arrive()

    def begin(self, address: str) -> None:
        """Ask for a page, and do not wait until it has loaded."""
        answer = self.page.goto(f"{self.url}{address}", wait_until="commit")
        assert answer.status == 200, (address, answer.status)
        if not _is_the_admins(address):
            rules = answer.headers["content-security-policy"].split("; ")
            assert {"script-src 'self'", "style-src 'self'"} <= set(rules), (address, rules)

    def arrive(self) -> Any:
        """The page, once it has loaded and asked for nothing more for a moment."""
        self.page.wait_for_load_state("load")
        deadline = time.monotonic() + PATIENCE
        while self._underway or time.monotonic() - self._heard < SILENCE:
            assert time.monotonic() < deadline, [request.url for request in self._underway]
            self.page.wait_for_timeout(20)  # what has happened is told to us meanwhile
        return self.page

    def violations(self) -> list[str]:
        """What axe finds on the page as it stands, everything that can be unfolded unfolded."""
        self.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate(RUN)["violations"]
        return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]

    def focused(self) -> str:
        """The text of what has the focus."""
        return str(self.page.evaluate("document.activeElement.innerText || document.activeElement.value || ''")).strip()

    def close(self) -> None:
        self.context.close()
        assert self.complaints == []
        assert self.elsewhere == []

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def _answered(self, request: Any) -> None:
        self._underway.discard(request)
        self._heard = time.monotonic()

    def _sent(self, request: Any) -> None:
        self._underway.add(request)
        self._heard = time.monotonic()
        if not request.url.startswith((self.url, "data:")):
            self.elsewhere.append(request.url)

    def _opened(self, dialog: Any) -> None:
        self.complaints.append(f"opened a dialog: {dialog.message}")
        dialog.dismiss()


def open_all(windows: Sequence[Window], addresses: Sequence[str]) -> Iterator[tuple[str, Window]]:
    """Each address in one of the windows, which load side by side; told where once it is there."""
    for first in range(0, len(addresses), len(windows)):
        together = list(zip(addresses[first:], windows, strict=False))
        for address, window in together:
            window.begin(address)
        for address, window in together:
            window.arrive()
            yield address, window


def _is_the_admins(address: str) -> bool:
    """Its pages need a wider policy than ours; home is ours."""
    path = address.partition("?")[0]
    return path.startswith("/admin/") and path != "/admin/"
