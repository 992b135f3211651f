"""Access requests on a page of the portal: who may give the permission decides, with the writer that the API uses."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policy import accessrequests, agents
from policy.models import AccessRequest, Agent
from registry import access
from registry.models import Toolkit
from tests.policy.asking import browser

pytestmark = pytest.mark.django_db

PATH = "/access-requests/"


@pytest.fixture
def owner(toolkit: Toolkit) -> User:
    """Answers for the toolkit; need not be staff."""
    someone = User.objects.create_user("olga")
    Toolkit.objects.filter(pk=toolkit.pk).update(owner=someone)
    return someone


def bot(name: str, owner: User | None = None) -> Agent:
    made = agents.create(name, actor="shell").agent
    Agent.objects.filter(pk=made.pk).update(owner=owner)
    return Agent.objects.select_related("user", "owner").get(pk=made.pk)


def asked(agent: Agent, toolkit: Toolkit, reason: str = "to add <b>numbers</b>\u202e") -> AccessRequest:
    return accessrequests.ask(agent, Toolkit.objects.get(pk=toolkit.pk), reason=reason, by=agent.user)


def said(user: User, request: AccessRequest, **body: Any) -> str:
    answer = browser(user).post(f"{PATH}{request.pk}/decide/", body, follow=True)
    assert answer.status_code == 200, answer
    return " ".join(str(message) for message in answer.context["messages"])


def test_the_owner_grants_or_refuses_on_the_page(toolkit: Toolkit, owner: User) -> None:
    first, second = bot("first-bot"), bot("second-bot")
    one, two = asked(first, toolkit), asked(second, toolkit)
    text = browser(owner).get(PATH).content.decode()
    assert "first-bot asks to call Calculator" in text
    assert "<dd>Agent first-bot;" in text
    assert "&lt;b&gt;numbers&lt;/b&gt;" in text
    assert "\u202e" not in text
    assert said(owner, two, answer="refuse") == "A refusal says why."
    assert said(owner, two, answer="perhaps") == "Say whether it is granted or refused."
    assert said(owner, two, answer="refuse", note="ask the data team") == "The request of second-bot is refused."
    assert said(owner, one, answer="grant") == "The request of first-bot is granted."
    assert said(owner, one, answer="grant") == "olga has already granted this request."
    assert access.may(User.objects.get(pk=first.user_id), "call", toolkit)
    assert not access.may(User.objects.get(pk=second.user_id), "call", toolkit)
    settled = browser(owner).get(PATH, {"state": "refused"}).content.decode()
    assert "ask the data team" in settled
    assert "first-bot" not in settled


def test_others_read_what_concerns_them_and_decide_nothing(toolkit: Toolkit, owner: User, person: User) -> None:
    own, others = asked(bot("own-bot", person), toolkit), asked(bot("other-bot"), toolkit)
    text = browser(person).get(PATH).content.decode()
    assert "own-bot asks" in text
    assert "other-bot" not in text
    assert "Grant" not in text.partition("<article")[2].partition("</article>")[0]
    assert "Calculator's owner or publishers decide." in text.replace("&#x27;", "'")
    assert "is given by its owner" in said(person, own, answer="grant")
    for path in (f"{PATH}{others.pk}/", f"{PATH}99/"):
        assert browser(person).get(path).status_code == 404
    assert browser(person).post(f"{PATH}{others.pk}/decide/", {"answer": "grant"}).status_code == 404
    mine = asked(bot("owners-bot", owner), toolkit)
    assert "another person grants it" in browser(owner).get(f"{PATH}{mine.pk}/").content.decode()
    assert "Nobody gives a permission to an agent of their own" in said(owner, mine, answer="grant")
    assert set(AccessRequest.objects.values_list("state", flat=True)) == {"pending"}
    assert browser(owner).get(f"{PATH}{mine.pk}/decide/").status_code == 405


def test_an_empty_list_says_how_requests_are_made(person: User) -> None:
    assert "POST /api/access-requests/" in browser(person).get(PATH).content.decode()
    assert "No such request" in browser(person).get(PATH, {"state": "granted"}).content.decode()


def test_fifty_requests_cost_what_five_do(toolkit: Toolkit, owner: User) -> None:
    client = browser(owner)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(PATH).status_code == 200
        return len(queries)

    def ask(first: int, last: int) -> None:
        for number in range(first, last):
            asked(bot(f"bot-{number}", owner if number % 2 else None), toolkit)

    ask(0, 5)
    few = (cost(), cost())[1]  # the first look fills caches
    ask(5, 30)
    assert cost() == few <= 22
