"""Grants and broken glass, over REST and on their pages: bounded, metered, ended at once, reviewed by somebody else."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from rest_framework.test import APIClient

from audit.models import Event
from policy import agents, breakglass
from policy.models import Approval, BreakGlass, Grant
from registry.ids import new_id
from registry.models import ToolkitVersion
from tests.policy.asking import approver, asker, browser, payments, question

pytestmark = pytest.mark.django_db

JSON = {"Accept": "application/json"}


@pytest.fixture
def version(db: None) -> ToolkitVersion:
    return payments()


@pytest.fixture
def ana(version: ToolkitVersion) -> User:
    return approver("ana", version)


@pytest.fixture
def ben(version: ToolkitVersion) -> User:
    return approver("ben", version)


def api(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def bounds(**changes: Any) -> dict[str, Any]:
    until = (timezone.now() + timedelta(hours=8)).isoformat()
    return {"uses": 20, "until": until, "when": "input.amount <= 100.0", "reason": "small refunds today", **changes}


def give(user: User, approval: Approval, **changes: Any) -> Any:
    return api(user).post(f"/api/approvals/{approval.pk}/grant/", bounds(**changes), format="json")


def glass(version: ToolkitVersion, by: User) -> BreakGlass:
    tool = version.tools.get(name="Refund")
    return breakglass.record(new_id(), agent=asker(), tool=tool, by=by, reason="Customer stranded, nobody answered")


def breaker(user: User) -> User:
    user.user_permissions.add(Permission.objects.get(codename="break_glass"))
    return User.objects.get(pk=user.pk)


def test_a_grant_approves_this_call_and_shows_its_bounds(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, {"amount": 50.0})
    answer = give(ana, asked)
    assert answer.status_code == 201, answer.content
    told = answer.json()
    expected = {
        "state": "active",
        "agent": "support-bot",
        "tool_id": "Payments.Refund@1.0.0",
        "when": "input.amount <= 100.0",
        "uses": 20,
        "used": 0,
        "reason": "small refunds today",
        "granted_by": "ana",
        "approval": str(asked.pk),
        "revoked_by": None,
        "revoked_at": None,
    }
    assert {name: told[name] for name in expected} == expected
    asked.refresh_from_db()
    assert asked.state == "approved"
    assert api(ana).get(f"/api/grants/{told['id']}/").json() == told
    assert Event.objects.filter(subject_kind="grant", event="grant.given", actor="user:ana").count() == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"uses": 0},
        {"uses": -1},
        {"uses": 10_001},
        {"uses": "many"},
        {"until": "yesterday"},
        {"until": "2001-01-01T00:00:00Z"},
        {"when": "input.amount <="},
        {"when": "input.nothing == 1"},
        {"when": "1 + 1"},
        {"reason": ""},
        {"granted_by": "ben"},
        {"used": 0},
        {"max_uses": 5},
    ],
    ids=str,
)
def test_a_grant_without_bounds_leaves_the_question_open(
    version: ToolkitVersion, ana: User, changes: dict[str, Any]
) -> None:
    asked = question(version)
    answer = give(ana, asked, **changes)
    assert answer.status_code == 422, answer.content
    asked.refresh_from_db()
    assert asked.is_pending
    assert not Grant.objects.exists()
    assert not asked.votes.exists()


def test_nobody_grants_what_they_may_not_decide(version: ToolkitVersion, ana: User, ben: User) -> None:
    own, two = question(version, agent=asker("own-bot", owner=ana)), question(version, quorum=2)
    assert (give(ana, own).status_code, give(ana, own).json()["code"]) == (403, "self_approval")
    assert give(ana, two).status_code == 422
    two.refresh_from_db()
    assert two.is_pending
    assert not two.votes.exists()
    taken = question(version)
    assert give(ben, taken).status_code == 201
    lost = give(ana, taken)
    assert (lost.status_code, lost.json()["details"]["decision"]["person"]) == (409, "ben")
    assert Grant.objects.count() == 1


def test_a_grant_is_revoked_once_and_with_a_reason(version: ToolkitVersion, ana: User, ben: User) -> None:
    id = give(ana, question(version)).json()["id"]
    url = f"/api/grants/{id}/revoke/"
    assert api(ben).post(url, {}, format="json").status_code == 422
    assert api(ben).post(url, {"reason": "x", "revoked_by": "ana"}, format="json").status_code == 422
    told = api(ben).post(url, {"reason": "campaign is over"}, format="json").json()
    assert (told["state"], told["revoked_by"]) == ("revoked", "ben")
    again = api(ben).post(url, {"reason": "again"}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_the_state_of_a_grant_is_told_and_asked_for(version: ToolkitVersion, ana: User) -> None:
    for fields in (
        {},
        {"used": 20},
        {"until": timezone.now() - timedelta(minutes=1)},
        {"revoked_at": timezone.now(), "revoked_by": ana},
    ):
        Grant.objects.filter(pk=give(ana, question(version)).json()["id"]).update(**fields)
    states = ["active", "used up", "over", "revoked"]
    listed = api(ana).get("/api/grants/", {"ordering": "granted_at"}).json()["results"]
    assert [grant["state"] for grant in listed] == states
    for state in states:
        (only,) = api(ana).get("/api/grants/", {"state": state}).json()["results"]
        assert only["state"] == state
    assert api(ana).get("/api/grants/", {"state": "odd"}).status_code == 400


def test_grants_and_broken_glass_of_others_look_like_none(version: ToolkitVersion, ana: User) -> None:
    grant = give(ana, question(version)).json()["id"]
    use = glass(version, by=ana).pk
    stranger = approver("stranger", version, "view", "call")
    client, key = api(stranger), agents.create("bot", actor="shell").key
    for path, id, step, body in (
        ("/api/grants/", grant, "revoke", {"reason": "x"}),
        ("/api/break-glass/", use, "review", {"verdict": "justified"}),
    ):
        assert client.get(path).json()["results"] == []
        seen, unknown = (
            [client.get(f"{path}{key}/"), client.post(f"{path}{key}/{step}/", body, format="json")]
            for key in (id, 10**9)
        )
        assert [answer.status_code for answer in (*seen, *unknown)] == [404] * 4
        assert [answer.content for answer in seen] == [answer.content for answer in unknown]
        refused = APIClient().get(path, headers={"Authorization": f"Bearer {key}"})
        assert (refused.status_code, refused.json()["code"]) == (403, "not_a_person")
        assert client.get(f"{path}{id}/{step}/").status_code == 405
    for path in (f"/approvals/grants/{grant}/revoke/", f"/approvals/break-glass/{use}/review/"):
        assert browser(stranger).post(path, {"reason": "x", "verdict": "justified"}).status_code == 404


def test_the_inbox_grants_and_the_page_shows_the_meter(version: ToolkitVersion, ana: User) -> None:
    first, same = question(version, {"amount": 5.0}), question(version, {"amount": 5.0})
    said = {"id": [str(first.pk), str(same.pk)], "uses": "3", "hours": "8", "when": "input.amount == 5.0"}
    refused = browser(ana).post("/approvals/grant/", said, headers=JSON)
    assert refused.status_code == 422
    assert "Reason" in refused.json()["message"]
    told = browser(ana).post("/approvals/grant/", {**said, "reason": "<b>today</b>"}, headers=JSON).json()["results"]
    assert [result["ok"] for result in told] == [True, True]
    assert [each.state for each in Approval.objects.all()] == ["approved", "approved"]
    grant = Grant.objects.get()
    assert timedelta(hours=7) < grant.until - timezone.now() <= timedelta(hours=8)
    Grant.objects.update(used=2)
    text = browser(ana).get("/approvals/grants/").content.decode()
    assert '<meter min="0" max="3" value="2"' in text
    assert "2 of 3 used" in text
    assert "&lt;b&gt;today&lt;/b&gt;" in text
    after = browser(ana).post(f"/approvals/grants/{grant.pk}/revoke/", {"reason": "over"}, follow=True)
    assert "No grant is in force" in after.content.decode()
    assert "revoked" in browser(ana).get("/approvals/grants/?all=1").content.decode()


def test_a_bad_condition_on_the_page_decides_nothing(version: ToolkitVersion, ana: User) -> None:
    asked = question(version)
    said = {"id": str(asked.pk), "uses": "3", "hours": "8", "when": "input.amount <=", "reason": "x"}
    (told,) = browser(ana).post("/approvals/grant/", said, headers=JSON).json()["results"]
    assert (told["ok"], told["status"]) == (False, 422)
    assert "condition" in told["message"]
    asked.refresh_from_db()
    assert asked.is_pending


def test_who_broke_the_glass_does_not_review_it(version: ToolkitVersion, ana: User, ben: User) -> None:
    ana, ben = breaker(ana), breaker(ben)
    use = glass(version, by=ana)
    url = f"/api/break-glass/{use.pk}/review/"
    (waiting,) = api(ben).get("/api/break-glass/", {"reviewed": "false"}).json()["results"]
    assert (waiting["person"], waiting["verdict"], waiting["reviewed_by"]) == ("ana", "", None)
    own = api(ana).post(url, {"verdict": "justified"}, format="json")
    assert own.status_code == 403
    for body in ({}, {"verdict": "perhaps"}, {"verdict": "unjustified"}, {"verdict": "justified", "person": "x"}):
        assert api(ben).post(url, body, format="json").status_code == 422, body
    told = api(ben).post(url, {"verdict": "unjustified", "note": "the approvers were there"}, format="json").json()
    assert (told["verdict"], told["reviewed_by"]) == ("unjustified", "ben")
    assert api(ben).post(url, {"verdict": "justified"}, format="json").status_code == 409
    assert api(ben).get("/api/break-glass/", {"reviewed": "false"}).json()["count"] == 0


def test_the_page_of_broken_glass_asks_for_a_review_and_records_it(
    version: ToolkitVersion, ana: User, ben: User
) -> None:
    ana, ben = breaker(ana), breaker(ben)
    assert "The glass is whole" in browser(ana).get("/approvals/break-glass/").content.decode()
    use = glass(version, by=ana)
    assert "Another person who may break the glass reviews it" in page(ana)
    text = page(ben)
    assert "Customer stranded" in text
    assert f'action="/approvals/break-glass/{use.pk}/review/"' in text
    assert f"/calls/{use.call}/" in text
    url = f"/approvals/break-glass/{use.pk}/review/"
    assert browser(ben).get(url).status_code == 405
    assert "Say whether it was justified" in browser(ben).post(url, {}, follow=True).content.decode()
    browser(ben).post(url, {"verdict": "justified", "note": "checked the ticket"})
    text = page(ana)
    assert "Justified, says ben" in " ".join(text.split())
    assert "checked the ticket" in text


def page(user: User) -> str:
    return browser(user).get("/approvals/break-glass/").content.decode()
