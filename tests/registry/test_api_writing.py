"""A version's life over REST, from a manifest to its withdrawal, and every bad body on the way."""

import json
import time
from typing import Any

import pytest
import yaml
from guardian.shortcuts import assign_perm, remove_perm
from rest_framework.test import APIClient

from audit.models import Event
from policy.models import Review
from registry.models import Toolkit, ToolkitVersion
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import manifest, numbers, published


@pytest.fixture
def cast(db: None) -> Cast:
    published("Calculator", "1.0.0")
    return cast_of(Toolkit.objects.get(name="Calculator"))


@pytest.fixture
def api(cast: Cast) -> APIClient:
    return cast.api("publisher")


def send(client: APIClient, body: Any, content_type: str = "application/json", query: str = "") -> Any:
    data: Any = body.encode() if isinstance(body, str) else body
    return client.generic("POST", f"/api/manifests/{query}", data, content_type=content_type)


def events(version: str) -> list[str]:
    told = Event.objects.filter(subject_kind="version", subject_id=version).order_by("seq")
    return list(told.values_list("event", flat=True))


# Manifests


def test_a_manifest_becomes_a_draft_and_twice_is_once(api: APIClient) -> None:
    document = manifest("Calculator", "1.1.0", {"input": numbers("a", "b", c={"type": "number"})})
    first = api.post("/api/manifests/", document, format="json")
    assert first.status_code == 201
    assert first.json()["outcome"] == "created"
    assert first.json()["comparison"]["level"] == "safe"
    second = api.post("/api/manifests/", document, format="json")
    assert (second.status_code, second.json()["outcome"]) == (200, "unchanged")
    assert events("Calculator@1.1.0") == ["version.created"]


def test_yaml_and_json_say_the_same(api: APIClient) -> None:
    document = manifest("Calculator", "1.1.0")
    assert send(api, yaml.safe_dump(document), "application/yaml").json()["outcome"] == "created"
    assert send(api, json.dumps(document)).json()["outcome"] == "unchanged"
    for name in ("application/x-yaml", "text/yaml; charset=utf-8"):
        assert send(api, yaml.safe_dump(document), name).json()["outcome"] == "unchanged"
    refused = send(api, yaml.safe_dump(document), "text/plain")
    assert refused.status_code == 415
    assert "Content-Type: application/json or application/yaml" in refused.json()["message"]


def test_an_exported_manifest_changes_nothing_when_it_comes_back(api: APIClient) -> None:
    as_yaml = api.get("/api/versions/Calculator@1.0.0/manifest/?format=yaml")
    assert as_yaml["Content-Type"] == "application/yaml"
    assert send(api, as_yaml.content, "application/yaml").json()["outcome"] == "unchanged"
    by_accept = api.get("/api/versions/Calculator@1.0.0/manifest/", HTTP_ACCEPT="application/yaml")
    assert by_accept.content == as_yaml.content
    as_json = api.get("/api/versions/Calculator@1.0.0/manifest/")
    assert send(api, as_json.content).json()["outcome"] == "unchanged"


def test_a_dry_run_says_what_would_be_and_leaves_no_trace(api: APIClient) -> None:
    before = Event.objects.count()
    document = manifest("Calculator", "2.0.0", {"name": "Sum"})
    told = api.post("/api/manifests/?dry_run=1", document, format="json").json()
    assert (told["outcome"], told["dry_run"], told["version"]) == ("created", True, "Calculator@2.0.0")
    assert told["comparison"]["level"] == "breaking"
    assert "-  - name: Add" in told["difference"]
    assert "+  - name: Sum" in told["difference"]
    assert Event.objects.count() == before
    assert not ToolkitVersion.objects.filter(major=2).exists()


