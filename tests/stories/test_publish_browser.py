"""A publisher in a real browser: a broken manifest, mended; reviewed by a second person; out, deprecated and gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory
from tests.stories.windows import Window, chromium

pytestmark = [pytest.mark.story, pytest.mark.needs("chromium")]

PEOPLE = """
import django; django.setup()
import json
from django.contrib.auth.models import User
from django.test import Client
from guardian.shortcuts import assign_perm
from registry.models import Toolkit
sessions = {}
for name, verb in (("petra", "publish"), ("rita", "review")):
    person = User.objects.create_user(name)
    assign_perm(f"registry.{verb}_toolkit", person, Toolkit.objects.get(name="Lab"))
    client = Client()
    client.force_login(person)
    sessions[name] = client.cookies["sessionid"].value
print(json.dumps(sessions))
"""
VERSIONS = """
SELECT major, minor, patch FROM registry_toolkitversion v JOIN registry_toolkit k ON k.id = v.toolkit_id
WHERE k.name = 'Lab'
"""
Sit = Callable[..., Window]


@pytest.fixture(scope="module")
def sessions(laboratory: Laboratory) -> dict[str, str]:
    return json.loads(laboratory.script(PEOPLE))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def sit(laboratory: Laboratory, sessions: dict[str, str], browser: Any) -> Iterator[Sit]:
    """Opens windows; when the story is told, none of them may have complained or talked to another host."""
    opened: list[Window] = []

    def sit_down(name: str, **options: Any) -> Window:
        opened.append(Window(browser, f"http://127.0.0.1:{laboratory.product.port}", sessions[name], **options))
        return opened[-1]

    yield sit_down
    for each in opened:
        each.close()


def changed(manifest: str) -> str:
    """Other words for one tool, and a higher risk for another."""
    head, name, rest = manifest.replace("Returns its input.", "Returns what it got.").partition("- name: Ring\n")
    return head + name + rest.replace("risk: low", "risk: high", 1)


def test_a_version_is_mended_reviewed_published_called_deprecated_and_withdrawn(
    laboratory: Laboratory, sit: Sit
) -> None:
    for _ in range(2):
        assert laboratory.oxp("Ring", ledger=str(laboratory.ledger())).status == 200
    (number,) = laboratory.query(VERSIONS)
    old, new = ".".join(map(str, number)), f"{number[0]}.{number[1] + 1}.0"

    # Petra pastes a manifest with a slip of the pen, and is led to it.
    petra = sit("petra")
    page = petra.open(f"/publish/new/?from=Lab@{old}")
    broken = changed(page.input_value("#manifest")).replace("risk: high", "risk: hihg", 1)
    page.fill("#manifest", broken)
    page.get_by_text("1 thing to mend.").wait_for()
    line = broken[: broken.index("risk: hihg")].count("\n") + 1
    page.get_by_role("link", name=f"Line {line}").click()
    chosen = "(area) => area.value.slice(area.selectionStart, area.selectionEnd)"
    assert page.locator("#manifest").evaluate(chosen).strip() == "risk: hihg"
    assert f"▶ {line}" in page.locator(".publish-gutter").inner_text()

    # She mends it, and sees what it means before anything is stored.
    page.keyboard.insert_text("    risk: high")
    page.get_by_text(f"Lab@{new} is a good manifest").wait_for()
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("heading", name="Compatibility").wait_for()
    assert page.get_by_text("Ring: risk was raised from low to high").is_visible()
    assert page.get_by_text("it holds a tool of critical risk").is_visible()
    assert page.get_by_role("rowheader", name="tester").is_visible()
    assert page.get_by_text("1 of them calls a tool that will not work as before.").is_visible()
    assert laboratory.query(VERSIONS) == [number]
    page.get_by_role("button", name="Save and ask for review").click()
    page.get_by_text(f"Lab@{new} is saved and waits for a second person.").wait_for()
    page.get_by_role("link", name="Publish", exact=True).last.click()
    page.get_by_text("It cannot be published yet:").wait_for()

    # Rita finds it, sees the same, and agrees.
    rita = sit("rita").open("/publish/")
    rita.get_by_role("link", name=f"Lab@{new}").click()
    rita.get_by_role("link", name="Review").click()
    assert rita.get_by_text("Ring: risk was raised from low to high").is_visible()
    rita.get_by_label("Agree: it may be published").check()
    rita.get_by_role("button", name="Give this answer").click()
    rita.get_by_text("reviewed by rita").wait_for()

    # Out it goes, and is called.
    page = petra.open(f"/publish/Lab@{new}/publish/")
    page.get_by_role("button", name="Publish").click()
    page.get_by_text(f"Lab@{new} is published.").wait_for()
    call = laboratory.post("Echo", wait=20, value="hello")
    assert (call["state"], call["tool_id"], call["result"]) == ("succeeded", f"Lab.Echo@{new}", "hello")
    assert laboratory.oxp("Ring", ledger=str(laboratory.ledger())).code == "approval_pending"

    # It ends: first with a day, then with a reason.
    page.get_by_role("link", name="Deprecate").click()
    page.get_by_label("It may be withdrawn from").fill("2099-01-31")
    page.get_by_label("Note for those who call it").fill("Wait for the next one.")
    page.get_by_role("button", name="Deprecate").click()
    page.get_by_text("2099-01-31 (UTC)").wait_for()
    (warning,) = laboratory.oxp(f"Echo@{new}").body["warnings"]
    assert warning.startswith(f"Lab.Echo@{new} is deprecated and may be withdrawn from 2099-01-31 on")
    page.get_by_role("link", name="Withdraw").click()
    page.get_by_label("Reason").fill("It asks too often.")
    page.get_by_role("button", name="Withdraw for good").click()
    page.get_by_text("It asks too often.").wait_for()
    gone = laboratory.send("POST", "/api/calls/", {"tool_id": f"Lab.Echo@{new}", "input": {}})
    assert gone.status == 404, gone
    assert laboratory.post("Echo", wait=20, value="x")["tool_id"] == f"Lab.Echo@{old}"  # the name means it again


def test_a_file_is_read_into_the_text_and_a_form_shows_what_its_runtime_needs(sit: Sit) -> None:
    page = sit("petra").open("/publish/new/")
    page.set_input_files("#file", {"name": "kit.yaml", "mimeType": "text/yaml", "buffer": b"kind: Toolkit\nodd: 1\n"})
    page.get_by_text("is not a known field").wait_for()
    assert page.input_value("#manifest") == "kind: Toolkit\nodd: 1\n"
    page.get_by_role("link", name="Fill in a form instead").click()
    page.get_by_label("Runtime").select_option("container")
    assert page.get_by_label("Image, pinned by digest").is_visible()
    assert not page.get_by_label("Endpoint").is_visible()
    page.get_by_label("Runtime").select_option("http")
    page.get_by_label("Name").nth(0).fill("Lab")
    page.get_by_label("Name").nth(1).fill("Look")
    page.get_by_label("Endpoint").fill("https://lab.example/look")
    page.get_by_role("button", name="Add a parameter").click()
    page.get_by_role("group", name="Parameter 2 of tool 1").get_by_label("Name").fill("where")
    page.get_by_label("Version").fill("9.0.0")
    page.get_by_role("button", name="Make the manifest").last.click()
    page.get_by_text("Lab@9.0.0 is a good manifest").wait_for()
    assert "where:" in page.input_value("#manifest")


def test_without_scripts_the_same_road_leads_to_the_preview(laboratory: Laboratory, sit: Sit) -> None:
    number = ".".join(map(str, laboratory.query(VERSIONS)[0]))
    page = sit("petra", java_script_enabled=False).open(f"/publish/new/?from=Lab@{number}")
    page.get_by_role("button", name="Preview").click()
    assert page.get_by_role("heading", name="Compatibility").is_visible()
    page.get_by_role("button", name="Go on editing").click()
    page.get_by_role("button", name="Check").click()
    assert page.get_by_text("is a good manifest").is_visible()
