"""Approvals over REST: who sees what, who may answer, and what whoever came second is told."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from rest_framework.test import APIClient

from audit.models import Event
from policy import agents, approvals
from policy.models import Approval, Vote
from registry.models import ToolkitVersion
from tests.execution.approving import without_guards
from tests.policy.asking import approver, asker, browser, cards, page, payments, question, state

pytestmark = pytest.mark.django_db

LIST = "/api/approvals/"
MASS_ASSIGNED = ("decided_by", "approver", "state", "tenant", "risk_level", "is_staff", "fence", "expires_at", "person")


@pytest.fixture
def version(db: None) -> ToolkitVersion:
    return payments()


@pytest.fixture
def ana(version: ToolkitVersion) -> User:
    return approver("ana", version)


@pytest.fixture
def ben(version: ToolkitVersion) -> User:
    return approver("ben", version)


def api(user: User | None = None, *, has_csrf: bool = False) -> APIClient:
    client = APIClient(enforce_csrf_checks=has_csrf)
    if user is not None:
        client.force_login(user)
    return client


def post(user: User, approval: Approval, step: str, **body: Any) -> Any:
    return api(user).post(f"{LIST}{approval.pk}/{step}/", body, format="json")


def shown(user: User, **query: Any) -> list[str]:
    answer = api(user).get(LIST, query)
    assert answer.status_code == 200, answer.content
    return [each["id"] for each in answer.json()["results"]]


def test_an_approval_shows_exactly_what_would_run_and_why_one_is_asked(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, {"note": "a\u202eb", "amount": 250.0}, user_id="mara", rule="big refunds", quorum=2)
    told = api(ana).get(f"{LIST}{asked.pk}/").json()
    assert told["arguments"] == {"amount": 250.0, "note": "a\u202eb"}
    expected = {
        "id": str(asked.pk),
        "state": "pending",
        "call": str(asked.call),
        "call_id": asked.call_id,
        "agent": "support-bot",
        "user_id": "mara",
        "tool_id": "Payments.Refund@1.0.0",
        "risk": "high",
        "capabilities": ["data.write", "external.side_effect"],
        "digest": asked.digest,
        "rule": "big refunds",
        "reason": asked.reason,
        "revision": 0,
        "approvers": "",
        "quorum": 2,
        "reviews": [],
        "run_by": None,
        "can_decide": True,
        "why_not": None,
    }
    assert {name: told[name] for name in expected} == expected


def test_approving_lets_the_call_run_and_names_who_and_why(version: ToolkitVersion, ana: User) -> None:
    asked = question(version)
    answer = post(ana, asked, "approve", reason="ticket 7")
    assert answer.status_code == 200
    told = answer.json()
    assert (told["state"], told["can_decide"], told["why_not"]["code"]) == ("approved", False, "already_decided")
    (review,) = told["reviews"]
    assert (review["person"], review["answer"], review["reason"]) == ("ana", "approve", "ticket 7")
    assert told["run_by"] > told["decided_at"]
    assert Event.objects.filter(subject_id=str(asked.pk), event="approval.approved", actor="user:ana").exists()


def test_a_yes_needs_no_reason_and_a_no_does(version: ToolkitVersion, ana: User) -> None:
    assert post(ana, question(version), "approve").status_code == 200
    asked = question(version)
    for body in ({}, {"reason": ""}, {"reason": "  "}):
        assert post(ana, asked, "deny", **body).status_code == 422
    assert not asked.votes.exists()
    assert post(ana, asked, "deny", reason="no ticket").json()["state"] == "denied"


def test_who_comes_second_learns_who_was_first_and_when(version: ToolkitVersion, ana: User, ben: User) -> None:
    asked = question(version)
    won = post(ben, asked, "deny", reason="no ticket").json()
    lost = post(ana, asked, "approve")
    assert lost.status_code == 409
    told = lost.json()
    assert told["code"] == "already_decided"
    assert told["details"]["state"] == "denied"
    decision = told["details"]["decision"]
    assert (decision["person"], decision["answer"], decision["reason"]) == ("ben", "deny", "no ticket")
    assert decision["at"] == won["reviews"][0]["at"]
    assert Vote.objects.filter(approval=asked).count() == 1


def test_one_person_answers_once_and_a_quorum_takes_two(version: ToolkitVersion, ana: User, ben: User) -> None:
    asked = question(version, quorum=2)
    assert post(ana, asked, "approve").json()["state"] == "pending"
    again = post(ana, asked, "approve")
    assert (again.status_code, again.json()["code"]) == (409, "already_voted")
    assert api(ana).get(f"{LIST}{asked.pk}/").json()["why_not"]["code"] == "already_voted"
    assert post(ben, asked, "approve").json()["state"] == "approved"


def test_too_late_is_gone(version: ToolkitVersion, ana: User) -> None:
    late = question(version, minutes=-1)
    answer = post(ana, late, "approve")
    assert (answer.status_code, answer.json()["code"]) == (410, "expired")
    assert api(ana).get(f"{LIST}{late.pk}/").json()["why_not"]["code"] == "expired"


def test_nobody_agrees_to_what_they_answer_for(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, agent=asker("own-bot", owner=ana))
    answer = post(ana, asked, "approve")
    assert (answer.status_code, answer.json()["code"]) == (403, "self_approval")
    told = api(ana).get(f"{LIST}{asked.pk}/").json()
    assert (told["can_decide"], told["why_not"]["code"]) == (False, "self_approval")


@pytest.mark.parametrize("role", ["auditor", "operator"])
def test_who_reads_every_call_reads_its_approval_and_decides_nothing(version: ToolkitVersion, role: str) -> None:
    asked, reader = question(version), User.objects.create_user("rea", is_staff=True)
    reader.groups.add(Group.objects.get(name=role))
    client = browser(reader)
    assert client.get(f"/api/approvals/{asked.pk}/").json()["can_decide"] is False
    (told,) = cards(page(reader, f"/approvals/{asked.pk}/"))
    assert "Deciding needs the permission &#x27;approve&#x27; on Payments." in told
    assert "Approve" not in told
    assert client.get(f"/approvals/{asked.pk}/card/").status_code == 200
    assert cards(page(reader)) == []  # an inbox is for those who decide
    later = {"uses": 1, "until": (timezone.now() + timedelta(hours=1)).isoformat()}
    for verb, more in {"approve": {}, "deny": {}, "revoke": {}, "grant": later}.items():
        assert post(reader, asked, verb, reason="no", **more).status_code == 403, verb
    client.post("/approvals/decide/", {"id": str(asked.pk), "answer": "approve"})
    client.post(f"/approvals/{asked.pk}/revoke/", {"reason": "no"})
    assert state(asked) == "pending"
    assert not Vote.objects.exists()


def test_who_only_audits_sees_and_does_not_decide(version: ToolkitVersion) -> None:
    asked = question(version)
    answer = post(approver("auditor", version, "audit"), asked, "approve")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_an_approver")


def test_an_approval_of_others_looks_like_one_that_does_not_exist(version: ToolkitVersion) -> None:
    stranger = approver("stranger", version, "view", "call", "publish", "review")
    asked = question(version)
    assert shown(stranger) == []
    for step, body in (("", None), ("approve/", {}), ("deny/", {"reason": "x"}), ("revoke/", {}), ("grant/", {})):
        answers = [
            api(stranger).get(f"{LIST}{id}/")
            if body is None
            else api(stranger).post(f"{LIST}{id}/{step}", body, "json")
            for id in (asked.pk, uuid4())
        ]
        assert [answer.status_code for answer in answers] == [404, 404], step
        assert answers[0].content == answers[1].content
    asked.refresh_from_db()
    assert asked.is_pending


def test_a_service_credential_never_approves(version: ToolkitVersion) -> None:
    asked = question(version)
    new = agents.create("approving-bot", actor="shell")
    User.objects.filter(pk=new.agent.user_id).update(is_superuser=True)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {new.key}")
    for answer in (client.get(LIST), client.post(f"{LIST}{asked.pk}/approve/", {}, format="json")):
        assert (answer.status_code, answer.json()["code"]) == (403, "not_a_person")
    assert api().get(LIST).status_code == 401
    asked.refresh_from_db()
    assert asked.is_pending


@pytest.mark.parametrize("step", ["approve", "deny", "revoke", "grant"])
def test_a_get_never_decides(version: ToolkitVersion, ana: User, step: str) -> None:
    asked = question(version)
    for method in ("get", "head", "put", "patch", "delete"):
        assert getattr(api(ana), method)(f"{LIST}{asked.pk}/{step}/").status_code == 405
    asked.refresh_from_db()
    assert asked.is_pending


@pytest.mark.parametrize("field", MASS_ASSIGNED)
def test_what_a_body_may_not_say_is_refused_by_name(version: ToolkitVersion, ana: User, field: str) -> None:
    asked = question(version)
    for step in ("approve", "deny", "revoke"):
        answer = post(ana, asked, step, reason="x", **{field: "ben"})
        assert answer.status_code == 422
        assert answer.json()["errors"] == [{"path": field, "reason": "Unknown field."}]
    asked.refresh_from_db()
    assert asked.is_pending


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example"}], ids=["no token", "foreign origin"])
def test_a_session_alone_does_not_decide(version: ToolkitVersion, ana: User, headers: dict[str, str]) -> None:
    asked = question(version)
    url = f"{LIST}{asked.pk}/approve/"
    answer = api(ana, has_csrf=True).post(url, {}, format="json", headers=headers)
    assert answer.status_code == 403
    asked.refresh_from_db()
    assert asked.is_pending


@pytest.mark.parametrize(
    "body", [[], "yes", {"reason": 7.5}, {"reason": {}}, {"reason": "x" * 2_001}, {"reason": None}]
)
def test_a_body_of_another_shape_is_refused(version: ToolkitVersion, ana: User, body: Any) -> None:
    asked = question(version)
    answer = api(ana).post(f"{LIST}{asked.pk}/deny/", body, format="json")
    assert answer.status_code == (200 if body == {"reason": 7.5} else 422), answer.content


@pytest.mark.django_db(transaction=True)
def test_questions_of_one_moment_come_newest_first(version: ToolkitVersion, ana: User) -> None:
    asked = [question(version) for _ in range(6)]
    with without_guards("policy_approval", "what_an_approval_is_bound_to_never_changes"):
        Approval.objects.update(created_at=asked[0].created_at)
    newest_first = [str(each.pk) for each in reversed(asked)]
    assert shown(ana) == newest_first
    assert shown(ana, page_size=3) + shown(ana, page_size=3, page=2) == newest_first


def test_a_list_is_narrowed_ordered_and_searched(version: ToolkitVersion, ana: User) -> None:
    urgent, calm = question(version, minutes=5), question(version, minutes=500, user_id="mara")
    own = question(version, agent=asker("own-bot", owner=ana), minutes=50)
    done = question(version)
    approvals.decide(done.pk, by=ana, answer="deny", reason="x")
    keys = {name: str(each.pk) for name, each in locals().items() if isinstance(each, Approval)}
    assert shown(ana, mine="true", ordering="decide_by") == [keys["urgent"], keys["calm"]]
    assert shown(ana, state="pending", mine="false") == [keys["own"]]
    assert shown(ana) == [str(each.pk) for each in (done, own, calm, urgent)]
    assert shown(ana, state="denied") == [keys["done"]]
    assert shown(ana, agent="own-bot") == [keys["own"]]
    assert len(shown(ana, tool="payments.refund")) == 4
    assert shown(ana, tool="Payments.Refund@9.9.9") == []
    assert shown(ana, search="mara") == [keys["calm"]]
    for query in ({"order": "newest"}, {"ordering": "digest"}, {"state": "odd"}):
        assert api(ana).get(LIST, query).status_code == 400


def test_a_yes_is_taken_back_only_before_it_ran(version: ToolkitVersion, ana: User, ben: User) -> None:
    asked = question(version)
    assert post(ana, asked, "revoke", reason="x").status_code == 409
    post(ana, asked, "approve")
    assert post(ben, asked, "revoke").status_code == 422
    assert post(ben, asked, "revoke", reason="wrong customer").json()["state"] == "revoked"
    assert post(ben, asked, "revoke", reason="again").status_code == 409
    used = question(version)
    post(ana, used, "approve")
    Approval.objects.filter(pk=used.pk).update(state="consumed", ended_at=timezone.now(), sealed_arguments=None)
    assert post(ben, used, "revoke", reason="too late").status_code == 409


def test_the_arguments_are_gone_once_the_question_is_settled(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, {"amount": 1.0})
    assert post(ana, asked, "deny", reason="x").json()["arguments"] is None


def test_a_rule_that_names_a_group_asks_only_its_members(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, approvers="payments-approvers")
    refused = post(ana, asked, "approve")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_an_approver")
    member = approver("cleo", version, group="payments-approvers")
    assert post(member, asked, "approve").json()["state"] == "approved"


def test_the_time_left_is_told_as_it_was_set(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, minutes=10)
    told = api(ana).get(f"{LIST}{asked.pk}/").json()
    left = datetime.fromisoformat(told["decide_by"]) - timezone.now()
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)
