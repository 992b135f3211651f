"""Rules put into a new order on a draft's page, and the picture of what that turns around."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from policy import replays, revisions
from policy.models import Replay, Revision
from policy.views.turns import HEIGHT, Turns
from tests.policy.stage import SMALL, Stage, draft, live, stage

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
DENY = {"name": "no payouts", "tools": ["Payments.Payout"], "effect": "deny"}
OPEN = {"name": "balances <b>are</b> open", "tools": ["Payments.Balance"], "effect": "allow"}


@pytest.fixture
def here() -> Stage:
    return stage()


@pytest.fixture
def editor(here: Stage) -> Client:
    return here.browser("editor")


def names(revision: Revision) -> list[str]:
    return [rule.name for rule in revisions.rules_of(revision)]


def order(client: Client, revision: Revision, *rules: str, digest: str = "", **more: str) -> Any:
    read = digest or revisions.digest_of(revisions.rules_of(revision))
    body = {"step": "order", "rule": list(rules), "digest": read, **more}
    return client.post(f"/policy/revisions/{revision.number}/arrange/", body, headers=HTMX)


def test_rules_are_put_into_a_new_order_and_the_difference_is_told_at_once(editor: Client) -> None:
    live(SMALL, DENY, OPEN)
    made = draft(SMALL, DENY, OPEN)
    first, second, third = names(made)
    answer = order(editor, made, third, first, second, moved=third)
    text = answer.content.decode()
    assert (answer.status_code, names(made)) == (200, [third, first, second])
    assert "<html" not in text
    assert "The rule “balances &lt;b&gt;are&lt;/b&gt; open” is now number 1." in text
    assert "Against the live revision 1: 1 rule differs" in " ".join(text.split())
    assert "moved" in text.partition('data-rule="balances')[2].partition("</li>")[0]
    up = {"step": "up", "rule": second}
    moved = editor.post(f"/policy/revisions/{made.number}/arrange/", up, headers=HTMX).content.decode()
    assert f"The rule “{second}” is moved up." in moved
    plain = editor.post(f"/policy/revisions/{made.number}/arrange/", up)
    assert plain.headers["Location"] == f"/policy/revisions/{made.number}/#rules"
    assert names(made) == [second, third, first]


def test_an_order_of_other_rules_than_those_there_are_changes_nothing(here: Stage, editor: Client) -> None:
    made = draft(SMALL, DENY)
    first, second = names(made)
    for rules in ((second,), (second, first, first), (second, first, "another"), ()):
        assert "this is how it is now" in order(editor, made, *rules).content.decode()
    assert "this is how it is now" in order(editor, made, second, first, digest="sha256:old").content.decode()
    assert order(here.browser("viewer"), made, second, first).status_code == 403
    assert names(made) == [first, second]
    revisions.activate(made, by=None)
    assert "never changes" in order(editor, made, second, first).content.decode()
    assert names(made) == [first, second]


def test_a_replay_draws_what_it_turns_and_tells_the_same_as_a_table(
    here: Stage, editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "send", lambda id: None)
    for amount in (50.0, 60.0, 500.0):
        here.called(here.refund, {"amount": amount}, "ask")
    here.called(here.balance, {}, "allow")
    made = draft(SMALL)
    asked = replays.ask(made.number, 10, by=here.editor)
    replays.work_off(asked.pk)
    result = Replay.objects.get(pk=asked.pk).result
    assert result is not None
    assert result["summary"]["turns"] == [
        {"was": "allow", "now": "allow", "count": 1},
        {"was": "ask", "now": "allow", "count": 2},
        {"was": "ask", "now": "ask", "count": 1},
    ]
    text = editor.get(f"/policy/replays/{asked.pk}/").content.decode()
    assert "2 of 4 calls would be decided otherwise." in text
    assert "<title>Asked before, allowed now: 2</title>" in text
    rows = re.findall(r"<tr>(.*?)</tr>", text.partition("turns-title")[2].partition("</table>")[0], re.S)
    assert [re.sub(r"<[^>]+>", " ", row).split() for row in rows[1:]] == [
        ["Allowed", "1", "0", "1"],
        ["Asked", "2", "1", "3"],
    ]
    assert f"/policy/revisions/{made.number}/activate/" in text
    assert "/activate/" not in here.browser("auditor").get(f"/policy/replays/{asked.pk}/").content.decode()
    del result["summary"]["turns"]  # as replays of earlier versions were kept
    Replay.objects.filter(pk=asked.pk).update(result=result)
    assert "turns-picture" not in editor.get(f"/policy/replays/{asked.pk}/").content.decode()


def test_the_picture_fills_its_height_and_shows_even_what_happened_once() -> None:
    turns = Turns(
        "key", [("allow", "allow", 99_998), ("allow", "deny", 1), ("deny", "undecidable", 1), ("odd", "ask", 5)]
    )
    drawn = turns.svg()
    bars = [
        (float(y), float(high))
        for y, high in re.findall(r'<rect x="\d+" y="([\d.]+)" width="14" height="([\d.]+)"', drawn)
    ]
    assert len(bars) == 5  # two before, three after; what is no effect is not counted
    assert min(high for _, high in bars) >= 8
    assert max(y + high for y, high in bars) == pytest.approx(HEIGHT, abs=0.2)
    assert turns.summary == "2 of 100,000 calls would be decided otherwise."
    assert drawn.count("turns-flow") - drawn.count("turns-flows") == 3
    assert not Turns("key", [])


def test_fifty_rules_cost_what_five_do(editor: Client) -> None:
    live(SMALL, DENY)

    def cost(count: int) -> int:
        made = draft(*({**OPEN, "name": f"rule {number}"} for number in range(count)))
        with CaptureQueriesContext(connection) as queries:
            assert editor.get(f"/policy/revisions/{made.number}/").status_code == 200
        return len(queries)

    cost(1)
    few = cost(5)
    assert cost(50) == few <= 22
