"""How approvers answer: one's own numbers for everyone, each approver's for who audits them, and no further."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from policy.models import Vote
from tests.policy.asking import approver, browser, payments, question

if TYPE_CHECKING:
    from registry.models import ToolkitVersion

pytestmark = pytest.mark.django_db

PATH = "/approvals/statistics/"
Read = Callable[..., str]


@pytest.fixture
def version(db: None) -> ToolkitVersion:
    return payments()


def answered(version: ToolkitVersion, by: User, answer: str, *, minutes: float, days: float = 0) -> None:
    """A question of so many days ago that this person answered after so many minutes."""
    then = timezone.now() - timedelta(days=days, minutes=minutes)
    asked = question(version, created_at=then)
    at = then + timedelta(minutes=minutes)
    Vote.objects.create(approval=asked, person=by, answer=answer, reason="a reason", at=at)


def told(user: User, **query: str) -> str:
    answer = browser(user).get(PATH, query)
    assert answer.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_an_approver_sees_how_many_how_fast_and_how_often_no(version: ToolkitVersion) -> None:
    ana, ben = approver("ana", version), approver("ben", version)
    for minutes in (2, 3, 90):
        answered(version, ana, "approve", minutes=minutes)
    answered(version, ana, "deny", minutes=4)
    answered(version, ana, "deny", minutes=1, days=40)
    answered(version, ben, "deny", minutes=1)
    text = told(ana)
    assert "You answered 4 1 denied, 25.0 %" in text
    assert "Half of them within 4 min 95 of 100 within 1.5 h" in text
    assert "4 in 30 days, 25.0 % of them denials." in text
    assert "30 min to 2 h 1 0" in text  # the table beside the picture: one yes, no denial
    assert "Waiting for you 6" not in text  # what one has answered waits for others
    assert "5 in 90 days, 40.0 % of them denials." in told(ana, days="90")
    assert "4 in 30 days" in told(ana, days="1000")
    assert "ben" not in text
    assert "Every approver" not in text


def test_who_audits_sees_every_approver_of_what_they_audit(version: ToolkitVersion) -> None:
    from tests.factories.registry import published

    ana, ben = approver("ana", version), approver("ben", version)
    other = published("Mail", "1.0.0", {"name": "Refund", "risk": "high"})
    cleo = approver("cleo", other)
    for _ in range(3):
        answered(version, ana, "approve", minutes=2)
    answered(version, ben, "deny", minutes=10)
    answered(other, cleo, "approve", minutes=1)
    text = told(approver("auditor", version, "audit"))
    assert "You have answered nothing in this time" in text
    assert "ana 3 0 (0 %) 2 min 2 min" in text
    assert "ben 1 1 (100 %) 10 min 10 min" in text
    assert "cleo" not in text
    assert "cleo 1 0 (0 %)" in told(User.objects.create_superuser("root"))


def test_fifty_answers_cost_what_five_do(version: ToolkitVersion) -> None:
    ana = approver("ana", version, "approve", "audit")

    client = browser(ana)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(PATH).status_code == 200
        return len(queries)

    for _ in range(5):
        answered(version, ana, "approve", minutes=1)
    few = (cost(), cost())[1]  # the first look fills caches
    for number in range(45):
        answered(version, ana, "approve", minutes=number)
    assert cost() == few <= 24
