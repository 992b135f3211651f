"""Why can this agent call this tool, or why not: every check in order, by the judge's own words, to who may ask."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from execution.models import Breaker
from policy import agents, permissions
from policy.decision import Decision
from policy.models import Agent, Meter, Rule
from registry.models import Toolkit
from registry.publishing import withdraw
from tests.factories.registry import draft, published
from tests.policy.stage import BALANCE, REFUND, SMALL, live

pytestmark = pytest.mark.django_db

ADDRESS = "/permissions/why/"


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def olga(db: None) -> User:
    return User.objects.create_user("olga", is_staff=True)


@pytest.fixture
def bot(olga: User) -> Agent:
    published("Payments", "1.0.0", REFUND, BALANCE)
    return agents.create("support-bot", actor="user:polly", owner="olga", call=["Payments"]).agent


class Told:
    """What the page says: the verdict, and each step as a name and a text."""

    def __init__(self, answer: Any) -> None:
        self.status = answer.status_code
        page = answer.content.decode()
        self.page = unescape(page)
        found = re.search(r'class="access-verdict access-(\w+)".*?<p>(.*?)</p>', self.page, re.S)
        self.verdict, self.text = (found[1], found[2]) if found else ("", "")
        steps = page.partition('<ol class="access-steps">')[2].partition("</ol>")[0]
        self.steps = {
            name: (mark, " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split()))
            for mark, name, text in re.findall(
                r'<li class="access-(\w+)">.*?portal-name">([^<]+)</span>(.*?)</li>', steps, re.S
            )
        }


def ask(user: User, agent: str = "support-bot", tool: str = "Payments.Balance", input: str = "") -> Told:
    client = Client()
    client.force_login(user)
    question = {"agent": agent, "tool": tool}
    return Told(client.post(ADDRESS, question | {"input": input}) if input else client.get(ADDRESS, question))


def test_yes_names_every_check_in_order_with_who_gave_the_permission(root: User, bot: Agent) -> None:
    told = ask(root)
    assert (told.verdict, list(told.steps)) == ("yes", ["Agent", "Tool", "Permission", "Default", "Breaker"])
    assert "1 key in force" in told.steps["Agent"][1]
    assert "given directly" in told.steps["Permission"][1]
    assert "polly gave it." in told.steps["Permission"][1]
    assert all(mark == "yes" for mark, _ in told.steps.values())


def test_a_permission_through_a_group_and_one_on_everything_are_named(root: User, bot: Agent) -> None:
    crew = Group.objects.create(name="crew")
    toolkit = Toolkit.objects.get(name="Payments")
    permissions.put(toolkit, "call", crew, actor="shell")
    permissions.take(toolkit, "call", bot, by=root)
    bot.user.groups.add(crew)
    assert "through the group crew." in ask(root).steps["Permission"][1]
    agents.create("boss", actor="shell", call_all=True)
    assert "on every toolkit" in ask(root, "boss").steps["Permission"][1]


def test_no_says_where_it_stops_and_what_would_help(root: User, bot: Agent) -> None:
    permissions.take(Toolkit.objects.get(name="Payments"), "call", bot, by=root)
    told = ask(root)
    assert told.verdict == "no"
    mark, text = told.steps["Permission"]
    assert mark == "no"
    assert "the tool does not exist for it" in text
    assert "Ask the owner of Payments" in text
    agents.set_active(bot, False, actor="shell")
    assert ask(root).steps["Agent"][0] == "no"


def test_the_rule_that_decides_is_told_as_a_sentence_to_who_reads_policy(root: User, olga: User, bot: Agent) -> None:
    live({"name": "nobody reads", "tools": ["Payments.Balance"], "effect": "deny"})
    told = ask(root)
    assert (told.verdict, told.steps["Rule"][0]) == ("no", "no")
    assert "No agent may call Payments.Balance." in told.steps["Rule"][1]
    assert "This decides, by revision 1 of the policy." in told.steps["Rule"][1]
    owners = ask(olga)
    assert "Rule 'nobody reads' forbids" in owners.steps["Rule"][1]
    assert "No agent may call" not in owners.steps["Rule"][1]


def test_without_an_input_it_says_that_it_depends_and_with_one_what_is_decided(root: User, bot: Agent) -> None:
    live(SMALL)
    told = ask(root, tool="Payments.Refund")
    assert (told.verdict, told.steps["Policy"][0]) == ("maybe", "maybe")
    assert "input.amount <= 100.0" in told.steps["Policy"][1]
    assert ask(root, tool="Payments.Refund", input='{"amount": 5}').verdict == "yes"
    large = ask(root, tool="Payments.Refund", input='{"amount": 500}')
    assert large.verdict == "ask"
    assert "root" in large.steps["Approval"][1]
    assert "500" not in "".join(re.findall(r'href="[^"]*"', large.page))  # an input stands in no address


def test_nobody_who_could_approve_is_told_before_it_waits_in_vain(bot: Agent, olga: User) -> None:
    told = ask(olga, tool="Payments.Refund")
    assert (told.verdict, told.steps["Approval"][0]) == ("ask", "wait")
    assert "wait in vain" in told.steps["Approval"][1]


def test_limits_and_the_breaker_hold_up_what_is_allowed(root: User, bot: Agent) -> None:
    live({"name": "some", "tools": ["Payments.*"], "effect": "allow", "limits": {"perMinute": 2, "perDay": 9}})
    assert "2 a minute, 0 of them used; 9 a day, 0 of them used" in ask(root).steps["Limits"][1]
    Meter.objects.create(agent=bot, tool="Payments.Balance", window="minute", started_at=timezone.now(), count=2)
    told = ask(root)
    assert (told.verdict, told.steps["Limits"][0]) == ("wait", "wait")
    assert Meter.objects.get().count == 2  # a question is not counted
    tool = Toolkit.objects.get(name="Payments").versions.get().tools.get(name="Balance")
    soon = timezone.now() + timedelta(seconds=9)
    Breaker.objects.create(tool=tool)
    Breaker.objects.update(state="open", failures=9, opened_at=timezone.now(), retry_at=soon)
    assert ask(root).steps["Breaker"][0] == "wait"


def test_the_answer_is_the_judges_own(root: User, bot: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    from policy import evaluation

    asked: list[tuple[Any, ...]] = []
    real = evaluation.explained

    def overheard(*args: Any, **more: Any) -> Decision:
        asked.append(args)
        return real(*args, **more)

    monkeypatch.setattr(evaluation, "explained", overheard)
    ask(root)
    assert [(agent.name, tool.tool_id) for agent, tool, _ in asked] == [("support-bot", "Payments.Balance@1.0.0")]


def test_a_tool_that_cannot_be_called_says_so(root: User, bot: Agent) -> None:
    draft("Later")
    gone = published("Gone")
    withdraw(gone, by=root, reason="it was wrong")
    assert "all are draft" in ask(root, tool="Later.Add").text
    assert "all are withdrawn" in ask(root, tool="Gone.Add").text
    assert "another version" in ask(root, tool="Payments.Balance@9.9.9").text
    assert "no tool Nope.Add" in ask(root, tool="Nope.Add").text


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"agent": "nobody"}, "no agent of this name"),
        ({"tool": "not a tool\u202e"}, "A tool reads"),
        ({"tool": "Payments.Refund", "input": "{"}, "not JSON"),
        ({"tool": "Payments.Refund", "input": "[1]"}, "is an object"),
        ({"tool": "Payments.Refund", "input": '{"amount": "x"}'}, "would refuse this input"),
        ({"tool": "Payments.Refund", "input": '{"amount": 1, "<script>": 1}'}, "would refuse this input"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_the_reason(
    root: User, bot: Agent, question: dict[str, str], reason: str
) -> None:
    told = ask(root, **question)
    assert told.status == 422
    assert reason in told.page
    assert "\u202e" not in told.page.partition("<main")[2].partition('role="alert"')[2]


def test_owners_ask_about_their_own_agents_and_learn_of_no_tool_that_is_hidden_from_them(
    olga: User, bot: Agent
) -> None:
    published("Hidden")
    agents.create("other", actor="shell", call=["Payments"])
    assert ask(olga).verdict == "yes"
    assert ask(olga, "other").status == ask(olga, "no-such").status == 422
    hidden, missing = ask(olga, tool="Hidden.Add"), ask(olga, tool="Missing.Add")
    assert hidden.text.replace("Hidden", "X") == missing.text.replace("Missing", "X")


def test_who_may_not_ask_is_refused_and_who_audits_one_toolkit_asks_about_that_one(bot: Agent) -> None:
    ada = User.objects.create_user("ada", is_staff=True)
    assert ask(ada).status == 403
    permissions.put(Toolkit.objects.get(name="Payments"), "audit", ada, actor="shell")
    agents.create("other", actor="shell", call=[published("Hidden").toolkit.name])
    assert ask(ada).verdict == "yes"
    assert ask(ada, "other", "Hidden.Add").status == 422
    editor = User.objects.create_user("polly", is_staff=True)
    editor.user_permissions.add(Permission.objects.get(codename="edit_policy"))
    assert ask(editor, "other", "Hidden.Add").verdict == "yes"


def test_asking_writes_nothing(root: User, bot: Agent, django_assert_max_num_queries: Any) -> None:
    from audit.models import Event
    from execution.models import Call

    live(SMALL)
    before = Event.objects.count()
    ask(root, tool="Payments.Refund", input='{"amount": 500}')
    assert Event.objects.exclude(event="user.logged_in").count() == before
    assert not Call.objects.exists()
    assert Rule.objects.count() == 1
    client = Client()
    client.force_login(root)
    with django_assert_max_num_queries(40):
        client.get(ADDRESS, {"agent": "support-bot", "tool": "Payments.Balance"})
