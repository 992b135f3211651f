"""An auditor in a real browser: searches, keeps the search, reads a call, and takes evidence along that verifies."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory
from tests.stories.product import ROOT
from tests.stories.windows import Window, chromium

pytestmark = [pytest.mark.story, pytest.mark.needs("chromium")]

AUDITOR = """
import django; django.setup()
from django.core.management import call_command
from django.contrib.auth.models import User
from django.test import Client
call_command("make_demo_history", calls=300, stdout=sys.stderr)
from audit.sealing import seal_new_events
seal_new_events()
client = Client()
client.force_login(User.objects.get(username="audrey"))
print(client.cookies["sessionid"].value)
"""
PAGES = [
    "/search/",
    "/search/?in=events&q=kind:call",
    "/search/?q=state:failed+since:7d",
    "/evidence/",
    "/evidence/new/",
]


@pytest.fixture(scope="module")
def session(laboratory: Laboratory) -> str:
    return laboratory.script(AUDITOR).strip()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def window(laboratory: Laboratory, session: str, browser: Any) -> Iterator[Window]:
    opened = Window(browser, f"http://127.0.0.1:{laboratory.product.port}", session)
    yield opened
    opened.close()


def verified(download: Any, place: Path) -> dict[str, Any]:
    """What the pack's own verifier says, started from the unpacked folder as its README tells."""
    folder = place / "unpacked"
    with zipfile.ZipFile(download.path()) as pack:
        pack.extractall(folder)
    command = [sys.executable, "-I", "-S", str(folder / "verify.py"), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=place)
    assert (folder / "verify.py").read_bytes() == (ROOT / "audit" / "verifier.py").read_bytes()
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


def test_an_auditor_finds_a_call_keeps_the_search_and_takes_its_evidence(window: Window, tmp_path: Path) -> None:
    page = window.open("/search/")
    page.keyboard.press("Tab")
    page.fill("#q", "state:succeeded since:60d")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=state**")
    assert page.get_by_text("Verified just now:").is_visible()
    page.fill("#keep-name", "what went well")
    page.keyboard.press("Enter")
    page.get_by_text("Kept as “what went well”.").wait_for()
    page.get_by_role("link", name="Without: since 60 days ago").click()
    page.wait_for_url("**q=state%3Asucceeded")
    page.get_by_role("link", name="what went well").click()
    page.wait_for_url("**since**")
    page.locator("table a").first.click()
    page.get_by_role("heading", name="Verified just now").wait_for()
    assert page.locator("svg.call-scale").count() >= 2
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Take the evidence along").click()
    told = verified(waiting.value, tmp_path)
    assert told["ok"], told


def test_an_auditor_makes_a_pack_of_many_events_and_watches_it(window: Window, tmp_path: Path) -> None:
    page = window.open("/search/?in=events&q=kind:call")
    page.get_by_role("link", name="Evidence pack or export").click()
    page.get_by_role("button", name="Make it").click()
    button = page.get_by_role("link", name="Download")
    button.wait_for(timeout=60_000)
    with page.expect_download() as waiting:
        button.click()
    told = verified(waiting.value, tmp_path)
    assert told["ok"], told
    assert any("the maker signed" in each for each in told["checked"])


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_these_pages_have_no_barriers_that_axe_finds(
    laboratory: Laboratory, session: str, browser: Any, scheme: str
) -> None:
    for width in (1280, 390):
        url = f"http://127.0.0.1:{laboratory.product.port}"
        window = Window(browser, url, session, color_scheme=scheme, viewport={"width": width, "height": 900})
        found = {}
        for address in PAGES:
            page = window.open(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            found[address] = window.violations()
        assert found == {address: [] for address in PAGES}
        window.close()
