"""Versions in the web admin: what each person sees and can do, and what nobody can."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from audit.models import Event
from policy import reviews
from policy.models import Review
from registry.manifesttext import manifest_text
from registry.models import Toolkit, ToolkitVersion
from registry.yamlwriting import write
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import draft, manifest, published

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> {{7*7}} {% now 'Y' %} %s '; DROP TABLE x; --"


@pytest.fixture
def cast(db: None) -> Cast:
    """Calculator 1.0.0 is published, 1.1.0 a risky draft of the publisher."""
    published("Calculator", "1.0.0")
    cast = cast_of(Toolkit.objects.get(name="Calculator"))
    draft("Calculator", "1.1.0", {"risk": "high"}, by=cast.publisher)
    return cast


@pytest.fixture
def stored(cast: Cast) -> ToolkitVersion:
    return ToolkitVersion.objects.get(major=1, minor=0)


@pytest.fixture
def risky(cast: Cast) -> ToolkitVersion:
    return ToolkitVersion.objects.get(major=1, minor=1)


def browser(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def url(version: ToolkitVersion, step: str = "change") -> str:
    return reverse(f"admin:registry_toolkitversion_{step}", args=[version.pk])


def everything() -> Any:
    versions = list(ToolkitVersion.objects.order_by("pk").values())
    return versions, Toolkit.objects.count(), Review.objects.count(), Event.objects.exclude(subject_kind="user").count()


# Reading


def test_the_list_is_searched_and_filtered(cast: Cast) -> None:
    root = browser(cast.superuser)
    address = reverse("admin:registry_toolkitversion_changelist")
    for query, found in (
        ("", ["Calculator@1.1.0", "Calculator@1.0.0"]),
        ("?state__exact=draft", ["Calculator@1.1.0"]),
        ("?risk__exact=1", ["Calculator@1.0.0"]),
        ("?q=add", ["Calculator@1.1.0", "Calculator@1.0.0"]),
        ("?q=nothing", []),
        ("?review=waiting", []),
    ):
        shown = root.get(address + query).context["cl"].result_list
        assert [str(version) for version in shown] == found, query


def test_an_empty_list_says_how_it_fills_or_that_nothing_matches(cast: Cast) -> None:
    address = reverse("admin:registry_toolkitversion_changelist")
    empty = browser(cast.stranger).get(address).content.decode()
    assert "Paste a manifest here, or run manage.py import_toolkit." in empty
    for query in ("?q=nothing", "?review=waiting"):
        assert "Nothing here matches." in browser(cast.superuser).get(address + query).content.decode()


def test_a_version_is_shown_with_its_tools_and_parameters(cast: Cast, stored: ToolkitVersion) -> None:
    page = browser(cast.viewer).get(url(stored)).content.decode()
    for told in (stored.digest, "Adds two numbers together.", "http://127.0.0.1:9/add", "apiVersion: placet.dev/v1"):
        assert told in page


def test_hostile_texts_are_shown_literally_on_every_page(cast: Cast) -> None:
    schema = {"type": "object", "properties": {HOSTILE: {"type": "string", "description": HOSTILE}}}
    tool = {"title": HOSTILE[:90], "description": HOSTILE, "input": schema, "capabilities": ["data.read"]}
    version = draft("Calculator", "2.0.0", tool, by=cast.publisher, title=HOSTILE[:90], description=HOSTILE)
    reviews.request(version, by=cast.publisher)
    reviews.answer(version, by=cast.reviewer, answer="refuse", note=HOSTILE)
    root = browser(cast.superuser)
    tool_id = version.tools.get().pk
    pages = [url(version, step) for step in ("change", "edit", "compare")]
    pages += [reverse("admin:registry_tool_change", args=[tool_id]), reverse("admin:registry_tool_changelist")]
    pages += [reverse("admin:registry_tool_changelist") + "?q=<script>alert(1)</script>"]
    for address in pages:
        response = root.get(address)
        assert response.status_code == 200
        page = response.content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
        assert "&lt;script&gt;alert(1)" in page, address
    page = root.get(url(version)).content.decode()
    assert "{{7*7}} {% now &#x27;Y&#x27; %} %s" in page


@pytest.mark.parametrize(
    ("role", "seen"),
    [
        ("publisher", ["Calculator@1.1.0", "Calculator@1.0.0"]),
        ("reviewer", ["Calculator@1.1.0", "Calculator@1.0.0"]),
        ("viewer", ["Calculator@1.0.0"]),
        ("stranger", []),
    ],
)
def test_each_person_sees_what_is_theirs(cast: Cast, role: str, seen: list[str]) -> None:
    client = browser(getattr(cast, role))
    listed = client.get(reverse("admin:registry_toolkitversion_changelist")).context["cl"].result_list
    assert [str(version) for version in listed] == seen
    for version in ToolkitVersion.objects.select_related("toolkit"):
        assert client.get(url(version)).status_code == (200 if str(version) in seen else 404)


def test_nobody_without_a_staff_login_gets_in(cast: Cast, stored: ToolkitVersion) -> None:
    cast.publisher.is_staff = False
    cast.publisher.save()
    for client in (Client(), browser(cast.publisher), browser(cast.agent.agent.user)):
        for address in (url(stored), url(stored, "withdraw"), reverse("admin:registry_tool_changelist")):
            assert client.get(address).status_code == 302
        assert client.post(url(stored, "withdraw"), {"reason": "x"}).status_code == 302
    assert ToolkitVersion.objects.get(pk=stored.pk).state == "published"


@pytest.mark.parametrize("pk", ["abc", "999999", "1;DROP", "99999999999999999999", "-1", "%00"])
def test_an_address_that_names_nothing_is_not_found(cast: Cast, pk: str) -> None:
    root = browser(cast.superuser)
    for step in ("change", "edit", "publish", "compare", "withdraw"):
        assert root.get(f"/admin/registry/toolkitversion/{pk}/{step}/").status_code == 404
    for place in ("registry/tool", "policy/agent"):
        assert root.get(f"/admin/{place}/{pk}/change/").status_code == 404


# Writing


def test_a_manifest_is_pasted_or_uploaded(cast: Cast) -> None:
    client, address = browser(cast.publisher), reverse("admin:registry_toolkitversion_add")
    pasted = client.post(address, {"manifest": write(manifest("Calculator", "2.0.0"))})
    assert pasted.status_code == 302
    made = ToolkitVersion.objects.get(major=2, minor=0)
    assert (made.state, made.edited_by) == ("draft", cast.publisher)
    file = SimpleUploadedFile("toolkit.yaml", write(manifest("Calculator", "2.1.0")).encode())
    assert client.post(address, {"manifest": "", "file": file}).status_code == 302
    assert ToolkitVersion.objects.filter(major=2, minor=1).exists()


def test_what_is_wrong_is_shown_with_line_and_path_and_the_text_stays(cast: Cast) -> None:
    text = write(manifest("Calculator", "2.0.0", {"risk": "low"})).replace("risk: low", "risk: tiny # <b>")
    response = browser(cast.publisher).post(reverse("admin:registry_toolkitversion_add"), {"manifest": text})
    assert response.status_code == 200
    problem = response.context["problems"][0]
    assert problem["path"] == "spec.tools[0].risk"
    assert text.splitlines()[problem["line"] - 1].strip().startswith("risk: tiny")
    page = response.content.decode()
    assert "spec.tools[0].risk" in page
    assert "risk: tiny # &lt;b&gt;" in page
    assert not ToolkitVersion.objects.filter(major=2).exists()


@pytest.mark.parametrize(
    "form", [{}, {"manifest": "   "}, {"manifest": "a: &x 1\nb: *x"}, {"manifest": "!!python/name:os"}]
)
def test_an_empty_or_unsafe_manifest_is_refused(cast: Cast, form: dict[str, str]) -> None:
    before = everything()
    response = browser(cast.publisher).post(reverse("admin:registry_toolkitversion_add"), form)
    assert response.status_code == 200
    assert everything() == before


def test_a_stranger_cannot_write_a_draft_of_a_toolkit(cast: Cast, risky: ToolkitVersion) -> None:
    before = everything()
    for role in ("stranger", "viewer", "reviewer", "with_model_permissions"):
        client = browser(getattr(cast, role))
        form = {"manifest": write(manifest("Calculator", "2.0.0"))}
        assert client.post(reverse("admin:registry_toolkitversion_add"), form).status_code == 403
        assert client.post(url(risky, "edit"), {"manifest": manifest_text(risky)}).status_code in (403, 404)
    assert everything() == before


def test_a_draft_is_edited_by_its_manifest(cast: Cast, risky: ToolkitVersion) -> None:
    client = browser(cast.publisher)
    text = client.get(url(risky, "edit")).context["form"].initial["manifest"]
    response = client.post(url(risky, "edit"), {"manifest": text.replace("Adds two", "Adds exactly two")})
    assert response.status_code == 302
    assert risky.tools.get().description == "Adds exactly two numbers together."


def test_the_page_of_one_draft_does_not_write_another(cast: Cast, risky: ToolkitVersion) -> None:
    before = everything()
    other = write(manifest("Calculator", "7.0.0"))
    response = browser(cast.publisher).post(url(risky, "edit"), {"manifest": other})
    assert response.status_code == 200
    assert "7.0.0" in response.context["problems"][0]["reason"]
    assert everything() == before


def test_a_published_version_is_read_only_whatever_is_posted(cast: Cast, stored: ToolkitVersion) -> None:
    before, root = everything(), browser(cast.superuser)
    assert root.post(url(stored), {"title": "Other", "state": "draft", "risk": "4"}).status_code == 405
    edit = root.post(url(stored, "edit"), {"manifest": manifest_text(stored).replace("Adds", "Eats")}, follow=True)
    assert "never changes" in edit.content.decode()
    assert root.get(url(stored, "delete")).status_code == 403
    assert root.post(url(stored, "delete"), {"post": "yes"}).status_code == 403
    changelist = reverse("admin:registry_toolkitversion_changelist")
    root.post(changelist, {"action": "delete_selected", "_selected_action": [stored.pk], "post": "yes"})
    assert everything() == before


# Steps


STEPS = ["request_review", "review", "publish", "deprecate", "withdraw", "edit", "compare"]


def test_looking_never_changes_anything(cast: Cast, stored: ToolkitVersion, risky: ToolkitVersion) -> None:
    reviews.request(risky, by=cast.publisher)
    before = everything()
    for role in ("superuser", "publisher", "reviewer"):
        client = browser(getattr(cast, role))
        for version in (stored, risky):
            for step in STEPS:
                query = "?answer=approve&reason=x&note=x&confirm=1"
                assert client.get(url(version, step) + query).status_code in (200, 302, 403, 405)
                client.head(url(version, step))
    assert everything() == before


def test_a_post_without_the_csrf_token_changes_nothing(cast: Cast, stored: ToolkitVersion) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.superuser)
    before = everything()
    for step in STEPS:
        assert client.post(url(stored, step), {"reason": "x"}).status_code in (403, 405)
    assert everything() == before


def test_a_risky_draft_goes_from_request_to_review_to_published(cast: Cast, risky: ToolkitVersion) -> None:
    publisher, reviewer = browser(cast.publisher), browser(cast.reviewer)
    page = publisher.get(url(risky, "publish"))
    assert "another person has to review it first" in page.content.decode()
    assert "raised from low to high" in page.content.decode()  # the verdict, before anything is confirmed
    publisher.post(url(risky, "publish"))
    assert ToolkitVersion.objects.get(pk=risky.pk).state == "draft"
    publisher.post(url(risky, "request_review"))
    assert publisher.get(url(risky, "review")).status_code == 403  # who edited does not review
    shown = reviewer.get(url(risky, "review")).context["form"].initial["digest"]
    reviewer.post(url(risky, "review"), {"answer": "approve", "note": "", "digest": shown})
    publisher.post(url(risky, "publish"))
    done = ToolkitVersion.objects.get(pk=risky.pk)
    assert (done.state, done.reviewed_by, done.published_by) == ("published", cast.reviewer, cast.publisher)


def test_a_reviewer_sees_on_one_page_what_and_why_to_review(cast: Cast) -> None:
    key = {"type": "string", "description": "The key.", "default": "ghp_" + "0123456789" * 3 + "012345"}
    schema = {"type": "object", "properties": {"key": key}}
    odd = reviews.request(draft("Calculator", "1.0.1", {"input": schema}, by=cast.publisher), by=cast.publisher)
    reason = "spec.tools[0].input.properties.key.default: looks like it holds a secret"
    for page in (url(odd, "review"), url(odd)):
        told = browser(cast.reviewer).get(page).content.decode()
        assert reason in told
        assert "http://127.0.0.1:9/add" in told  # the tools themselves, as on the version's own page
    assert reason in browser(cast.publisher).get(url(odd, "publish")).content.decode()


def test_an_approval_counts_only_for_what_was_on_the_screen(cast: Cast, risky: ToolkitVersion) -> None:
    reviewer = browser(cast.reviewer)
    reviews.request(risky, by=cast.publisher)
    shown = reviewer.get(url(risky, "review")).context["form"].initial["digest"]
    changed = draft("Calculator", "1.1.0", {"risk": "critical"}, by=cast.publisher)
    reviews.request(changed, by=cast.publisher)
    response = reviewer.post(url(risky, "review"), {"answer": "approve", "note": "", "digest": shown})
    assert "has changed since you read it" in response.content.decode()
    assert not Review.objects.exists()


def test_a_version_is_deprecated_with_a_note_and_withdrawn_with_a_reason(cast: Cast, stored: ToolkitVersion) -> None:
    client = browser(cast.publisher)
    client.post(url(stored, "deprecate"), {"note": "use 1.1.0"})
    assert ToolkitVersion.objects.get(pk=stored.pk).deprecation_note == "use 1.1.0"
    assert client.post(url(stored, "withdraw"), {"reason": " "}).status_code == 200
    assert ToolkitVersion.objects.get(pk=stored.pk).state == "deprecated"
    client.post(url(stored, "withdraw"), {"reason": "it lies"})
    assert ToolkitVersion.objects.get(pk=stored.pk).state == "withdrawn"
    told = Event.objects.filter(subject_kind="version", subject_id="Calculator@1.0.0", actor="user:publisher")
    assert set(told.values_list("event", flat=True)) == {"version.deprecated", "version.withdrawn"}


def test_steps_are_refused_to_those_without_the_permission(
    cast: Cast, stored: ToolkitVersion, risky: ToolkitVersion
) -> None:
    reviews.request(risky, by=cast.publisher)
    before = everything()
    for role, version, step in (
        ("reviewer", risky, "publish"),
        ("reviewer", risky, "edit"),
        ("reviewer", risky, "request_review"),
        ("reviewer", stored, "withdraw"),
        ("viewer", stored, "withdraw"),
        ("viewer", stored, "deprecate"),
        ("viewer", risky, "review"),
        ("publisher", risky, "review"),
        ("stranger", stored, "deprecate"),
        ("with_model_permissions", stored, "withdraw"),
        ("with_model_permissions", risky, "review"),
    ):
        form = {"reason": "x", "note": "x", "answer": "approve", "digest": version.digest, "manifest": "x"}
        status = browser(getattr(cast, role)).post(url(version, step), form).status_code
        assert status in (403, 404), (role, step)
    assert everything() == before


def test_two_versions_are_compared_side_by_side(cast: Cast, stored: ToolkitVersion, risky: ToolkitVersion) -> None:
    client = browser(cast.publisher)
    page = client.get(url(risky, "compare"))
    assert page.context["verdict"]["level"] == "breaking"
    kinds = {row.kind for row in page.context["rows"]}
    assert "changed" in kinds
    back = client.get(url(stored, "compare"), {"to": risky.pk})
    assert back.context["verdict"]["level"] == "safe"
    assert client.get(url(stored, "compare"), {"to": "abc"}).status_code == 200
    assert client.get(url(stored, "compare"), {"to": 999}).context.get("verdict") is None
    assert browser(cast.viewer).get(url(stored, "compare"), {"to": risky.pk}).context.get("verdict") is None


def test_a_lonely_version_has_nothing_to_be_compared_with(cast: Cast) -> None:
    only = published("Lonely", "1.0.0")
    page = browser(cast.superuser).get(url(only, "compare"))
    assert "no other version" in page.content.decode()
