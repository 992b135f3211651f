"""Who may write what over REST: everyone else is refused, and nothing has changed then."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import transaction
from guardian.shortcuts import assign_perm
from rest_framework.test import APIClient

from audit.models import Event
from policy import reviews
from policy.models import Agent, Credential, Review
from registry import manifestshape
from registry.models import Toolkit, ToolkitVersion
from registry.schemas import Problem
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import draft, manifest, published

ROLES = [
    "publisher",
    "reviewer",
    "viewer",
    "stranger",
    "with_model_permissions",
    "superuser",
    "agent",
    "publishing_agent",
    "anonymous",
]
PUBLISHERS = {"publisher": 200, "publishing_agent": 200, "superuser": 200, "stranger": 404, "anonymous": 401}

# What is asked, and the answer for each role; 403 where nothing else is said.
WRITES: dict[str, tuple[str, str, dict[str, Any], dict[str, int]]] = {
    "make a toolkit": ("post", "toolkits/", {"name": "Fresh"}, {"superuser": 201, "anonymous": 401}),
    "describe a toolkit": ("patch", "toolkits/Calculator/", {"title": "Sums"}, PUBLISHERS),
    "upload a draft": (
        "post",
        "manifests/",
        manifest("Calculator", "3.0.0"),
        {"publisher": 201, "publishing_agent": 201, "superuser": 201, "anonymous": 401},
    ),
    "upload a new toolkit": ("post", "manifests/", manifest("Fresh", "1.0.0"), {"superuser": 201, "anonymous": 401}),
    "ask for a review": (
        "post",
        "versions/Calculator@2.0.0/request-review/",
        {},
        PUBLISHERS | {"viewer": 404, "agent": 404, "with_model_permissions": 404},
    ),
    "review": (
        "post",
        "versions/Calculator@2.1.0/review/",
        {"answer": "approve"},
        {
            "reviewer": 201,
            "superuser": 201,
            "viewer": 404,
            "stranger": 404,
            "with_model_permissions": 404,
            "anonymous": 401,
        },
    ),
    "publish": (
        "post",
        "versions/Calculator@2.0.0/publish/",
        {},
        PUBLISHERS | {"viewer": 404, "agent": 404, "with_model_permissions": 404},
    ),
    "deprecate": ("post", "versions/Calculator@1.0.0/deprecate/", {"note": "old"}, PUBLISHERS),
    "withdraw": ("post", "versions/Calculator@1.0.0/withdraw/", {"reason": "broken"}, PUBLISHERS),
    "make an agent": ("post", "agents/", {"name": "fresh"}, {"superuser": 201, "anonymous": 401}),
    "make a key": (
        "post",
        "agents/demo/keys/",
        {},
        {"superuser": 201, "anonymous": 401, **dict.fromkeys(ROLES[:5], 404)},
    ),
    "disable an agent": (
        "post",
        "agents/demo/disable/",
        {},
        {"superuser": 200, "anonymous": 401, **dict.fromkeys(ROLES[:5], 404)},
    ),
}


@pytest.fixture
def cast(db: None) -> Cast:
    """Calculator 1.0.0 is published, 2.0.0 a draft of the publisher, 2.1.0 a risky one in review."""
    published()
    cast = cast_of(Toolkit.objects.get(name="Calculator"))
    draft("Calculator", "2.0.0", by=cast.publisher)
    risky = draft("Calculator", "2.1.0", {"risk": "high"}, by=cast.publisher)
    reviews.request(risky, by=cast.publisher)
    return cast


def state() -> dict[str, Any]:
    """All that a write could have changed."""
    return {
        "toolkits": list(Toolkit.objects.order_by("pk").values()),
        "versions": list(ToolkitVersion.objects.order_by("pk").values()),
        "reviews": Review.objects.count(),
        "agents": list(Agent.objects.order_by("pk").values("name", "is_active")),
        "keys": Credential.objects.count(),
        "events": Event.objects.exclude(subject_kind="user").count(),
    }


@pytest.mark.parametrize("write", WRITES)
def test_each_role_may_write_exactly_what_it_was_given(cast: Cast, write: str) -> None:
    method, path, body, expected = WRITES[write]
    before = state()
    for role in ROLES:
        client = cast.api(role)
        with transaction.atomic():
            response = getattr(client, method)(f"/api/{path}", body, format="json")
            assert response.status_code == expected.get(role, 403), (role, response.content)
            if response.status_code >= 400:
                assert state() == before, role
                assert set(response.json()) >= {"code", "message"}
            else:
                assert state()["events"] > before["events"], role
            transaction.set_rollback(True)


def test_nobody_is_told_how_to_authenticate(cast: Cast) -> None:
    response = cast.api("anonymous").get("/api/toolkits/")
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["code"] == "not_authenticated"


def test_a_key_in_the_query_is_not_a_credential(cast: Cast) -> None:
    for name in ("key", "token", "access_token", "api_key", "OXP-API-Key"):
        assert cast.api("anonymous").get("/api/toolkits/", {name: cast.agent.key}).status_code == 401


@pytest.mark.parametrize(
    "header", ["Bearer plc_' OR 1=1 --_x", "Basic cm9vdDpyb290", "Bearer {{7*7}}", "Bearer " + "x" * 9000]
)
def test_a_bad_credential_is_refused_even_beside_a_login(cast: Cast, header: str) -> None:
    response = cast.api("superuser").get("/api/toolkits/", HTTP_AUTHORIZATION=header)
    assert response.status_code == 401
    assert "WWW-Authenticate" in response


def test_a_login_without_the_csrf_token_cannot_write(cast: Cast) -> None:
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(cast.superuser)
    response = client.post("/api/toolkits/", {"name": "Fresh"}, format="json")
    assert response.status_code == 403
    assert not Toolkit.objects.filter(name="Fresh").exists()


@pytest.mark.parametrize(
    ("role", "seen"),
    [
        ("publisher", ["Calculator@2.1.0", "Calculator@2.0.0", "Calculator@1.0.0"]),
        ("reviewer", ["Calculator@2.1.0", "Calculator@2.0.0", "Calculator@1.0.0"]),
        ("superuser", ["Calculator@2.1.0", "Calculator@2.0.0", "Calculator@1.0.0"]),
        ("viewer", ["Calculator@1.0.0"]),
        ("agent", ["Calculator@1.0.0"]),
        ("with_model_permissions", ["Calculator@1.0.0"]),
        ("stranger", []),
    ],
)
def test_drafts_are_seen_only_by_those_who_publish_or_review_them(cast: Cast, role: str, seen: list[str]) -> None:
    listed = cast.api(role).get("/api/versions/").json()["results"]
    assert [version["id"] for version in listed] == seen
    for id in ("Calculator@2.0.0", "Calculator@1.0.0"):
        assert cast.api(role).get(f"/api/versions/{id}/").status_code == (200 if id in seen else 404)
    tools = cast.api(role).get("/api/tools/").json()["results"]
    assert sorted(tool["id"] for tool in tools) == sorted(id.replace("@", ".Add@") for id in seen)


def test_what_is_not_yours_reads_like_what_is_not_there(cast: Cast) -> None:
    api = cast.api("stranger")
    for there, nowhere in (
        ("toolkits/Calculator/", "toolkits/Nowhere/"),
        ("versions/Calculator@1.0.0/", "versions/Nowhere@1.0.0/"),
        ("tools/Calculator.Add@1.0.0/", "tools/Nowhere.Add@1.0.0/"),
        ("versions/Calculator@1.0.0/manifest/", "versions/Nowhere@1.0.0/manifest/"),
    ):
        hidden, missing = api.get(f"/api/{there}"), api.get(f"/api/{nowhere}")
        assert hidden.status_code == missing.status_code == 404
        assert hidden.content == missing.content


@pytest.mark.parametrize(
    ("role", "status"), [("publisher", 200), ("reviewer", 200), ("viewer", 200), ("superuser", 200), ("agent", 403)]
)
def test_a_manifest_tells_more_than_a_caller_needs(cast: Cast, role: str, status: int) -> None:
    response = cast.api(role).get("/api/versions/Calculator@1.0.0/manifest/")
    assert response.status_code == status
    assert ("127.0.0.1:9" in response.content.decode()) == (status == 200)
    tool = cast.api("agent").get("/api/tools/Calculator.Add@1.0.0/")
    assert "127.0.0.1:9" not in tool.content.decode()


def test_the_editor_of_a_draft_cannot_approve_it_whatever_the_permissions(cast: Cast) -> None:
    assign_perm("registry.review_toolkit", cast.publisher, Toolkit.objects.get(name="Calculator"))
    response = cast.api("publisher").post(
        "/api/versions/Calculator@2.1.0/review/", {"answer": "approve"}, format="json"
    )
    assert response.status_code == 403
    assert "another person" in response.json()["message"]


def test_an_agent_cannot_review_even_with_the_permission(cast: Cast) -> None:
    assign_perm("registry.review_toolkit", cast.agent.agent.user, Toolkit.objects.get(name="Calculator"))
    response = cast.api("agent").post("/api/versions/Calculator@2.1.0/review/", {"answer": "approve"}, format="json")
    assert response.status_code == 403
    assert not Review.objects.exists()


def test_who_makes_a_toolkit_by_manifest_may_publish_it(cast: Cast) -> None:
    cast.stranger.user_permissions.add(Permission.objects.get(codename="add_toolkit"))
    api = cast.api("stranger")
    assert api.post("/api/manifests/", manifest("Fresh", "1.0.0"), format="json").status_code == 201
    assert api.post("/api/versions/Fresh@1.0.0/publish/").status_code == 200
    assert api.get("/api/toolkits/Fresh/").json()["owner"] == "stranger"
    assert cast.api("viewer").get("/api/toolkits/Fresh/").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "toolkits/", {"name": "Fresh", "created_at": "2020-01-01", "id": 7}),
        ("patch", "toolkits/Calculator/", {"name": "Other"}),
        ("patch", "toolkits/Calculator/", {"latest_version": "9.9.9"}),
        ("post", "versions/Calculator@2.0.0/publish/", {"reviewed_by": "root", "state": "published"}),
        ("post", "versions/Calculator@2.0.0/request-review/", {"reviewed_by": "root"}),
        ("post", "versions/Calculator@2.1.0/review/", {"answer": "approve", "decided_by": "root", "reviewer": "root"}),
        ("post", "versions/Calculator@1.0.0/deprecate/", {"note": "x", "risk": "low", "published_by": "root"}),
        ("post", "versions/Calculator@1.0.0/withdraw/", {"reason": "x", "withdrawn_at": "2020-01-01"}),
        ("post", "agents/", {"name": "fresh", "is_staff": True, "user": 1, "key": "plc_1_2"}),
        ("post", "agents/demo/keys/", {"hash": "0" * 64, "prefix": "abc"}),
        ("post", "agents/demo/disable/", {"is_superuser": True}),
    ],
)
def test_a_field_that_cannot_be_written_is_refused_by_name(
    cast: Cast, method: str, path: str, body: dict[str, Any]
) -> None:
    before = state()
    response = getattr(cast.api("superuser"), method)(f"/api/{path}", body, format="json")
    assert response.status_code == 422
    unknown = {error["path"] for error in response.json()["errors"] if error["reason"] == "Unknown field."}
    assert unknown
    assert unknown <= set(body)
    assert state() == before


def test_fields_of_a_manifest_that_do_not_exist_are_refused_with_their_path(cast: Cast) -> None:
    document = manifest("Calculator", "4.0.0")
    document["metadata"]["state"] = "published"
    response = cast.api("publisher").post("/api/manifests/", document, format="json")
    assert response.status_code == 422
    assert response.json()["errors"][0]["path"] == "metadata.state"
    assert not ToolkitVersion.objects.filter(major=4).exists()


@pytest.mark.parametrize(("role", "status"), [("stranger", 403), ("reviewer", 403), ("agent", 403), ("publisher", 422)])
@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
def test_schemas_are_judged_only_for_those_who_may_write_them(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, role: str, status: int, content_type: str
) -> None:
    judged: list[Any] = []

    def judge(schema: Any) -> list[Problem]:
        judged.append(schema)
        return [Problem("", "no")]

    monkeypatch.setattr(manifestshape, "input_problems", judge)
    text = json.dumps(manifest("Calculator", "4.0.0"))
    response = cast.api(role).post("/api/manifests/", text, content_type=content_type)
    assert response.status_code == status
    assert bool(judged) == (status == 422)
