"""/api/secrets/: values go in and never come out, and every step needs its permission."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from audit.models import Event
from execution import secrets, secretstore
from execution.models import Secret, SecretVersion
from execution.secretsources.stored import opened
from policy import agents
from registry.models import Toolkit
from tests.execution.secretkit import BEARER, VALUE, keep, sender

pytestmark = pytest.mark.django_db

APP = {"client_id": "placet", "client_secret": "client-secret-51c0"}


def person(name: str, *codenames: str) -> APIClient:
    user = User.objects.create_user(name, password=None, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = APIClient()
    client.force_login(user)
    return client


@pytest.fixture
def keeper() -> APIClient:
    return person("keeper", "view_secret", "add_secret", "change_secret", "delete_secret")


def newest(name: str = "search-key") -> dict[str, str]:
    version = SecretVersion.objects.filter(secret__name=name, discarded_at=None).order_by("-number").first()
    assert version is not None
    return dict(opened(version))


def test_a_secret_is_kept_and_shown_without_its_value(keeper: APIClient) -> None:
    sender({}, name="Search")
    asked = {"name": "search-key", "value": VALUE, "description": "For search", "toolkits": ["search"]}
    answer = keeper.post("/api/secrets/", asked, format="json")
    assert answer.status_code == 201
    assert newest() == {"value": VALUE}
    shown = answer.json()
    assert shown["value"] == "***"
    assert shown["toolkits"] == ["Search"]
    assert [version["number"] for version in shown["versions"]] == [1]
    assert shown["versions"][0]["created_by"] == "user:keeper"
    for address in ("/api/secrets/", "/api/secrets/search-key/"):
        read = keeper.get(address)
        assert read["Cache-Control"] == "no-store"
        assert VALUE not in read.content.decode()
        assert str(len(VALUE)) not in json.dumps(read.json()).replace(shown["created_at"], "").replace(
            shown["versions"][0]["created_at"], ""
        )
    assert answer["Cache-Control"] == "no-store"


def test_an_object_shows_its_keys_and_a_secret_elsewhere_nothing(keeper: APIClient) -> None:
    made = keeper.post("/api/secrets/", {"name": "app", "value": APP}, format="json")
    assert made.json()["value"] == {"client_id": "***", "client_secret": "***"}
    asked = {"name": "team/app", "source": "vault", "path": "team/app"}
    assert keeper.post("/api/secrets/", asked, format="json").json()["value"] is None
    assert keeper.get("/api/secrets/team/app/").json()["path"] == "team/app"
    assert [row["name"] for row in keeper.get("/api/secrets/?source=vault").json()["results"]] == ["team/app"]


def test_a_put_with_stars_keeps_the_value(keeper: APIClient) -> None:
    keep()
    answer = keeper.put("/api/secrets/search-key/", {"value": "***", "description": "Now said"}, format="json")
    assert answer.status_code == 200
    assert answer.json()["description"] == "Now said"
    assert newest() == {"value": VALUE}
    assert SecretVersion.objects.count() == 1


def test_a_put_with_stars_in_an_object_keeps_that_text_only(keeper: APIClient) -> None:
    keep("app", APP)
    body = {"value": {"client_id": "***", "client_secret": "rotated-secret-9"}}
    assert keeper.put("/api/secrets/app/", body, format="json").status_code == 200
    assert newest("app") == {"client_id": "placet", "client_secret": "rotated-secret-9"}
    same = {"value": {"client_id": "***", "client_secret": "***"}}
    keeper.put("/api/secrets/app/", same, format="json")
    assert SecretVersion.objects.count() == 2
    lost = {"value": {"client_id": "***", "other": "***"}}
    assert keeper.put("/api/secrets/app/", lost, format="json").status_code == 422


def test_what_a_put_does_not_say_stays(keeper: APIClient) -> None:
    sender({}, name="Search")
    keep(description="For search", toolkits=["Search"])
    answer = keeper.put("/api/secrets/search-key/", {"value": "a-newer-value-2"}, format="json").json()
    assert (answer["description"], answer["toolkits"]) == ("For search", ["Search"])
    assert keeper.put("/api/secrets/search-key/", {"toolkits": []}, format="json").json()["toolkits"] == []


def test_a_put_that_is_half_wrong_changes_nothing(keeper: APIClient) -> None:
    keep(description="For search")
    for body in ({"description": "x", "value": "short"}, {"value": "a-newer-value-2", "toolkits": ["Nope"]}):
        assert keeper.put("/api/secrets/search-key/", body, format="json").status_code == 422
    assert Secret.objects.get().description == "For search"
    assert SecretVersion.objects.count() == 1


def test_versions_are_added_and_discarded(keeper: APIClient) -> None:
    keep()
    added = keeper.post("/api/secrets/search-key/versions/", {"value": "a-newer-value-2"}, format="json")
    assert added.status_code == 201
    assert [version["number"] for version in added.json()["versions"]] == [2, 1]
    assert keeper.post("/api/secrets/search-key/versions/1/discard/").status_code == 200
    first = SecretVersion.objects.get(number=1)
    assert (first.sealed, first.discarded_at is not None) == (None, True)
    assert keeper.post("/api/secrets/search-key/versions/1/discard/").status_code == 200  # nothing more happens
    assert keeper.post("/api/secrets/search-key/versions/7/discard/").status_code == 404
    assert keeper.post("/api/secrets/nothing/versions/1/discard/").status_code == 404
    events = Event.objects.filter(subject_kind="secret", subject_id="search-key").order_by("seq")
    assert [event.event for event in events] == [
        "secret.created",
        "secret.version_added",
        "secret.version_added",
        "secret.discarded",
    ]
    assert not any(VALUE in event.detail or "a-newer-value-2" in event.detail for event in events)


def test_a_deleted_secret_is_gone_and_the_trail_stays(keeper: APIClient) -> None:
    keep()
    assert keeper.delete("/api/secrets/search-key/").status_code == 204
    assert not Secret.objects.exists()
    assert not SecretVersion.objects.exists()
    assert keeper.get("/api/secrets/search-key/").status_code == 404
    assert Event.objects.get(event="secret.deleted").actor == "user:keeper"
    keep(value="another-value-1")  # the name is free again
    assert newest() == {"value": "another-value-1"}


def test_who_used_a_secret_is_shown(keeper: APIClient) -> None:
    secretstore._noted.clear()
    keep()
    secrets.resolve(sender(BEARER))
    assert [use["tool"] for use in keeper.get("/api/secrets/search-key/").json()["used_by"]] == ["Sender.Send@1.0.0"]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x"},
        {"value": VALUE},
        {"name": "a b", "value": VALUE},
        {"name": "x", "value": "short"},
        {"name": "x", "value": "password123"},
        {"name": "x", "value": ""},
        {"name": "x", "value": None},
        {"name": "x", "value": 12345678},
        {"name": "x", "value": [VALUE]},
        {"name": "x", "value": {}},
        {"name": "x", "value": {"a": {"b": VALUE}}},
        {"name": "x", "value": {"": VALUE}},
        {"name": "x", "value": "***"},
        {"name": "x", "value": f"{VALUE}\r\nX-Evil: 1"},
        {"name": "x", "value": f"{VALUE}€"},
        {"name": "x", "value": "y" * 70_000},
        {"name": "x", "value": {f"k{number}": VALUE for number in range(51)}},
        {"name": "x", "value": VALUE, "source": "env"},
        {"name": "x", "source": "carrier pigeon"},
        {"name": "key", "source": "env"},
        {"name": "x", "source": "vault", "path": "../../sys/seal"},
        {"name": "x", "value": VALUE, "path": "p"},
        {"name": "x", "value": VALUE, "toolkits": ["Nope"]},
        {"name": "x", "value": VALUE, "sealed": "y"},
        {"name": "n" * 200, "value": VALUE},
    ],
)
def test_what_cannot_be_kept_is_refused_with_a_reason_that_does_not_quote_it(
    keeper: APIClient, body: dict[str, Any]
) -> None:
    answer = keeper.post("/api/secrets/", body, format="json")
    assert answer.status_code == 422
    assert VALUE not in answer.content.decode()
    assert not Secret.objects.exists()
    assert not Event.objects.filter(subject_kind="secret").exists()


def test_a_name_is_used_once(keeper: APIClient) -> None:
    keep()
    assert keeper.post("/api/secrets/", {"name": "search-key", "value": VALUE}, format="json").status_code == 422


STEPS: dict[str, list[tuple[str, str, Any]]] = {
    "view_secret": [("get", "/api/secrets/", None), ("get", "/api/secrets/search-key/", None)],
    "add_secret": [("post", "/api/secrets/", {"name": "new", "value": VALUE})],
    "change_secret": [
        ("put", "/api/secrets/search-key/", {"value": "a-newer-value-2"}),
        ("post", "/api/secrets/search-key/versions/", {"value": "a-newer-value-2"}),
        ("post", "/api/secrets/search-key/versions/1/discard/", None),
    ],
    "delete_secret": [("delete", "/api/secrets/search-key/", None)],
}


@pytest.mark.parametrize("needed", sorted(STEPS))
def test_every_step_needs_its_permission(needed: str) -> None:
    keep()
    others = person("other", *(set(STEPS) - {needed} - ({"change_secret"} if needed == "view_secret" else set())))
    allowed = person("allowed", needed)
    for method, address, body in STEPS[needed]:
        refused = getattr(others, method)(address, body, format="json")
        assert refused.status_code == 403
        assert needed in refused.json()["message"]
        assert getattr(allowed, method)(address, body, format="json").status_code in (200, 201, 204)


def test_an_agent_has_no_business_here_whatever_it_may() -> None:
    keep()
    made = agents.create("bot", actor="shell")
    made.agent.user.user_permissions.set(Permission.objects.filter(codename__in=STEPS))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made.key}")
    for steps in STEPS.values():
        for method, address, body in steps:
            assert getattr(client, method)(address, body, format="json").status_code == 403
    assert APIClient().get("/api/secrets/").status_code in (401, 403)
    assert SecretVersion.objects.count() == 1


def test_toolkits_that_were_chosen_are_the_only_ones(keeper: APIClient) -> None:
    sender({}, name="Search")
    keeper.post("/api/secrets/", {"name": "search-key", "value": VALUE, "toolkits": ["Search"]}, format="json")
    assert list(Secret.objects.get().toolkits.all()) == [Toolkit.objects.get(name="Search")]
