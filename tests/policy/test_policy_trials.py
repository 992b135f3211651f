"""The pages on which policy is tried: one question, many recorded calls, and a shadow beside the live rules."""

import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.urls import reverse

from execution.models import Call
from policy import replays, revisions
from policy.models import Difference, Replay, Revision
from policy.views import trials
from tests.policy.stage import SMALL, Stage, draft, live, stage

pytestmark = pytest.mark.django_db

DENY = {"name": "no payouts", "tools": ["Payments.Payout"], "effect": "deny"}


@pytest.fixture
def here() -> Stage:
    return stage()


@pytest.fixture
def editor(here: Stage) -> Client:
    return here.browser("editor")


def page(client: Client, path: str, status: int = 200, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == status, answer.content[-2000:]
    return answer.content.decode()


def said(client: Client, path: str, body: dict[str, Any] | None = None) -> str:
    """Posts, follows, and tells what the next page says above all else."""
    answer = client.post(path, body or {}, follow=True)
    assert answer.status_code == 200, answer.content[-2000:]
    return " ".join(str(message) for message in answer.context["messages"])


def at(name: str, *args: Any) -> str:
    return reverse(name, args=args)


def names(revision: Revision) -> list[str]:
    return [rule.name for rule in revisions.rules_of(revision)]


def ask(**more: str) -> dict[str, str]:
    return {"agent": "support-bot", "tool_id": "Payments.Refund", "input": '{"amount": 5.0}', **more}


def test_a_question_is_answered_with_every_check(editor: Client) -> None:
    live(SMALL | {"limits": {"perMinute": 3, "atOnce": 2}})
    text = editor.post(at("policy-evaluate"), ask()).content.decode()
    assert "allows agent support-bot to call Payments.Refund@1.0.0" in text
    assert "May call toolkit Payments" in text
    assert "3 a minute, 2 at once" in text
    other = editor.post(at("policy-evaluate"), ask(revision="0")).content.decode()
    assert "1 person who may approve on the toolkit" in other
    assert Call.objects.count() == 0


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"agent": "nobody"}, "There is no agent of this name."),
        ({"tool_id": "Payments.Nothing"}, "There is no tool of this name that can be called."),
        ({"input": "{"}, "This is not JSON"),
        ({"input": "[]"}, "The input is an object"),
        ({"input": '{"amount": "5"}'}, "amount: Must be a number"),
        ({"revision": "99"}, "not one of the available choices"),
    ],
)
def test_a_question_that_cannot_be_asked_says_what_is_wrong(
    editor: Client, more: dict[str, str], sentence: str
) -> None:
    answer = editor.post(at("policy-evaluate"), ask(**more))
    assert answer.status_code == 422
    assert sentence in answer.content.decode()


