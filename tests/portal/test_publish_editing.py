"""Writing a manifest: faults with their lines while typing, a preview before anything is stored, then one writer."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from policy import reviews
from registry.manifests import manifest_of
from registry.models import Tool, ToolkitVersion
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import draft, manifest, numbers, published
from tests.portal.conftest import MakeCall
from tests.portal.publishkit import NEW, browser, everything, queries, read, text

pytestmark = pytest.mark.django_db

CHECK = "/publish/check/"


@pytest.fixture
def cast(tool: Tool) -> Cast:
    return cast_of(tool.version.toolkit)


@pytest.fixture
def desk(cast: Cast) -> Client:
    return browser(cast.publisher)


def check(client: Client, given: str, **more: Any) -> str:
    return unescape(read(client.post(CHECK, {"manifest": given, **more})))


def test_every_fault_is_told_with_its_line_and_path_and_leads_there(desk: Client) -> None:
    broken = text("Calculator", "1.1", {"risk": "hihg"}, {"name": "Sub", "runtime": {"type": "http"}})
    told = check(desk, broken)
    assert "3 things to mend." in told
    for path in ("metadata.version", "spec.tools[0].risk", "spec.tools[1].runtime.endpoint"):
        assert f"<code>{path}</code>" in told
    lines = broken.splitlines()
    found = [int(line) for line in re.findall(r'data-line="(\d+)"', told)]
    assert [lines[line - 1].strip() for line in found] == ['version: "1.1"', "risk: hihg", "runtime:"]
    assert "risk: hihg</code>" in told


def test_checking_and_previewing_write_nothing(cast: Cast, desk: Client) -> None:
    maker = browser(cast.superuser)
    before = everything()
    good = text(version="1.1.0")
    new_kit = text("Brandnew")
    for address, do in ((CHECK, ""), (NEW, "check"), (NEW, "preview"), (NEW, "edit")):
        for sql in queries(desk, address, manifest=good, do=do):
            assert sql.lstrip("(").startswith("SELECT"), sql
    assert "first version" in read(maker.post(NEW, {"manifest": new_kit, "do": "preview"}))
    assert everything() == before
    assert "Calculator@1.1.0 is a good manifest" in check(desk, good)


@pytest.mark.parametrize(
    "given",
    [
        "a: &x [1, 2]\nb: [*x, *x]\n",
        "a: !!python/object/apply:os.system [id]\n",
        "<<: {a: 1}\n",
        "a: 1\na: 2\n",
        "- [" * 80,
        "a: .inf\n",
        "a: 1\n" * 200_001,
        "",
        "just words",
        "a: 1\n---\nb: 2\n",
        text("calculator", "1.1.0"),
        text("Calculator", "1.0.0", description="Other words."),
        text("Abacus", "1.0.0"),
    ],
)
def test_what_the_api_refuses_is_refused_here_in_the_same_words(cast: Cast, desk: Client, given: str) -> None:
    """But for the words around an empty body, which the API says without looking at it."""
    api = cast.api("publisher").post("/api/manifests/", given, content_type="application/yaml")
    told = check(desk, given)
    assert api.status_code in (403, 413, 422)
    body = api.json()
    if api.status_code == 422 and given:
        assert body["errors"][0]["reason"] in told
        line = body["errors"][0]["line"]
        assert line is None or f'data-line="{line}"' in told
    answer = desk.post(NEW, {"manifest": given, "do": "draft"})
    assert answer.status_code == (403 if api.status_code == 403 else 422)
    assert ToolkitVersion.objects.count() == 1


def test_the_check_button_says_the_same_without_a_script(desk: Client) -> None:
    page = read(desk.post(NEW, {"manifest": text(version="1.1"), "do": "check"}), 422)
    assert "Line 5" in page
    assert 'version: "1.1"' in textarea(page)  # the text is still there


def test_a_file_takes_the_place_of_the_text(desk: Client) -> None:
    file = SimpleUploadedFile("kit.json", json.dumps(manifest(version="1.4.0")).encode())
    page = read(desk.post(NEW, {"manifest": "old words", "file": file, "do": "preview"}))
    assert "Preview of Calculator@1.4.0" in page
    for content, reason in ((b"\xff\xfe\x00", "is not UTF-8"), (b"a: 1\n" * 250_000, "is larger than 1000000 bytes")):
        answer = desk.post(NEW, {"file": SimpleUploadedFile("kit.yaml", content), "do": "preview"})
        assert reason in read(answer, 422)


def test_the_preview_tells_verdict_review_difference_and_callers(desk: Client, call: MakeCall) -> None:
    call()
    call("failed")
    risky = {"risk": "critical", "input": numbers("a", "b", "c")}
    given = text("Calculator", "2.0.0", risky, {"name": "Negate"}, description="Adds and more.")
    page = read(desk.post(NEW, {"manifest": given, "do": "preview"}))
    assert "Add: parameter c was added and is required" in page
    assert "it holds a tool of critical risk" in page
    assert re.search(r"<strong>1</strong> changed.*<strong>1</strong> added.*<strong>0</strong> removed", page)
    assert "<strong>1 agent</strong> called it 2 times in the last 30 days." in page
    assert "1 of them calls a tool that will not work as before." in page
    assert '<span class="publish-label is-breaking">breaks</span>' in page
    assert re.search(r'class="publish-new">.*risk: critical</td>', page)
    assert "Title or description of the toolkit" in page
    quiet = read(desk.post(NEW, {"manifest": text("Calculator", "1.0.1"), "do": "preview"}))
    assert "Nothing but the number of the version." in quiet
    assert "no review needed" in quiet


def test_a_draft_is_saved_by_the_writer_of_the_api_and_put_before_a_second_person(cast: Cast, desk: Client) -> None:
    risky = text("Calculator", "2.0.0", {"risk": "high"})
    answer = desk.post(NEW, {"manifest": risky, "do": "review"})
    assert answer["Location"] == "/publish/Calculator@2.0.0/"
    stored = ToolkitVersion.objects.get(major=2)
    assert (stored.is_in_review, stored.edited_by) == (True, cast.publisher)
    again = read(desk.post(NEW, {"manifest": risky, "do": "preview"}))
    assert "Saving changes your draft" in again
    other = read(browser(cast.superuser).post(NEW, {"manifest": risky, "do": "preview"}))
    assert "wrote the draft that is stored" in other
    desk.post(NEW, {"manifest": text("Calculator", "2.0.0", {"risk": "low"}), "do": "draft"})
    stored.refresh_from_db()
    assert (stored.is_in_review, stored.risk) == (False, 1)


def test_a_version_that_is_out_with_this_content_needs_no_saving(desk: Client) -> None:
    page = read(desk.post(NEW, {"manifest": text(), "do": "preview"}))
    assert "Nothing would change:" in page
    assert "Save as draft" not in page


def test_the_next_version_begins_with_the_one_there_is(cast: Cast, desk: Client) -> None:
    draft(version="1.7.0", by=cast.superuser)
    assert "version: 1.8.0" in read(desk.get(f"{NEW}?from=Calculator@1.0.0"))
    assert browser(cast.reviewer).get(f"{NEW}?from=Calculator@1.0.0").status_code == 403
    assert desk.get(f"{NEW}?from=Abacus@1.0.0").status_code == 404


def test_a_draft_is_edited_under_its_own_name_only(cast: Cast, desk: Client) -> None:
    version = draft(version="1.1.0", by=cast.publisher)
    address = f"/publish/{version}/edit/"
    assert "version: 1.1.0" in read(desk.get(address))
    page = read(desk.post(address, {"manifest": text(version="1.2.0"), "do": "draft"}), 422)
    assert "this page edits Calculator@1.1.0, and the manifest is Calculator@1.2.0" in page
    assert "this page edits" in check(desk, text(version="1.2.0"), only=str(version))
    desk.post(address, {"manifest": text(version="1.1.0", title="Sums"), "do": "draft"})
    version.refresh_from_db()
    assert version.title == "Sums"
    assert browser(cast.reviewer).get(address).status_code == 403
    reviews.publish(version, by=cast.publisher)
    assert desk.get(address)["Location"] == f"/publish/{version}/"


FORM: dict[str, Any] = {
    "name": "Weather",
    "version": "1.0.0",
    "description": "What the sky is doing.",
    "tools": "1",
    "t0-name": "Today",
    "t0-description": "Tells today's weather.",
    "t0-risk": "medium",
    "t0-idempotency": "read",
    "t0-capability": ["network.read"],
    "t0-own": "sky.watch",
    "t0-runtime": "http",
    "t0-endpoint": "https://weather.example.com/today",
    "t0-image": "left over from another runtime",
    "t0-timeout": "10s",
    "t0-dispatch": "queue",
    "t0-parameters": "2",
    "t0-p0-name": "city",
    "t0-p0-type": "string",
    "t0-p0-description": "The city's name.",
    "t0-p0-required": "on",
    "t0-p1-name": "days",
    "t0-p1-type": "integer",
}


def textarea(page: str) -> str:
    return unescape(re.search(r'<textarea id="manifest".*?>\n(.*?)</textarea>', page, re.S)[1])  # type: ignore[index]


def test_a_form_makes_a_manifest_that_goes_on_like_any_other(cast: Cast) -> None:
    client = browser(cast.superuser)
    page = read(client.post("/publish/form/", {**FORM, "do": "make"}))
    assert "Weather@1.0.0 is a good manifest" in page
    client.post(NEW, {"manifest": textarea(page), "do": "draft"})
    (tool,) = manifest_of(ToolkitVersion.objects.get(toolkit__name="Weather")).tools
    assert (tool.name, tool.risk.word, tool.capabilities) == ("Today", "medium", ("network.read", "sky.watch"))
    assert tool.input == {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The city's name."}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    assert (tool.runtime["endpoint"], tool.runtime["timeout"]) == ("https://weather.example.com/today", "10s")


def test_the_form_grows_and_shrinks_without_losing_a_word(cast: Cast) -> None:
    client = browser(cast.superuser)
    page = read(client.post("/publish/form/", {**FORM, "do": "add-parameter-0"}))
    assert 'name="t0-p2-name"' in page
    page = read(client.post("/publish/form/", {**FORM, "do": "add-tool"}))
    assert 'name="t1-name"' in page
    page = read(client.post("/publish/form/", {**FORM, "do": "drop-parameter-0-0"}))
    assert 'value="days"' in page
    assert 'value="city"' not in page
    for nonsense in ("drop-tool-0", "drop-tool-99", "add-parameter-7", "drop-parameter-x-y", "add-tool-1-2-3", "x"):
        page = read(client.post("/publish/form/", {**FORM, "do": nonsense}))
        assert 'value="city"' in page, nonsense
        assert "What the sky is doing." in page
    assert read(client.post("/publish/form/", {"tools": "9999", "do": "x"})).count("<fieldset class=") < 100


def test_a_form_with_faults_is_kept_and_tells_them_at_their_fields(cast: Cast) -> None:
    client = browser(cast.superuser)
    wrong = {"name": "9bad name", "description": "KEEPME", "t0-timeout": "soon", "t0-own": "Mail", "t0-endpoint": ""}
    page = read(client.post("/publish/form/", {**FORM, **wrong, "do": "make"}), 422)
    assert 'id="manifest"' not in page
    for kept in ('value="9bad name"', "KEEPME", 'value="soon"', 'value="city"', 'value="Mail"'):
        assert kept in page, kept
    for name in ("name", "t0-timeout", "t0-own", "t0-endpoint"):
        (label,) = re.findall(rf'<input name="{name}"[^\n]*?</label>', page)
        assert 'aria-invalid="true"' in label, name
        assert 'role="alert"' in label, name
    assert page.count("aria-invalid") == 4


def test_a_fault_that_has_no_field_is_told_with_its_tool(cast: Cast) -> None:
    page = read(browser(cast.superuser).post("/publish/form/", {**FORM, "t0-p1-type": "day", "do": "make"}), 422)
    assert re.search(r'role="alert">input\.properties\.days\.type ', page)


def test_a_schema_in_the_form_takes_the_place_of_the_rows_and_must_be_json(cast: Cast) -> None:
    client = browser(cast.superuser)
    page = read(client.post("/publish/form/", {**FORM, "t0-schema": '{"type": "object"}', "do": "make"}))
    assert "city" not in textarea(page)
    for bad in ("{", '{"a": 1, "a": 2}', "[" * 200):
        page = read(client.post("/publish/form/", {**FORM, "t0-schema": bad, "do": "make"}), 422)
        assert "The input schema was not taken." in page


def test_who_logged_out_is_told_so_beside_the_text() -> None:
    assert Client().post(CHECK, {"manifest": "x"}).status_code == 401


def test_a_check_asks_the_database_as_often_for_many_tools(desk: Client) -> None:
    few = len(queries(desk, CHECK, manifest=text(version="1.1.0")))
    many = text("Calculator", "1.1.0", *({"name": f"T{number}"} for number in range(60)))
    assert len(queries(desk, CHECK, manifest=many)) == few <= 18
    preview = [len(queries(desk, NEW, manifest=given, do="preview")) for given in (text(version="1.1.0"), many)]
    assert preview[0] == preview[1] <= 36


def test_a_preview_of_very_many_changes_compares_some_and_names_all(desk: Client) -> None:
    published("Calculator", "1.1.0", *({"name": f"T{number}"} for number in range(150)))
    many = text("Calculator", "1.2.0", *({"name": f"T{number}", "title": "x"} for number in range(150)))
    page = read(desk.post(NEW, {"manifest": many, "do": "preview"}))
    assert page.count("<strong>T") == 150
    assert 0 < page.count("Too much to be shown side by side.") < 150
