"""`make screens`: pictures of the portal's pages in docs/screens/, in light, dark and on a phone."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.servers import ROOT, CannotMeasure, Home, product
from config.reaper import Reaper

FOLDER = ROOT / "docs" / "screens"
CALLS = "20000"
CHROMIUM = "/usr/bin/chromium"
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}
MAX_BYTES = 250_000
TALLEST = {"light": 1400, "dark": 1400, "phone": 2000}  # a long list looks the same further down


def main(names: list[str]) -> int:
    """Of the pages that are named, or of all."""
    reaper = Reaper()
    try:
        with tempfile.TemporaryDirectory(prefix="placet-screens-") as folder:
            reaper.folder(Path(folder))
            home = Home.make(Path(folder), "screens")
            home.prepare()
            home.run("manage.py", "make_demo_history", "--calls", CALLS)
            with product(home, reaper, is_inline=True):
                pages = json.loads(home.run("-m", "bench.showcase"))
                unknown = set(names) - {page["name"] for page in pages}
                if unknown:
                    raise CannotMeasure(f"there is no page {', '.join(sorted(unknown))}; bench/showcase.py lists them")
                wanted = [page for page in pages if not names or page["name"] in names]
                large = photograph(wanted, f"http://127.0.0.1:{home.port}")
    except CannotMeasure as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        reaper.close()
    for path in large:
        print(f"{path} is larger than {MAX_BYTES:,} bytes", file=sys.stderr)
    return 1 if large else 0


def photograph(pages: list[dict[str, str]], url: str) -> list[Path]:
    """Takes every picture; those that came out too large."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    large = []
    with browser() as chromium:
        for look, options in LOOKS.items():
            for page in pages:
                context = chromium.new_context(**options, timezone_id="Europe/Berlin", locale="en-GB")
                context.add_cookies([{"name": "sessionid", "value": page["session"], "url": url}])
                tab = context.new_page()
                tab.goto(f"{url}{page['address']}", wait_until="networkidle")
                path = FOLDER / f"{page['name']}-{look}.png"
                size = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
                clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], TALLEST[look])}
                tab.screenshot(path=path, full_page=True, clip=clip)
                context.close()
                print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes", flush=True)
                if path.stat().st_size > MAX_BYTES:
                    large.append(path)
    return large


@contextmanager
def browser() -> Iterator[Any]:
    if not Path(CHROMIUM).exists():
        raise CannotMeasure(f"there is no {CHROMIUM} to take pictures with")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
