"""The pages about policy: people see the live rules, write drafts, compare, activate, and try before."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audit.models import Event
from execution.models import Call
from policy import policyfile, revisions
from policy.handedin import from_text
from policy.models import Difference, Replay, Revision
from policy.views.example import EXAMPLE
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


# Reading


def test_without_a_policy_the_page_explains_the_defaults_and_offers_to_write_one(editor: Client) -> None:
    text = page(editor, at("policy"))
    assert "There is no policy yet" in text
    assert "waits until two people agree" in text
    assert "Write the first policy" in text
    assert "Write the first policy" in page(editor, at("policy-new"))


def test_the_example_that_one_starts_from_can_be_saved(here: Stage) -> None:
    assert [rule.name for rule in from_text(EXAMPLE).rules]


def test_the_live_rules_are_told_in_order_as_sentences(here: Stage) -> None:
    live(SMALL, DENY)
    text = page(here.browser("viewer"), at("policy"))
    assert text.index("small refunds go through") < text.index("no payouts")
    assert re.search(
        r"Agent support-bot may call Payments.Refund when <code[^>]*>input.amount &lt;= 100.0</code>", text
    )
    assert "No agent may call Payments.Payout." in text
    assert "Where no rule matches, the risk decides" in text
    assert "Change the policy" not in text


def test_markup_and_invisible_characters_in_a_rule_stay_text(editor: Client) -> None:
    revision = draft(
        {"name": "<script>alert(1)</script>", "when": "agent.name != '<b>'", "effect": "allow"}, note="\u202egnp"
    )
    for path in (
        at("subject-policy", revision.number),
        at("policy-difference", revision.number),
        at("policy-revisions"),
    ):
        text = page(editor, path)
        assert "<script>alert(1)" not in text
        assert "\u202e" not in text
        assert "<b>" not in text


def test_the_list_of_revisions_tells_state_author_and_note(editor: Client) -> None:
    live(SMALL)
    revisions.set_shadow(draft(DENY, note="stop payouts"), by=None)
    text = page(editor, at("policy-revisions"))
    assert [word for word in ("Live", "Draft", "Shadow", "stop payouts", "at the shell") if word not in text] == []
    revisions.set_shadow(None, by=None)
    for revision in Revision.objects.all():
        assert at("subject-policy", revision.number) in text


def test_one_revision_offers_the_steps_that_it_allows(here: Stage, editor: Client) -> None:
    first, second = live(SMALL), draft(DENY, SMALL)
    third = draft()
    revisions.activate(third, by=None)
    retired, open_draft, now = (page(editor, at("subject-policy", row.number)) for row in (first, second, third))
    assert "Roll back to it" in retired
    assert "Edit" not in retired
    assert [
        word for word in ("Activate…", "Edit", "Throw away", "Set as shadow", "Delete “") if word not in open_draft
    ] == []
    assert "Set as shadow" not in now
    for_readers = page(here.browser("viewer"), at("subject-policy", second.number))
    assert [word for word in ("Activate…", "Throw away", "Set as shadow", "Delete “") if word in for_readers] == []


def test_a_draft_tells_what_may_be_a_slip(editor: Client) -> None:
    revision = draft(DENY | {"agents": ["nobody-yet"]})
    assert "there is no agent nobody-yet yet" in page(editor, at("subject-policy", revision.number))


def test_the_audit_trail_links_to_a_revision_s_page() -> None:
    from audit.admin.event import page_of

    assert page_of("policy", "3") == "/policy/revisions/3/"


def test_the_difference_is_told_in_sentences_and_side_by_side(editor: Client) -> None:
    first = live(SMALL)
    second = draft(SMALL | {"when": "input.amount <= 50.0"}, DENY)
    text = page(editor, at("policy-difference", second.number))
    assert "changed" in text
    assert "input.amount &lt;= 50.0" in text
    assert re.search(r'<td class="old">\s*when: input.amount &lt;= 100.0</td>', text)
    assert "No rule differs" in page(editor, at("policy-difference", second.number), to=str(second.number))
    assert "The defaults" in page(editor, at("policy-difference", first.number), to="0")
    for to in ("99", "x", "9" * 40):
        page(editor, at("policy-difference", first.number), 404, to=to)


def test_an_export_reads_back_equal(editor: Client) -> None:
    revision = draft(SMALL, DENY)
    answer = editor.get(at("policy-export", revision.number))
    assert policyfile.read(answer.content.decode()) == revisions.rules_of(revision)
    assert "attachment" in answer["Content-Disposition"]


# Writing


def test_a_draft_is_written_and_opens(editor: Client) -> None:
    told = said(editor, at("policy-new"), {"text": EXAMPLE, "note": "the first"})
    assert "saved as a draft" in told
    made = Revision.objects.get()
    assert (made.state, made.note, made.created_by) == ("draft", "the first", made.created_by)
    assert made.created_by is not None
    assert made.created_by.username == "editor"
    assert len(names(made)) == 3


def test_a_new_draft_starts_with_the_live_rules_or_those_of_another_revision(editor: Client) -> None:
    first = live(SMALL)
    live(DENY)
    assert "no payouts" in page(editor, at("policy-new"))
    started = page(editor, at("policy-new"), **{"from": first.number})
    assert "small refunds go through" in started
    said(editor, f"{at('policy-new')}?from={first.number}", {"text": policyfile.written(revisions.rules_of(first))})
    made = Revision.objects.latest("number")
    assert (made.based_on, names(made)) == (first.number, [SMALL["name"]])
    said(editor, at("policy-new"), {"text": policyfile.written([])})
    assert names(Revision.objects.latest("number")) == []


@pytest.mark.parametrize("is_new", [True, False])
def test_a_text_with_errors_is_shown_again_with_their_lines_and_nothing_is_saved(editor: Client, is_new: bool) -> None:
    revision = draft(SMALL)
    text = policyfile.written(revisions.rules_of(revision))
    bad = text.replace("input.amount <= 100.0", "input.amont <= 100.0")
    line = next(number for number, part in enumerate(bad.splitlines(), 1) if "amont" in part)
    path = at("policy-new") if is_new else at("policy-edit", revision.number)
    digest = revisions.digest_of(revisions.rules_of(revision))
    answer = editor.post(path, {"text": bad, "digest": digest})
    shown = answer.content.decode()
    assert answer.status_code == 422
    assert f'data-line="{line}"' in shown
    assert "spec.rules[0].when" in shown
    assert "input.amont &lt;= 100.0" in shown
    assert Revision.objects.count() == 1
    assert revisions.rules_of(revision)[0].when == "input.amount <= 100.0"
    for wrong in ("", "a: [", "kind: Policy", "\0"):
        assert editor.post(path, {"text": wrong, "digest": digest}).status_code == 422


def test_a_draft_is_edited_as_text(editor: Client) -> None:
    revision = draft(SMALL)
    form = page(editor, at("policy-edit", revision.number))
    read = re.search(r'name="digest" value="([^"]+)"', form)
    assert read is not None
    text = policyfile.written(revisions.rules_of(draft(DENY)))
    assert said(editor, at("policy-edit", revision.number), {"text": text, "digest": read[1]}) == "The draft is saved."
    assert names(revision) == ["no payouts"]


def test_an_editor_does_not_overwrite_what_another_saved_in_the_meantime(editor: Client) -> None:
    revision = draft(SMALL)
    read = revisions.digest_of(revisions.rules_of(revision))
    revisions.replace_rules(revision, revisions.rules_of(draft(DENY)), by=None)
    answer = editor.post(at("policy-edit", revision.number), {"text": policyfile.written([]), "digest": read})
    assert answer.status_code == 422
    assert "Someone else has changed this draft" in answer.content.decode()
    assert names(revision) == ["no payouts"]


def test_rules_are_moved_and_taken_out_by_name(editor: Client) -> None:
    third = {"name": "third", "effect": "allow"}
    revision = draft(SMALL, DENY, third)
    path = at("policy-arrange", revision.number)
    said(editor, path, {"rule": "third", "step": "up"})
    assert names(revision) == [SMALL["name"], "third", "no payouts"]
    said(editor, path, {"rule": SMALL["name"], "step": "down"})
    assert names(revision) == ["third", SMALL["name"], "no payouts"]
    said(editor, path, {"rule": "third", "step": "delete"})
    assert names(revision) == [SMALL["name"], "no payouts"]
    for body in (
        {"rule": "third", "step": "up"},
        {"rule": SMALL["name"], "step": "up"},
        {"rule": "no payouts", "step": "down"},
        {"rule": "no payouts", "step": "away"},
        {},
    ):
        assert "cannot be done" in said(editor, path, body)
    assert names(revision) == [SMALL["name"], "no payouts"]


def test_what_was_live_and_what_is_a_shadow_is_not_edited(editor: Client) -> None:
    first, shadow = live(SMALL), draft(DENY)
    revisions.set_shadow(shadow, by=None)
    for row in (first, shadow):
        answer = editor.get(at("policy-edit", row.number), follow=True)
        assert answer.redirect_chain
        assert said(editor, at("policy-arrange", row.number), {"rule": names(row)[0], "step": "delete"})
        assert len(names(row)) == 1


def test_activating_asks_first_shows_what_changes_and_is_on_record(editor: Client) -> None:
    first, second = live(SMALL), draft(DENY)
    asked = page(editor, at("policy-activate", second.number))
    assert "removed" in asked
    assert "added" in asked
    assert revisions.live() == first
    assert "live now" in said(editor, at("policy-activate", second.number), {"live": first.number})
    assert revisions.live() == second
    event = Event.objects.filter(event="policy.activated", subject_id=str(second.number)).get()
    assert event.actor == "user:editor"
    assert "Roll back to" in page(editor, at("policy-activate", first.number))
    said(editor, at("policy-activate", first.number), {"live": second.number})
    assert revisions.live() == first


def test_who_saw_another_policy_live_looks_again_before_activating(editor: Client) -> None:
    first, second, third = live(SMALL), draft(DENY), draft()
    revisions.activate(third, by=None)
    assert "in the meantime" in said(editor, at("policy-activate", second.number), {"live": first.number})
    assert revisions.live() == third


def test_an_activation_that_is_refused_says_why(editor: Client) -> None:
    revision = draft({"name": "a", "effect": "ask", "ask": {"approvers": "nobody-yet"}})
    assert "nobody-yet" in said(editor, at("policy-activate", revision.number), {"live": "0"})
    assert revisions.live() is None


def test_a_draft_is_thrown_away_after_a_question(editor: Client) -> None:
    revision, kept = draft(SMALL), live(DENY)
    assert "Throw it away" in page(editor, at("policy-discard", revision.number))
    assert "thrown away" in said(editor, at("policy-discard", revision.number))
    assert "kept for ever" in said(editor, at("policy-discard", kept.number))
    assert list(Revision.objects.all()) == [kept]


def test_a_shadow_is_set_and_ended_on_the_page(editor: Client) -> None:
    revision = draft(SMALL)
    path = at("policy-set-shadow", revision.number)
    assert "judged beside the live one" in said(editor, path, {"on": "1"})
    assert Revision.objects.get(number=revision.number).is_shadow
    said(editor, path, {"on": "0"})
    assert not Revision.objects.get(number=revision.number).is_shadow


# Who may, and that a GET changes nothing


def every_address(here: Stage) -> dict[str, str]:
    number = draft(SMALL, DENY).number
    replay = Replay.objects.create(revision=number, last=1, requested_by=here.editor)
    named = {name: at(name) for name in ("policy", "policy-revisions", "policy-new", "policy-evaluate")}
    named |= {name: at(name) for name in ("policy-replays", "policy-shadow")}
    named |= {name: at(name, replay.pk) for name in ("policy-replay", "policy-replay-story")}
    steps = ("edit", "arrange", "activate", "discard", "set-shadow", "difference", "differences", "export")
    named |= {f"policy-{step}": at(f"policy-{step}", number) for step in steps}
    return named | {"subject-policy": at("subject-policy", number)}


READABLE = {"policy", "policy-revisions", "policy-shadow", "policy-difference", "policy-differences", "policy-export"}
READABLE |= {"subject-policy"}
TRYABLE = {"policy-evaluate", "policy-replays", "policy-replay", "policy-replay-story"}
POST_ONLY = {"policy-arrange", "policy-set-shadow"}


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("viewer", lambda name: name in READABLE),
        ("auditor", lambda name: name in TRYABLE),
        ("stranger", lambda name: False),
    ],
)
def test_each_page_opens_for_those_who_may_and_is_403_for_others(
    here: Stage, role: str, allowed: Callable[[str], bool]
) -> None:
    client = here.browser(role)
    for name, path in every_address(here).items():
        expected = 405 if name in POST_ONLY else 200 if allowed(name) else 403
        assert client.get(path).status_code == expected, name
        if not allowed(name):
            assert client.post(path, {"on": "1", "rule": SMALL["name"], "step": "delete"}).status_code in (403, 405), (
                name
            )
    assert Revision.objects.get().state == "draft"
    assert len(names(Revision.objects.get())) == 2


def test_nobody_without_a_login_sees_a_page(here: Stage) -> None:
    for name, path in every_address(here).items():
        answer = Client().get(path)
        assert answer.status_code in (302, 204, 405), name
        assert b"small refunds" not in answer.content


def test_a_get_changes_nothing(here: Stage, editor: Client) -> None:
    addresses = every_address(here)
    before = [list(model.objects.values()) for model in (Revision, Replay, Difference, Event, Call)]
    for name, path in addresses.items():
        answer = editor.get(path, {"on": "1", "step": "delete", "rule": SMALL["name"], "live": "0"})
        assert answer.status_code == (405 if name in POST_ONLY else 200), name
    assert [list(model.objects.values()) for model in (Revision, Replay, Difference, Event, Call)] == before


def test_a_post_without_the_token_is_refused(here: Stage) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(here.editor)
    addresses = every_address(here)
    for name in (
        "policy-new",
        "policy-edit",
        "policy-arrange",
        "policy-activate",
        "policy-discard",
        "policy-set-shadow",
    ):
        assert client.post(addresses[name], {"live": "0", "on": "1"}).status_code == 403, name
    assert Revision.objects.get().state == "draft"


def test_a_revision_that_does_not_exist_is_404(editor: Client) -> None:
    for name in ("subject-policy", "policy-edit", "policy-activate", "policy-difference", "policy-export"):
        for number in (99, 2**70):
            assert editor.get(at(name, number)).status_code == 404


def test_the_sidebar_leads_those_who_may_to_the_policy(here: Stage) -> None:
    for role, is_there in {"editor": True, "viewer": True, "stranger": False}.items():
        assert (f'href="{at("policy")}"' in page(here.browser(role), reverse("admin:index"))) is is_there, role


def test_who_may_write_policy_but_not_open_the_admin_finds_their_way(here: Stage) -> None:
    User.objects.filter(username="editor").update(is_staff=False)
    text = page(here.browser("editor"), at("policy"))
    assert "There is no policy yet" in text
    assert f'action="{at("logout")}"' in text
    assert reverse("admin:auth_user_changelist") not in text
