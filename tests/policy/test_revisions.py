"""Revisions are numbered without gaps, edited as drafts, frozen when live; every move leaves an event."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import IntegrityError, transaction

from audit.models import Event
from policy import agents, revisions
from policy.decision import Ask
from policy.models import Revision, Rule
from policy.revisions import RevisionError
from policy.rulechecks import warnings
from policy.rulespec import RuleSpec
from tests.audit.threads import in_threads
from tests.factories.registry import numbers, published
from tests.policy.rules import rule

pytestmark = pytest.mark.django_db


@pytest.fixture
def writer() -> User:
    user = User.objects.create_user("wanda")
    user.user_permissions.add(Permission.objects.get(codename="edit_policy"))
    return user


def rules() -> list[RuleSpec]:
    return [
        rule("small refunds", when="input.amount <= 100.0", limits={"perMinute": 30, "atOnce": 4}),
        rule("outside", "ask", riskAtLeast="high", groups=["bots"], ask={"quorum": 2, "decideWithin": "10m"}),
        rule("never", "deny", tools=["Mail.*", "*"], agents=["demo"], capabilities=["data.write"]),
    ]


def events(number: int) -> list[tuple[str, str, dict[str, Any]]]:
    found = Event.objects.filter(subject_kind="policy", subject_id=str(number)).order_by("seq")
    return [(event.event, event.actor, json.loads(event.detail)) for event in found]


def refused(change: Callable[[], Any], word: str) -> None:
    with pytest.raises(IntegrityError, match=word), transaction.atomic():
        change()


def test_a_draft_keeps_its_rules_exactly_and_in_order(writer: User) -> None:
    draft = revisions.new_draft(by=writer, rules=rules(), note=" first ")
    assert (draft.number, draft.state, draft.note, draft.created_by) == (1, "draft", "first", writer)
    assert revisions.rules_of(draft) == rules()
    digest = revisions.digest_of(rules())
    assert events(1) == [
        ("policy.drafted", "user:wanda", {"digest": digest, "rules": 3, "based_on": None, "note": "first"})
    ]


def test_numbers_follow_each_other_and_a_discarded_one_is_not_given_again(writer: User) -> None:
    made = [revisions.new_draft(by=writer).number for _ in range(3)]
    revisions.discard(Revision.objects.get(number=3), by=writer)
    made.append(revisions.new_draft(by=writer).number)
    assert made == [1, 2, 3, 4]
    assert [name for name, _, _ in events(3)] == ["policy.drafted", "policy.discarded"]


@pytest.mark.django_db(transaction=True)
def test_drafts_made_at_once_get_numbers_without_gaps() -> None:
    def work(number: int) -> None:
        for _ in range(3):
            revisions.new_draft(by=None, rules=rules())

    in_threads(4, work)
    assert sorted(Revision.objects.values_list("number", flat=True)) == list(range(1, 13))


@pytest.mark.django_db(transaction=True)
def test_of_revisions_activated_at_once_exactly_one_is_live_and_each_names_the_one_before() -> None:
    drafts = [revisions.new_draft(by=None) for _ in range(6)]

    def work(number: int) -> None:
        revisions.activate(drafts[number], by=None)

    in_threads(6, work)
    assert Revision.objects.filter(state="active").count() == 1
    assert Revision.objects.filter(state="retired").count() == 5
    replaced = [detail["replaces"] for draft in drafts for name, _, detail in events(draft.number) if "activ" in name]
    live = revisions.live()
    assert live is not None
    assert sorted([live.number, *filter(None, replaced)]) == [1, 2, 3, 4, 5, 6]


def test_a_draft_starts_with_the_rules_of_the_revision_it_is_based_on(writer: User) -> None:
    revisions.new_draft(by=writer, rules=rules())
    copy = revisions.new_draft(by=writer, based_on=1)
    other = revisions.new_draft(by=writer, based_on=1, rules=rules()[:1])
    assert (revisions.rules_of(copy), copy.based_on) == (rules(), 1)
    assert revisions.rules_of(other) == rules()[:1]
    with pytest.raises(RevisionError, match="There is no policy revision 9"):
        revisions.new_draft(by=writer, based_on=9)


def test_the_rules_of_a_draft_are_replaced_as_a_whole(writer: User) -> None:
    draft = revisions.new_draft(by=writer, rules=rules())
    new = [rules()[2], rule("outside"), rule("fresh")]
    revisions.replace_rules(draft, new, by=writer)
    assert revisions.rules_of(draft) == new
    name, actor, detail = events(1)[-1]
    assert (name, actor) == ("policy.rules_changed", "user:wanda")
    assert detail == {
        "digest": revisions.digest_of(new),
        "rules": 3,
        "changes": {"added": 1, "removed": 1, "changed": 1, "moved": 1},
    }


def test_activation_retires_the_live_one_in_the_same_moment_and_names_it(writer: User) -> None:
    first = revisions.activate(revisions.new_draft(by=writer, rules=rules()), by=writer)
    second = revisions.activate(revisions.new_draft(by=writer), by=writer)
    first.refresh_from_db()
    assert (first.state, second.state) == ("retired", "active")
    assert revisions.live() == second
    assert (first.digest, first.activated_by) == (revisions.digest_of(rules()), writer)
    assert events(2)[-1] == (
        "policy.activated",
        "user:wanda",
        {"digest": revisions.digest_of([]), "rules": 0, "replaces": 1, "is_rolled_back": False},
    )


def test_a_retired_revision_can_be_made_live_again_unchanged(writer: User) -> None:
    first = revisions.activate(revisions.new_draft(by=writer, rules=rules()), by=writer)
    revisions.activate(revisions.new_draft(by=writer), by=writer)
    again = revisions.activate(first, by=None, actor="user:night-shift")
    assert revisions.live() == again == first
    assert revisions.rules_of(again) == rules()
    assert again.digest == first.digest
    name, actor, detail = events(1)[-1]
    assert (name, actor, detail["replaces"], detail["is_rolled_back"]) == (
        "policy.activated",
        "user:night-shift",
        2,
        True,
    )


def test_what_is_live_cannot_be_activated_changed_or_discarded(writer: User) -> None:
    live = revisions.activate(revisions.new_draft(by=writer, rules=rules()), by=writer)
    with pytest.raises(RevisionError, match="live already"):
        revisions.activate(live, by=writer)
    with pytest.raises(RevisionError, match="never changes"):
        revisions.replace_rules(live, [], by=writer)
    with pytest.raises(RevisionError, match="kept for ever"):
        revisions.discard(live, by=writer)
    assert revisions.rules_of(live) == rules()


def test_the_database_refuses_to_touch_the_rules_of_an_activated_revision(writer: User) -> None:
    live = revisions.activate(revisions.new_draft(by=writer, rules=rules()), by=writer)
    draft = revisions.new_draft(by=writer, rules=[rule("loose")])
    held, loose = Rule.objects.filter(revision=live), Rule.objects.filter(revision=draft)
    refused(lambda: held.update(effect="deny"), "never change")
    refused(lambda: held.filter(position=0).update(name="other"), "never change")
    refused(lambda: held.delete(), "never change")
    refused(lambda: held.update(revision=draft), "never change")
    refused(lambda: loose.update(revision=live, position=9), "never change")
    refused(lambda: Rule.objects.create(revision=live, position=9, name="new", effect="allow"), "never change")
    refused(lambda: Revision.objects.filter(number=1).update(digest="sha256:other"), "never changes")
    refused(lambda: Revision.objects.filter(number=1).update(state="draft"), "never changes")
    refused(lambda: Revision.objects.filter(number=1).delete(), "kept|never change")
    assert revisions.rules_of(live) == rules()


def test_a_draft_that_asks_a_group_that_does_not_exist_cannot_become_live(writer: User) -> None:
    asking = [rule("payouts", "ask", ask={"approvers": "payers"})]
    draft = revisions.new_draft(by=writer, rules=asking)
    with pytest.raises(RevisionError, match="rule 'payouts' asks the group payers, which does not exist"):
        revisions.activate(draft, by=writer)
    assert revisions.live() is None
    group = Group.objects.create(name="payers")
    first = revisions.activate(draft, by=writer)
    assert revisions.rules_of(first)[0].ask == Ask(approvers="payers")
    revisions.activate(revisions.new_draft(by=writer), by=writer)
    group.delete()
    with pytest.raises(RevisionError, match="does not exist"):
        revisions.activate(first, by=writer)


def test_names_that_nobody_bears_yet_are_told_as_warnings(writer: User) -> None:
    published("Mail", "1.0.0", {})
    odd = [
        rule("fine", tools=["*", "mail.*", "MAIL.Send"]),
        rule("odd", "ask", tools=["Post.*"], agents=["nobody"], groups=["none"], ask={"approvers": "payers"}),
    ]
    revisions.new_draft(by=writer, rules=odd)
    assert warnings(odd) == [
        "Rule 'odd': there is no toolkit Post yet.",
        "Rule 'odd': there is no agent nobody yet.",
        "Rule 'odd': there is no group none yet.",
        "Rule 'odd' asks the group payers, which does not exist.",
    ]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([rule("same"), rule("other"), rule("same", "deny")], "Rule 'same', name: Rule 1 has this name already."),
        ([rule(f"rule {place}") for place in range(2_001)], "at most 2000 rules"),
        ([rule("broken", when="input.amount >")], "Rule 'broken', when: "),
        ([rule("never", when="false")], "Rule 'never', when: "),
        ([rule("typo", when="agnet.name == 'a'")], "Rule 'typo', when: "),
    ],
)
def test_bad_rules_are_never_saved(writer: User, bad: list[RuleSpec], told: str) -> None:
    draft = revisions.new_draft(by=writer, rules=rules())
    with pytest.raises(RevisionError, match=told):
        revisions.new_draft(by=writer, rules=bad)
    with pytest.raises(RevisionError, match=told):
        revisions.replace_rules(draft, bad, by=writer)
    assert Revision.objects.count() == 1
    assert revisions.rules_of(draft) == rules()
    assert len(events(1)) == 1


def test_a_condition_is_checked_against_the_tools_that_its_rule_names(writer: User) -> None:
    published("Payments", "1.0.0", {"name": "Refund", "input": numbers("amount")})
    fits = rule("fits", tools=["payments.refund"], when="input.amount > 5.0")
    wrong = rule("wrong", tools=["Payments.Refund"], when="input.amuont > 5.0")
    anything = rule("anything", tools=["Payments.Refund", "Mail.*"], when="input.amuont > 5.0")
    revisions.new_draft(by=writer, rules=[fits, anything])
    with pytest.raises(RevisionError, match=r"Rule 'wrong', when: .*amuont"):
        revisions.new_draft(by=writer, rules=[wrong])


def test_a_draft_whose_condition_no_longer_fits_its_tool_cannot_become_live(writer: User) -> None:
    early = rule("early", tools=["Payments.Refund@2.0.0"], when="input.amuont > 5.0")
    draft = revisions.new_draft(by=writer, rules=[early])
    published("Payments", "2.0.0", {"name": "Refund", "input": numbers("amount")})
    for believed in (draft, Revision(number=draft.number, state="retired")):  # what is stored counts
        with pytest.raises(RevisionError, match="Rule 'early', when"):
            revisions.activate(believed, by=writer)
    assert revisions.live() is None


def test_only_people_with_the_permission_write_policy(writer: User, person: User) -> None:
    draft = revisions.new_draft(by=writer)
    robot = agents.create("robot", actor="shell").agent.user
    robot.user_permissions.add(Permission.objects.get(codename="edit_policy"))
    for who, told in ((person, "edit_policy"), (robot, "people")):
        for move in (
            lambda who: revisions.new_draft(by=who),
            lambda who: revisions.replace_rules(draft, [], by=who),
            lambda who: revisions.activate(draft, by=who),
            lambda who: revisions.set_shadow(draft, by=who),
            lambda who: revisions.discard(draft, by=who),
        ):
            with pytest.raises(RevisionError, match=told):
                move(who)
    assert len(events(1)) == 1
    root = User.objects.create_superuser("root")
    assert revisions.activate(draft, by=root).activated_by == root
    assert revisions.new_draft(by=None).created_by is None
    assert events(2)[0][1] == "shell"


def test_one_revision_at_a_time_is_the_shadow(writer: User) -> None:
    first, second = revisions.new_draft(by=writer), revisions.new_draft(by=writer, rules=rules())
    revisions.set_shadow(first, by=writer)
    revisions.set_shadow(second, by=writer)
    assert list(Revision.objects.filter(is_shadow=True)) == [second]
    revisions.set_shadow(second, by=writer)
    revisions.set_shadow(None, by=writer)
    assert not Revision.objects.filter(is_shadow=True).exists()
    told = [(name, detail["is_shadow"]) for name, _, detail in events(2)[1:]]
    assert told == [("policy.shadowed", True), ("policy.shadowed", False)]


def test_a_shadow_keeps_its_rules_and_stops_being_one_when_it_becomes_live(writer: User) -> None:
    draft = revisions.new_draft(by=writer, rules=rules())
    revisions.set_shadow(draft, by=writer)
    with pytest.raises(RevisionError, match="is the shadow"):
        revisions.replace_rules(draft, [], by=writer)
    live = revisions.activate(draft, by=writer)
    assert not live.is_shadow
    with pytest.raises(RevisionError, match="its own shadow"):
        revisions.set_shadow(live, by=writer)


def test_what_someone_else_discarded_is_said_to_be_gone(writer: User) -> None:
    draft = revisions.new_draft(by=writer)
    revisions.discard(draft, by=writer)
    draft.number = 1
    with pytest.raises(RevisionError, match="any more"):
        revisions.activate(draft, by=writer)


def test_a_note_is_short(writer: User) -> None:
    with pytest.raises(RevisionError, match="200"):
        revisions.new_draft(by=writer, note="x" * 201)


def test_the_newest_revision_with_the_same_rules_is_found(writer: User) -> None:
    revisions.activate(revisions.new_draft(by=writer, rules=rules()), by=writer)
    second = revisions.new_draft(by=writer, rules=rules())
    revisions.new_draft(by=writer, rules=rules()[:2])
    assert revisions.with_rules(rules()) == second
    assert revisions.with_rules(list(reversed(rules()))) is None


def test_a_difference_tells_what_came_went_changed_and_moved() -> None:
    old = [rule(name) for name in "abcde"]
    new = [rule("b"), rule("x"), rule("c", "deny"), rule("e"), rule("a")]
    told = [(change.kind, change.name) for change in revisions.difference(old, new)]
    assert told == [("added", "x"), ("changed", "c"), ("moved", "a"), ("removed", "d")]
    assert revisions.difference(old, old) == []
    changed = next(change for change in revisions.difference(old, new) if change.kind == "changed")
    assert (changed.before, changed.after) == (rule("c"), rule("c", "deny"))
