"""The inbox: one card shows all that a decision needs, several are decided at once, and nobody overwrites anybody."""

import re
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from policy import approvals
from policy.models import Approval, Vote
from policy.views.exactly import exact
from policy.views.narrowing import narrow
from registry.models import ToolkitVersion
from tests.factories.registry import numbers
from tests.policy.asking import REFUND, approver, asker, browser, payments, question

pytestmark = pytest.mark.django_db

JSON = {"Accept": "application/json"}
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    '"><svg onload=alert(1)>',
    "[link](javascript:alert(1))",
    "{{ settings.SECRET_KEY }}",
)


@pytest.fixture
def version(db: None) -> ToolkitVersion:
    return payments()


@pytest.fixture
def ana(version: ToolkitVersion) -> User:
    return approver("ana", version)


@pytest.fixture
def ben(version: ToolkitVersion) -> User:
    return approver("ben", version)


class Markup(HTMLParser):
    """Whatever in a page could run or style: none of it comes from us, all of it would come from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = []
        self._is_ours = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._is_ours = self._is_ours or given.get("id") == "content-main"
        if (tag == "script" and not given.get("src")) or tag in ("svg", "img", "iframe", "object", "b"):
            self.running.append(tag)
        for name, value in attrs:
            is_script = (value or "").strip().lower().startswith("javascript:") and name in ("href", "src", "action")
            if name.startswith("on") or is_script or (self._is_ours and name == "style"):
                self.running.append(f"{tag} {name}")


def page(user: User, path: str = "/approvals/", **query: Any) -> str:
    answer = browser(user).get(path, query)
    assert answer.status_code == 200, answer
    return answer.content.decode()


def cards(text: str) -> list[str]:
    """The cards of a page, as text without markup and with single spaces."""
    found = re.findall(r"<article.*?</article>", text, re.S)
    return [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in found]


def decide(user: User, *asked: Approval | Any, **said: Any) -> Any:
    ids = [str(each.pk if isinstance(each, Approval) else each) for each in asked]
    return browser(user).post("/approvals/decide/", {"id": ids, **said}, headers=JSON)


def state(approval: Approval) -> str:
    return str(Approval.objects.get(pk=approval.pk).state)


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


def test_nothing_is_framed_and_nothing_in_a_card_can_run(version: ToolkitVersion, ana: User, ben: User) -> None:
    for place, payload in enumerate(HOSTILE):
        asked = question(
            version, {"amount": float(place), "note": payload, payload: payload}, user_id=payload, reason=payload
        )
        Vote.objects.create(approval=asked, person=ben, answer="approve", reason=payload)
    named = question(version, {"amount": 9.0}, rule="<b onclick=x>rule</b>", quorum=2)
    client = browser(ana)
    for path in ("/approvals/", f"/approvals/{named.pk}/", f"/approvals/{asked.pk}/", "/approvals/history/?who=all"):
        answer = client.get(path)
        assert answer["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
        assert "'unsafe-inline'" not in answer["Content-Security-Policy"].partition("script-src")[2].partition(";")[0]
        found = Markup()
        found.feed(answer.content.decode())
        assert found.running == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in client.get("/approvals/").content.decode()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pay \u202ecod.exe", "⟦U+202E⟧"),
        ("zero\u200bwidth", "⟦U+200B⟧"),
        ("no\u00a0break", "⟦U+00A0⟧"),
        ("wide\u3000space", "⟦U+3000⟧"),
        ("tag\U000e0041", "⟦U+E0041⟧"),
        ("filler\u3164", "⟦U+3164⟧"),
        ("selector\ufe0f", "⟦U+FE0F⟧"),
        ("del\x7f", "⟦U+007F⟧"),
        ("line\u2028", "⟦U+2028⟧"),
        ("lone\ud800", "⟦U+D800⟧"),
        ("private\ue000", "⟦U+E000⟧"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, named: str) -> None:
    shown = exact({"note": text}, 1_000)
    assert f"<mark>{named}</mark>" in shown.html
    assert shown.hidden == 1
    shown.html.encode()


def test_what_can_be_seen_stays_and_look_alikes_are_named() -> None:
    shown = exact({"b": "Zürich, naïve, 東京, παράδειγμα", "a": "bell\x07", "c": "\u0440\u0430ypal ⟦U+202E⟧"}, 1_000)
    assert shown.hidden == 0
    assert "<mark>" not in shown.html
    assert "Zürich, naïve, 東京, παράδειγμα" in shown.html
    assert "\\u0007" in shown.html
    assert shown.html.index("&quot;a&quot;") < shown.html.index("&quot;b&quot;")
    assert shown.mixed == ("\u0440\u0430ypal",)


def test_long_arguments_are_cut_on_a_card_and_whole_on_their_own_page(version: ToolkitVersion, ana: User) -> None:
    asked = question(version, {"amount": 1.0, "note": "x" * 20_000 + "END"})
    assert "Only a part is shown" in page(ana)
    assert "END" not in page(ana)
    alone = page(ana, f"/approvals/{asked.pk}/")
    assert "END" in alone
    assert "Only a part is shown" not in alone


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
    answer = browser(ana).post(f"/approvals/{asked.pk}/revoke/", {"reason": "wrong customer"}, headers=JSON)
    assert answer.json()["results"][0]["ok"]
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


def test_a_grant_starts_from_these_very_arguments() -> None:
    schema = REFUND["input"]
    assert isinstance(schema, dict)
    assert narrow({"amount": 2.5}, schema) == "input.amount == 2.5"
    assert narrow({"amount": 2, "note": 'a "b"'}, schema) == (
        'input.amount == 2 && has(input.note) && input.note == "a \\"b\\""'
    )
    assert narrow({"odd": 1}, schema) == ""
    assert narrow(None, schema) == ""
    assert "a\u202e" not in narrow({"amount": 1.0, "note": "a\u202e"}, schema)
