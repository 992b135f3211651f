"""The frame of our own pages: nothing in it runs or styles by itself, and it wears the colours of the admin."""

import re
from pathlib import Path

import pytest
from django.test import Client

COLORS = Path("execution/static/portal/colors.css")
OURS = ["/admin/", "/catalogue/", "/approvals/", "/policy/", "/publish/form/", "/agents/", "/search/", "/login/"]


def colors(text: str) -> dict[str, str]:
    return dict(re.findall(r"(--color-[a-z0-9-]+):\s*([^;]+);", text))


def test_our_pages_wear_the_colors_that_the_admin_writes_into_its_own(admin_client: Client) -> None:
    page = admin_client.get("/admin/registry/tool/").content.decode()
    (theirs,) = re.findall(r'<style id="unfold-theme-colors">(.*?)</style>', page, re.S)
    assert colors(COLORS.read_text()) == colors(theirs) != {}


@pytest.mark.parametrize("page", OURS)
def test_nothing_stands_in_a_page_of_ours_that_runs_or_styles_it(admin_client: Client, page: str) -> None:
    client = Client() if page == "/login/" else admin_client
    answer = client.get(page)
    assert answer.status_code == 200
    assert (
        re.findall(
            r"<style|<script(?![^>]* src=)|\s(?:style|on[a-z]+|x-[a-z:.]+|hx-on[a-z:-]*)=", answer.content.decode()
        )
        == []
    )