def test_a_published_version_refuses_another_content(api: APIClient) -> None:
    document = manifest("Calculator", "1.0.0", {"risk": "medium", "capabilities": ["data.write"]})
    response = api.post("/api/manifests/", document, format="json")
    assert response.status_code == 422
    assert "published" in response.json()["message"]
    assert api.get("/api/tools/Calculator.Add@1.0.0/").json()["risk"] == "low"


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("?dryrun=1", "dryrun"),
        ("?dry_run=1&dry_run=0", "dry_run"),
        ("?dry_run=0&dry_run=1", "dry_run"),
        ("?dry_run=maybe", "dry_run"),
    ],
)
def test_a_question_that_is_wrong_is_400_when_something_is_sent_too(api: APIClient, query: str, parameter: str) -> None:
    answer = send(api, json.dumps(manifest("Calculator", "1.1.0")), query=query)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_parameter")
    assert [each["path"] for each in answer.json()["errors"]] == [parameter]
    assert not ToolkitVersion.objects.filter(minor=1).exists()


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (BOMB, "application/yaml", 422),
        ("!!python/object/apply:os.system ['touch /tmp/owned']", "application/yaml", 422),
        ("!!python/name:os.system", "application/yaml", 422),
        ("a: 1\na: 2", "application/yaml", 422),
        ("<<: {a: 1}", "application/yaml", 422),
        ("[" * 5000, "application/yaml", 422),
        ("", "application/yaml", 422),
        ("just a text", "application/yaml", 422),
        (b"\xff\xfe\x00", "application/yaml", 422),
        ("a: b\n---\nc: d", "application/yaml", 422),
        ("x" * 1_000_001, "application/yaml", 413),
        ("{}", "application/json", 422),
        ("[]", "application/json", 422),
        ("null", "application/json", 422),
        ('"text"', "application/json", 422),
        ('{"a": 1, "a": 2}', "application/json", 400),
        ('{"a": NaN}', "application/json", 400),
        ('{"a": "\\ud800"}', "application/json", 400),
        ('{"a": "\\u0000"}', "application/json", 400),
        (b'{"a": "\xff"}', "application/json", 400),
        ("{", "application/json", 400),
        ("[" * 100_000, "application/json", 400),
        (" " * 1_000_001, "application/json", 413),
        ("{}", "text/plain", 415),
        ("{}", "application/json; charset=utf-16", 415),
        ("a=1", "application/x-www-form-urlencoded", 415),
        ("--x\r\n", "multipart/form-data; boundary=x", 415),
        ("{}", "", 415),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_body_that_cannot_be_taken_is_answered_fast_and_leaves_nothing(
    api: APIClient, body: Any, content_type: str, status: int
) -> None:
    before, start = Event.objects.count(), time.process_time()
    response = send(api, body, content_type)
    assert time.process_time() - start < 1.0
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/json"
    assert set(response.json()) >= {"code", "message"}
    if status == 422:
        assert {"path", "line", "reason"} == set(response.json()["errors"][0])
    assert Event.objects.count() == before
    assert Toolkit.objects.count() == 1


def test_what_is_wrong_with_a_manifest_is_told_with_line_and_path(api: APIClient) -> None:
    text = yaml.safe_dump(manifest("Calculator", "1.1.0"), sort_keys=False).replace("type: object", "type: objekt")
    wrong = send(api, text, "application/yaml").json()["errors"][0]
    assert wrong["path"].startswith("spec.tools[0].input")
    assert text.splitlines()[wrong["line"] - 1].strip() == "type: objekt"


# From draft to withdrawn


def test_a_version_lives_from_draft_to_withdrawn(api: APIClient) -> None:
    api.post("/api/manifests/", manifest("Calculator", "1.1.0"), format="json")
    base = "/api/versions/Calculator@1.1.0"
    assert api.post(f"{base}/deprecate/", {}, format="json").status_code == 409
    assert api.post(f"{base}/publish/").json()["state"] == "published"
    assert api.post(f"{base}/publish/").status_code == 409
    assert api.post(f"{base}/deprecate/", {"note": "use 2"}, format="json").json()["deprecation_note"] == "use 2"
    for empty in ({}, {"reason": ""}, {"reason": "  "}, {"reason": None}):
        assert api.post(f"{base}/withdraw/", empty, format="json").status_code == 422
    gone = api.post(f"{base}/withdraw/", {"reason": "it lies"}, format="json").json()
    assert (gone["state"], gone["withdrawal_reason"], gone["published_by"]) == ("withdrawn", "it lies", "publisher")
    assert api.post(f"{base}/withdraw/", {"reason": "again"}, format="json").status_code == 409
    assert events("Calculator@1.1.0") == [
        "version.created",
        "version.published",
        "version.deprecated",
        "version.withdrawn",
    ]


def test_a_risky_version_is_published_after_another_person_said_yes(cast: Cast, api: APIClient) -> None:
    api.post("/api/manifests/", manifest("Calculator", "1.1.0", {"risk": "critical"}), format="json")
    base, reviewer = "/api/versions/Calculator@1.1.0", cast.api("reviewer")
    refused = api.post(f"{base}/publish/")
    assert refused.status_code == 409
    assert "another person" in refused.json()["message"]
    assert reviewer.post(f"{base}/review/", {"answer": "approve"}, format="json").status_code == 409  # nobody asked
    assert api.post(f"{base}/request-review/").json()["is_in_review"] is True
    no_reason = reviewer.post(f"{base}/review/", {"answer": "refuse"}, format="json")
    assert no_reason.status_code == 409
    assert reviewer.post(f"{base}/review/", {"answer": "approve", "note": "fine"}, format="json").status_code == 201
    published = api.post(f"{base}/publish/").json()
    assert (published["state"], published["reviewed_by"]) == ("published", "reviewer")


def test_a_refusal_sends_the_draft_back_and_takes_an_earlier_yes_away(cast: Cast, api: APIClient) -> None:
    api.post("/api/manifests/", manifest("Calculator", "1.1.0", {"risk": "high"}), format="json")
    base = "/api/versions/Calculator@1.1.0"
    api.post(f"{base}/request-review/")
    cast.api("reviewer").post(f"{base}/review/", {"answer": "approve"}, format="json")
    answer = {"answer": "refuse", "note": "look at line 3"}
    assert cast.api("superuser").post(f"{base}/review/", answer, format="json").status_code == 201
    assert api.get(f"{base}/").json()["is_in_review"] is False
    assert api.post(f"{base}/publish/").status_code == 409


