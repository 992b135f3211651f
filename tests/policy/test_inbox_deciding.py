"""Answers on the page: several at once, each decided by itself, and nobody overwrites anybody."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from policy import approvals
from policy.models import Approval
from registry.models import ToolkitVersion
from tests.policy.asking import approver, asker, browser, cards, page, payments, question, state

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


def decide(user: User, *asked: Approval | Any, **said: Any) -> Any:
    ids = [str(each.pk if isinstance(each, Approval) else each) for each in asked]
    return browser(user).post("/approvals/decide/", {"id": ids, **said}, headers=JSON)


def test_identical_calls_share_a_card_and_are_decided_together(version: ToolkitVersion, ana: User) -> None:
    same = [question(version, {"amount": 5.0}) for _ in range(3)]
    other = question(version, {"amount": 5}, minutes=90)
    for_another = question(version, {"amount": 5.0}, user_id="mara", minutes=95)
    first, *others = cards(page(ana))
    assert "× 3" in first
    assert "Approve all 3" in first
    assert len(others) == 2
    told = decide(ana, *same, answer="approve").json()["results"]
    assert [result["ok"] for result in told] == [True] * 3
    assert [state(each) for each in (*same, other, for_another)] == ["approved"] * 3 + ["pending"] * 2


def test_several_are_decided_each_by_itself_and_each_is_reported(version: ToolkitVersion, ana: User, ben: User) -> None:
    free, taken, own = question(version), question(version), question(version, agent=asker("own-bot", owner=ana))
    late, unknown = question(version, minutes=-1), uuid4()
    approvals.decide(taken.pk, by=ben, answer="deny", reason="no ticket")
    answer = decide(ana, free, taken, own, late, unknown, "not an id", answer="approve")
    told = [(result["ok"], result.get("status"), result.get("code")) for result in answer.json()["results"]]
    assert told == [
        (True, None, None),
        (False, 409, "already_decided"),
        (False, 403, "self_approval"),
        (False, 410, "expired"),
        (False, 404, "not_found"),
    ]
    assert "denied by ben" in answer.json()["results"][1]["message"]
    assert [state(each) for each in (free, taken, own)] == ["approved", "denied", "pending"]


def test_an_approval_of_others_is_reported_like_one_that_does_not_exist(version: ToolkitVersion) -> None:
    stranger = approver("stranger", version, "view", "call")
    asked, unknown = question(version), uuid4()
    told = decide(stranger, asked, unknown, answer="approve").json()["results"]
    assert {key: value for key, value in told[0].items() if key != "id"} == {
        key: value for key, value in told[1].items() if key != "id"
    }
    assert cards(page(stranger)) == []
    for path in ("/approvals/{}/", "/approvals/{}/card/"):
        answers = [browser(stranger).get(path.format(id), headers=JSON) for id in (asked.pk, unknown)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
    assert state(asked) == "pending"


def test_a_denial_without_a_reason_is_refused(version: ToolkitVersion, ana: User) -> None:
    asked = question(version)
    (result,) = decide(ana, asked, answer="deny", reason=" ").json()["results"]
    assert (result["ok"], result["code"]) == (False, "reason_missing")
    assert decide(ana, asked, answer="perhaps").status_code == 422
    assert decide(ana, answer="approve").status_code == 422
    assert decide(ana, asked, answer="deny", reason="x" * 2_001).status_code == 422
    assert state(asked) == "pending"
    assert decide(ana, asked, answer="deny", reason="no ticket").json()["results"][0]["ok"]
    assert state(asked) == "denied"


def test_a_get_never_decides_and_a_foreign_page_neither(version: ToolkitVersion, ana: User) -> None:
    asked = question(version)
    client = browser(ana)
    for path in ("/approvals/decide/", "/approvals/grant/", f"/approvals/{asked.pk}/revoke/"):
        assert client.get(path, {"id": str(asked.pk), "answer": "approve"}).status_code == 405
    client.get(f"/approvals/{asked.pk}/", {"answer": "approve"})
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(ana)
    said = {"id": str(asked.pk), "answer": "approve"}
    assert guarded.post("/approvals/decide/", said).status_code == 403
    assert guarded.post("/approvals/decide/", said, headers={"Origin": "https://evil.example"}).status_code == 403
    assert state(asked) == "pending"


def test_a_form_without_the_script_leads_back_to_a_page_that_tells(version: ToolkitVersion, ana: User) -> None:
    asked = question(version)
    answer = browser(ana).post("/approvals/decide/", {"id": str(asked.pk), "answer": "approve"}, follow=True)
    assert answer.redirect_chain == [(f"/approvals/{asked.pk}/", 302)]
    assert "Payments.Refund@1.0.0 is approved and runs." in answer.content.decode()