@pytest.fixture
def unsent(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    sent: list[UUID] = []
    monkeypatch.setattr(replays, "send", sent.append)
    return sent


def test_a_replay_is_asked_for_followed_and_read(here: Stage, editor: Client, unsent: list[UUID]) -> None:
    call = here.called(here.refund, {"amount": 5.0}, "ask")
    masked = here.called(here.refund, {"amount": 500.0, "pin": "4711"}, "allow")
    pins = {"name": "pins", "when": "has(input.pin) && input.pin == '1'", "effect": "deny"}
    number = draft(SMALL, pins).number
    answer = editor.post(at("policy-replays"), {"revision": number, "last": 50})
    asked = Replay.objects.get()
    assert answer["Location"] == at("policy-replay", asked.pk)
    waiting = page(editor, at("policy-replay", asked.pk))
    assert "Waiting for a worker" in waiting
    assert f'hx-get="{at("policy-replay-story", asked.pk)}"' in waiting
    Replay.objects.filter(pk=asked.pk).update(state="running", evaluated=30, total=50, lease_until="2100-01-01T00:00Z")
    running = page(editor, at("policy-replay-story", asked.pk))
    assert 'max="50" value="30"' in running
    Replay.objects.filter(pk=asked.pk).update(lease_until="2020-01-01T00:00Z")
    assert "The worker was lost at 30 of 50 calls" in page(editor, at("policy-replay-story", asked.pk))
    Replay.objects.filter(pk=asked.pk).update(state="waiting", lease_until=None)
    replays.work_off(asked.pk)
    done = page(editor, at("policy-replay-story", asked.pk))
    assert "hx-get" not in done
    assert "Newly allowed: 1" in done
    assert f"/calls/{call}/" in done
    assert re.search(r"<span>(Asked|Denied) <span class=\"policy-soft policy-by\">by default</span></span>", done)
    assert 'href="#newly_denied"' not in done  # there is no such list
    assert "Undecidable: 1" in done
    assert f"/calls/{masked}/" in done
    assert "which is masked in the record" in done


def test_a_replay_that_failed_says_why(here: Stage, editor: Client) -> None:
    row = Replay.objects.create(
        revision=0, last=1, requested_by=here.editor, state="failed", error="It broke.", finished_at="2026-01-01T00:00Z"
    )
    assert "It broke." in page(editor, at("policy-replay", row.pk))


def test_a_replay_without_calls_says_so(here: Stage, editor: Client, unsent: list[UUID]) -> None:
    editor.post(at("policy-replays"), {"revision": "0", "last": 5})
    replays.work_off(Replay.objects.get().pk)
    assert "nothing to replay" in page(editor, at("policy-replay", Replay.objects.get().pk))


@pytest.mark.parametrize(
    "body", [{"revision": "0", "last": "0"}, {"revision": "0", "last": "100001"}, {"revision": "7"}, {}]
)
def test_a_replay_form_is_bounded(editor: Client, body: dict[str, str]) -> None:
    assert editor.post(at("policy-replays"), body).status_code == 422
    assert not Replay.objects.exists()


def test_one_replay_too_many_is_told_on_the_form(editor: Client, unsent: list[UUID]) -> None:
    for _ in range(replays.MAX_OPEN):
        editor.post(at("policy-replays"), {"revision": "0", "last": "1"})
    answer = editor.post(at("policy-replays"), {"revision": "0", "last": "1"})
    assert "under way already" in answer.content.decode()


def test_the_story_of_a_replay_sends_who_was_logged_out_to_the_login(here: Stage) -> None:
    row = Replay.objects.create(revision=0, last=1, requested_by=here.editor)
    answer = Client().get(at("policy-replay-story", row.pk))
    assert (answer.status_code, answer["HX-Refresh"]) == (204, "true")


def test_the_differences_of_a_shadow_are_shown_and_narrowed(here: Stage) -> None:
    viewer, revision = here.browser("viewer"), draft(SMALL)
    assert "No revision is a shadow now" in page(viewer, at("policy-shadow"))
    revisions.set_shadow(revision, by=None)
    assert viewer.get(at("policy-shadow"))["Location"] == at("policy-differences", revision.number)
    assert "No call has been decided otherwise so far" in page(viewer, at("policy-differences", revision.number))
    for effect, reason in (("deny", "forbidden thing"), ("allow", "allowed thing")):
        Difference.objects.create(
            call=uuid4(),
            agent=here.agent.agent,
            tool_ref="Payments.Refund@1.0.0",
            live_revision=0,
            live_effect="ask",
            live_rule="default",
            shadow_revision=revision.number,
            shadow_effect=effect,
            shadow_rule="x",
            shadow_reason=reason,
        )
    every = page(viewer, at("policy-differences", revision.number))
    assert "forbidden thing" in every
    assert "allowed thing" in every
    narrowed = page(viewer, at("policy-differences", revision.number), turn="ask-deny", agent="support-bot")
    assert "forbidden thing" in narrowed
    assert "allowed thing" not in narrowed
    assert "Nothing matches" in page(viewer, at("policy-differences", revision.number), agent="nobody")


def test_the_next_page_of_differences_keeps_what_was_chosen(here: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "PER_PAGE", 1)
    number = draft(SMALL).number
    for effect in ("deny", "deny", "allow"):
        Difference.objects.create(
            call=uuid4(),
            agent=here.agent.agent,
            tool_ref="Payments.Refund@1.0.0",
            live_revision=0,
            live_effect="ask",
            live_rule="default",
            shadow_revision=number,
            shadow_effect=effect,
            shadow_rule="x",
            shadow_reason="y",
        )
    text = page(here.browser("viewer"), at("policy-differences", number), turn="ask-deny")
    assert "Page 1 of 2" in text
    assert 'href="?page=2&amp;agent=&amp;turn=ask-deny"' in text