def test_an_edit_after_the_review_needs_a_new_review(cast: Cast, api: APIClient) -> None:
    api.post("/api/manifests/", manifest("Calculator", "1.1.0", {"risk": "high"}), format="json")
    base = "/api/versions/Calculator@1.1.0"
    api.post(f"{base}/request-review/")
    cast.api("reviewer").post(f"{base}/review/", {"answer": "approve"}, format="json")
    changed = manifest("Calculator", "1.1.0", {"risk": "high", "description": "Deletes everything."})
    assert api.post("/api/manifests/", changed, format="json").json()["outcome"] == "updated"
    assert api.post(f"{base}/publish/").status_code == 409
    assert api.get(f"{base}/").json()["is_in_review"] is False


def test_a_yes_about_something_else_than_was_read_is_refused(cast: Cast, api: APIClient) -> None:
    read = api.post("/api/manifests/", manifest("Calculator", "1.1.0", {"risk": "high"}), format="json").json()[
        "digest"
    ]
    api.post("/api/manifests/", manifest("Calculator", "1.1.0", {"risk": "critical"}), format="json")
    base = "/api/versions/Calculator@1.1.0"
    api.post(f"{base}/request-review/")
    response = cast.api("reviewer").post(f"{base}/review/", {"answer": "approve", "digest": read}, format="json")
    assert response.status_code == 409
    assert not Review.objects.exists()


def test_a_reviewer_who_lost_the_permission_no_longer_counts(cast: Cast, api: APIClient) -> None:
    api.post("/api/manifests/", manifest("Calculator", "1.1.0", {"risk": "high"}), format="json")
    base, toolkit = "/api/versions/Calculator@1.1.0", Toolkit.objects.get(name="Calculator")
    api.post(f"{base}/request-review/")
    cast.api("reviewer").post(f"{base}/review/", {"answer": "approve"}, format="json")
    remove_perm("registry.review_toolkit", cast.reviewer, toolkit)
    assert api.post(f"{base}/publish/").status_code == 409
    assign_perm("registry.review_toolkit", cast.reviewer, toolkit)
    assert api.post(f"{base}/publish/").status_code == 200


# Toolkits


def test_a_toolkit_is_described_and_the_trail_says_what_changed(cast: Cast, api: APIClient) -> None:
    Toolkit.objects.update(owner=cast.publisher)
    body = {"title": "Sums", "owner": "reviewer"}
    told = api.patch("/api/toolkits/calculator/", body, format="json").json()
    assert (told["title"], told["owner"]) == ("Sums", "reviewer")
    api.patch("/api/toolkits/Calculator/", body, format="json")
    described = Event.objects.filter(subject_kind="toolkit", subject_id="Calculator", event="toolkit.described")
    assert described.count() == 1
    assert described.get().actor == "user:publisher"


@pytest.mark.parametrize(
    "body",
    [
        {"owner": "nobody"},
        {"owner": "agent:demo"},
        {"owner": 1},
        {"title": "x" * 201},
        {"title": None},
        {"title": []},
        [],
        "text",
    ],
)
def test_a_description_that_cannot_be_is_refused(api: APIClient, body: Any) -> None:
    response = api.patch("/api/toolkits/Calculator/", body, format="json")
    assert response.status_code == 422
    assert response.json()["errors"]


@pytest.mark.parametrize("name", ["calculator", "1st", "Ünïcode", "a b", "", "x" * 63, "A\n", "{{7*7}}", None, 7.5, {}])
def test_a_name_that_cannot_be_is_refused(cast: Cast, name: Any) -> None:
    response = cast.api("superuser").post("/api/toolkits/", {"name": name}, format="json")
    assert response.status_code == (409 if name == "calculator" else 422)
    assert Toolkit.objects.count() == 1


def test_texts_are_kept_and_answered_literally(cast: Cast, api: APIClient) -> None:
    hostile = "<script>alert(1)</script> {{7*7}} {% now 'Y' %} %s ${7*7} '; DROP TABLE registry_tool; -- \u202e"
    document = manifest("Calculator", "1.1.0", {"title": hostile[:60], "description": hostile}, description=hostile)
    assert api.post("/api/manifests/", document, format="json").status_code == 201
    assert api.get("/api/tools/Calculator.Add@1.1.0/").json()["description"] == hostile
    assert api.get("/api/versions/Calculator@1.1.0/").json()["description"] == hostile
    found = api.get("/api/tools/", {"search": "{{7*7}}"}).json()["results"]
    assert [tool["id"] for tool in found] == ["Calculator.Add@1.1.0"]


def test_an_error_of_ours_is_json_without_a_traceback(
    api: APIClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr("registry.api.toolkits.access.visible_toolkits", broken)
    response = api.get("/api/toolkits/")
    assert response.status_code == 500
    assert response.json()["code"] == "internal"
    assert "secret detail" not in response.content.decode()
    assert "ZeroDivisionError" in caplog.text
