"""Several questions at once: under one heading, listed before they are decided, and at a cost that does not grow."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policy import approvals
from registry.models import ToolkitVersion
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


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def listed(user: User, *ids: Any, answer: str = "deny", **said: Any) -> Any:
    return browser(user).post("/approvals/several/", {"id": [str(id) for id in ids], "answer": answer, **said})


def test_before_several_are_decided_each_is_listed_and_nothing_has_happened(
    version: ToolkitVersion, ana: User, ben: User
) -> None:
    twins = [question(version, {"amount": 5.0}) for _ in range(2)]
    other = question(version, {"amount": 9.0}, agent=asker("other-bot"), user_id="mara", minutes=90)
    gone, own = question(version, {"amount": 7.0}), question(version, agent=asker("own-bot", owner=ana))
    approvals.decide(gone.pk, by=ben, answer="deny", reason="no ticket")
    joined = ",".join(str(each.pk) for each in twins)
    answer = listed(ana, joined, other.pk, gone.pk, own.pk, "nonsense", reason="<b>no</b>")
    text, form = plain(answer.content.decode()), answer.content.decode().partition('class="inbox-sure"')[2]
    assert "Deny 3 calls?" in text
    assert "× 2" in text
    assert "for agent other-bot, on behalf of mara" in text
    assert "&quot;amount&quot;: 9.0" in text
    assert "Payments.Refund@1.0.0 for agent support-bot is left out: It is denied." in text
    assert "own-bot is left out: You answer for agent own-bot" in text
    assert 'value="&lt;b&gt;no&lt;/b&gt;"' in form
    offered = re.findall(r'name="id" value="([^"]+)"', form)
    assert set(offered) == {str(each.pk) for each in (*twins, other)}
    assert [state(each) for each in (*twins, other, own)] == ["pending"] * 4
    part = browser(ana).post("/approvals/several/?part=1", {"id": joined, "answer": "approve"}).content.decode()
    assert "<html" not in part
    assert "Approve 2 calls?" in plain(part)
    sent = browser(ana).post(
        "/approvals/decide/", {"id": offered, "answer": "deny", "reason": "not today"}, follow=True
    )
    assert sent.redirect_chain == [("/approvals/", 302)]
    assert [state(each) for each in (*twins, other)] == ["denied"] * 3


def test_nothing_ticked_leads_back_and_too_much_at_once_is_refused(
    version: ToolkitVersion, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [question(version, {"amount": float(number)}) for number in range(3)]
    assert listed(ana).headers["Location"] == "/approvals/"
    assert listed(ana, asked[0].pk, answer="perhaps").headers["Location"] == "/approvals/"
    assert browser(ana).get("/approvals/several/").status_code == 405
    for module in ("deciding", "several"):
        monkeypatch.setattr(f"policy.views.{module}.MAX_AT_ONCE", 2)
    ids = [each.pk for each in asked]
    assert "At most 2 are decided at once; the others stay in the inbox." in plain(listed(ana, *ids).content.decode())
    json = {"Accept": "application/json"}
    told = browser(ana).post("/approvals/decide/", {"id": ids, "answer": "approve"}, headers=json)
    assert (told.status_code, told.json()["results"]) == (422, [])
    assert [state(each) for each in asked] == ["pending"] * 3


def test_the_inbox_is_grouped_by_tool_or_agent(version: ToolkitVersion, ana: User) -> None:
    for minutes, name in ((5, "first-bot"), (10, "second-bot"), (15, "first-bot")):
        question(version, {"amount": float(minutes)}, agent=asker(name), minutes=minutes)

    def order(group: str) -> list[tuple[str, str]]:
        text = page(ana, group=group)
        return re.findall(r'data-group="([^"]+)"|amount&quot;: (\d+)', text)

    assert order("agent") == [("first-bot", ""), ("", "5"), ("", "15"), ("second-bot", ""), ("", "10")]
    assert [name for name, _ in order("tool")] == ["Payments.Refund@1.0.0", "", "", ""]
    assert [name for name, _ in order("sideways")] == ["", "", ""]
    assert "Select all of first-bot" in page(ana, group="agent")
    (waiting,) = re.findall(r'data-group="second-bot".*?<span[^>]*>([^<]+)', page(ana, group="agent"), re.S)
    assert waiting == "1 waits"


def test_a_card_tells_both_clocks(version: ToolkitVersion, ana: User, ben: User) -> None:
    asked = question(version, minutes=30, run_within=600)
    text = page(ana)
    (told,) = cards(text)
    assert "Once approved it has 10m to start; after that the yes is void" in told
    (most, left) = re.findall(r'<progress class="inbox-fuse" max="(\d+)" value="(\d+)"', text)[0]
    assert int(most) == pytest.approx(1_800, abs=5)
    assert int(left) == pytest.approx(1_800, abs=60)
    approvals.decide(asked.pk, by=ben, answer="approve")
    assert "to run by" in cards(page(ana, f"/approvals/{asked.pk}/"))[0]


@pytest.mark.parametrize("verb", ["approve", "audit"])
def test_forty_cards_cost_what_five_do(version: ToolkitVersion, verb: str) -> None:
    client = browser(approver("someone", version, verb))
    settler = approver("settler", version)

    def cost(path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        return len(queries)

    def ask(first: int, last: int) -> None:
        for number in range(first, last):
            question(version, {"amount": float(number)}, agent=asker(f"bot-{number % 2}"))
            past = question(version, {"amount": float(number)}, agent=asker(f"bot-{number % 2}"))
            approvals.decide(past.pk, by=settler, answer="approve" if number % 2 else "deny", reason="a reason")

    ask(0, 5)
    paths = ("/approvals/?group=agent", "/approvals/history/?who=all")
    few = [(cost(path), cost(path))[1] for path in paths]  # the first look fills caches
    ask(5, 40)
    assert [cost(path) for path in paths] == few
    assert max(few) <= 32


def test_the_history_is_narrowed_by_the_answer_and_tells_how_long_it_took(
    version: ToolkitVersion, ana: User, ben: User
) -> None:
    yes, no, theirs = question(version), question(version), question(version)
    approvals.decide(yes.pk, by=ana, answer="approve", reason="ticket 7")
    approvals.decide(no.pk, by=ana, answer="deny", reason="no ticket")
    approvals.decide(theirs.pk, by=ben, answer="deny", reason="not mine")

    def told(**query: Any) -> set[str]:
        text = page(ana, "/approvals/history/", **query)
        return {word for word in ("ticket 7", "no ticket", "not mine") if word in text}

    assert told() == {"ticket 7", "no ticket"}
    assert told(answer="deny") == {"no ticket"}
    assert told(answer="approve", who="all") == {"ticket 7"}
    assert told(answer="deny", who="all") == {"no ticket", "not mine"}
    assert told(answer="deny", q="nobody") == set()
    assert "It waited 0 s." in plain(page(ana, "/approvals/history/", answer="deny"))
