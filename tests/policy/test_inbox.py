"""The inbox: one card shows all that a decision needs, and it renews itself while one looks."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from policy import approvals
from registry.models import ToolkitVersion
from tests.factories.registry import numbers
from tests.policy.asking import approver, asker, browser, cards, page, payments, question, state

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(db: None) -> ToolkitVersion:
    return payments()


@pytest.fixture
def ana(version: ToolkitVersion) -> User:
    return approver("ana", version)


@pytest.fixture
def ben(version: ToolkitVersion) -> User:
    return approver("ben", version)


def test_a_card_shows_all_that_a_decision_needs(version: ToolkitVersion, ana: User) -> None:
    olga = User.objects.create_user("olga")
    question(
        version,
        {"amount": 250.0, "note": "for 4711"},
        agent=asker("refund-bot", owner=olga),
        user_id="mara@example.com",
        rule="big refunds",
        reason="Refunds above 100 need a person",
        revision=0,
    )
    (told,) = cards(page(ana))
    for text in (
        "Payments.Refund@1.0.0",
        "High risk",
        "Refund a payment : Gives money back.",
        "agent refund-bot , for whom olga answers",
        "mara@example.com as the agent says",
        "changes data , has effects outside that cannot be taken back",
        "Refunds above 100 need a person rule “big refunds”, policy revision 0",
        "{ &quot;amount&quot;: 250.0, &quot;note&quot;: &quot;for 4711&quot; }",
        "decide by",
        "Approve",
        "Deny",
    ):
        assert text in told, (text, told)


def test_what_one_may_see_and_not_decide_is_greyed_and_says_why(version: ToolkitVersion, ana: User) -> None:
    question(version, agent=asker("own-bot", owner=ana))
    text = page(ana)
    (told,) = cards(text)
    assert "inbox-greyed" in text
    assert "You answer for agent own-bot; another person decides its calls." in told
    assert "Approve" not in told


def test_an_empty_inbox_says_what_will_appear_and_how_to_try_it(ana: User) -> None:
    text = page(ana)
    assert "Nothing waits for an answer" in text
    assert "POST /api/calls/" in text
    assert "Nothing that waits matches “refund”" in page(ana, q="refund")


def test_most_urgent_come_first_unless_the_newest_are_wanted(version: ToolkitVersion, ana: User) -> None:
    question(version, {"amount": 1.0}, minutes=5)
    question(version, {"amount": 2.0}, minutes=500)
    question(version, {"amount": 3.0}, minutes=50)

    def amounts(**query: Any) -> list[str]:
        return re.findall(r"&quot;amount&quot;: (\d)", page(ana, **query))

    assert amounts() == ["1", "3", "2"]
    assert amounts(order="newest") == ["3", "2", "1"]
    assert amounts(order="sideways") == ["1", "3", "2"]


def test_a_search_narrows_by_tool_agent_rule_and_user(version: ToolkitVersion, ana: User) -> None:
    question(version, {"amount": 1.0}, user_id="mara")
    question(version, {"amount": 2.0}, agent=asker("other-bot"), rule="odd rule")
    for words, amount in (("mara", "1"), ("OTHER", "2"), ("odd refund", "2"), ("refund@1.0 mara", "1")):
        assert re.findall(r"&quot;amount&quot;: (\d)", page(ana, q=words)) == [amount], words


def test_progress_towards_a_quorum_names_who_agreed(version: ToolkitVersion, ana: User, ben: User) -> None:
    asked = question(version, quorum=2)
    approvals.decide(asked.pk, by=ben, answer="approve", reason="agreed with finance")
    (told,) = cards(page(ana))
    assert "1 of 2 ben approved" in told
    assert ": agreed with finance" in told
    (mine,) = cards(page(ben))
    assert "You have answered; others are still asked." in mine


def test_the_last_decisions_on_like_calls_and_what_has_changed_since(ana: User, ben: User) -> None:
    old, new = ToolkitVersion.objects.get(), payments("1.1.0", input=numbers("amount", "fee"), risk="critical")
    denied, approved = question(old, {"amount": 250.0}), question(new, {"amount": 1.0, "fee": 2.0})
    approvals.decide(denied.pk, by=ben, answer="deny", reason="no ticket")
    approvals.decide(approved.pk, by=ben, answer="approve")
    asked = question(new, {"amount": 250.0})
    (told,) = cards(page(ana, f"/approvals/{asked.pk}/"))
    told = told.partition("Decisions on like calls")[2]
    assert re.search(r"Approved by ben .*?, same agent, other arguments", told)
    assert re.search(r"Denied by ben .*?, same agent, same arguments : “no ticket”", told)
    assert "That was version 1.0.0. Since then:" in told
    assert "risk was raised from high to critical" in told
    assert "fee" in told


def test_the_cards_renew_themselves_only_when_something_moved(version: ToolkitVersion, ana: User, ben: User) -> None:
    asked = question(version)
    client = browser(ana)

    def look(seen: str) -> Any:
        return client.get("/approvals/cards/", {"seen": seen, "known": str(asked.pk)})

    seen = re.findall(r'data-version="(\w+)"', page(ana))[0]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert look(seen).status_code == 204
    assert len(queries) <= 16
    another = question(version, {"amount": 7.0})
    moved = look(seen)
    assert moved.status_code == 200
    assert b"<html" not in moved.content
    assert len(cards(moved.content.decode())) == 2
    seen = re.findall(r'data-version="(\w+)"', moved.content.decode())[0]
    approvals.decide(asked.pk, by=ben, answer="deny", reason="no ticket")
    settled = look(seen).content.decode()
    (waiting, gone) = cards(settled)
    assert str(another.pk) in settled
    assert "Denied by ben" in gone
    assert "no ticket" in gone
    assert "Approve" in waiting
    assert "Approve" not in gone
    assert client.get("/approvals/cards/", {"known": "x,,1", "seen": "y"}).status_code == 200
    assert Client().get("/approvals/cards/").status_code == 401


def test_many_cards_cost_few_questions_to_the_database(version: ToolkitVersion, ana: User) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            page(ana)
        return len(queries)

    question(version, {"amount": 0.0})
    page(ana)
    one = cost()
    for number in range(1, 21):
        question(version, {"amount": float(number)})
    assert cost() - one <= 20 * 3


def test_more_than_fit_on_a_page_wait_their_turn(
    version: ToolkitVersion, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policy.views.inbox.MAX_CARDS", 2)
    for number in range(3):
        question(version, {"amount": float(number)}, minutes=number + 10)
    text = page(ana)
    assert len(cards(text)) == 2
    assert "More are waiting" in text
    assert 'data-waiting="3"' in text


def test_an_approval_has_a_page_before_and_after(version: ToolkitVersion, ana: User, ben: User) -> None:
    asked = question(version)
    before = page(ana, f"/approvals/{asked.pk}/")
    assert f'href="/calls/{asked.call}/"' in before
    assert asked.digest in before
    approvals.decide(asked.pk, by=ben, answer="approve", reason="ticket 7")
    after = cards(page(ana, f"/approvals/{asked.pk}/"))[0]
    assert "Approved by ben" in after
    assert "Take the approval back" in after
    auditor = approver("auditor", version, "audit")
    assert "Take the approval back" not in page(auditor, f"/approvals/{asked.pk}/")
    answer = browser(ana).post(f"/approvals/{asked.pk}/revoke/", {"reason": "wrong customer"}, follow=True)
    assert "was taken back and will not run." in answer.content.decode()
    assert state(asked) == "revoked"


def test_the_history_tells_what_i_answered_and_what_was_settled(version: ToolkitVersion, ana: User, ben: User) -> None:
    mine, others, waiting = question(version), question(version), question(version)
    approvals.decide(mine.pk, by=ana, answer="deny", reason="no ticket")
    approvals.decide(others.pk, by=ben, answer="approve", reason="ticket 7")
    own = page(ana, "/approvals/history/")
    assert "Denied by ana: no ticket" in " ".join(own.split())
    assert str(others.pk) not in own
    every = page(ana, "/approvals/history/", who="all")
    assert str(mine.pk) in every
    assert "Approved by ben: ticket 7" in " ".join(every.split())
    assert str(waiting.pk) not in every
    assert "have not answered anything yet" in page(approver("cleo", version), "/approvals/history/")


def test_a_long_history_is_paged(version: ToolkitVersion, ana: User) -> None:
    for number in range(31):
        asked = question(version, {"amount": float(number)})
        approvals.decide(asked.pk, by=ana, answer="deny", reason=f"reason {number}.")
    first, second = page(ana, "/approvals/history/"), page(ana, "/approvals/history/", page=2)
    assert "reason 30." in first
    assert "reason 0." not in first
    assert "reason 0." in second
    assert "Page 2 of 2" in second
    assert page(ana, "/approvals/history/", page="nonsense").count("reason 30.") == 1


def test_who_approves_need_not_be_staff(version: ToolkitVersion, ana: User) -> None:
    asked = question(version)
    client = Client()
    target = f"/approvals/{asked.pk}/"
    asks = client.get(target)
    assert asks.headers["Location"] == f"/login/?next={target}"
    said = {"username": "ana", "password": "correct horse battery"}
    assert client.post(f"/login/?next={target}", {**said, "password": "wrong"}).status_code == 200
    assert client.post(f"/login/?next={target}", said).headers["Location"] == target
    assert client.get("/").headers["Location"] == "/approvals/"
    assert "nav-sidebar" not in client.get("/approvals/").content.decode()
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/").headers["Location"] == "/login/"
    foreign = client.post("/login/?next=https://evil.example/", said)
    assert foreign.headers["Location"] == "/"
    staff = browser(User.objects.create_superuser("root"))
    assert staff.get("/").headers["Location"] == "/admin/"


def test_the_sidebar_tells_how_many_wait_for_me(version: ToolkitVersion) -> None:
    staff = approver("cleo", version)
    User.objects.filter(pk=staff.pk).update(is_staff=True)
    question(version, {"amount": 1.0})
    question(version, {"amount": 2.0})
    question(version, agent=asker("own-bot", owner=staff))
    text = browser(staff).get("/admin/").content.decode()
    link = text.partition('href="/approvals/"')[2].partition("</a>")[0]
    assert re.sub(r"<[^>]+>", " ", link.partition(">")[2]).split() == ["inbox", "Approvals", "2"]
