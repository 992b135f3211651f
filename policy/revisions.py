"""Draft, activate, roll back, shadow, discard: sole writer of policy revisions and their rules."""

import hashlib
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import IntegerField, Max
from django.db.models.functions import Cast
from django.utils import timezone

from audit import trail
from audit.canonical import canonical
from audit.models import Event
from policy import rulechecks
from policy.decision import Ask, Effect, Limits
from policy.models import Revision, Rule
from policy.rulechanges import Change, difference
from policy.rulespec import RuleSpec
from registry.actors import actor as name_of
from registry.actors import is_person
from registry.risk import RiskLevel

__all__ = [
    "Change",
    "RevisionError",
    "activate",
    "difference",
    "digest_of",
    "discard",
    "live",
    "new_draft",
    "replace_rules",
    "rules_of",
    "set_shadow",
    "spec_of",
    "with_rules",
]

MAX_NOTE = 200

State = Revision.State

_ONE_WRITER = 0x504C4143_504F4C  # the number of PostgreSQL's advisory lock; SQLite has one writer anyway


class RevisionError(Exception):
    """A revision that cannot be written or moved as asked; the message says why."""


def new_draft(
    *, by: User | None, rules: Sequence[RuleSpec] = (), based_on: int | None = None, note: str = ""
) -> Revision:
    """A revision under the next number, with these rules, or else with those of the revision it is based on."""
    _demand_permission(by)
    if based_on is not None:
        origin = Revision.objects.filter(number=based_on).first()
        if origin is None:
            raise RevisionError(f"There is no policy revision {based_on} to start from.")
        rules = rules or rules_of(origin)
    _refuse_bad_rules(rules)
    note = _checked_note(note)
    with transaction.atomic():
        _become_the_one_writer()
        revision = Revision.objects.create(number=_next_number(), note=note, based_on=based_on, created_by=by)
        _write(revision, rules)
        _tell(revision, "drafted", by, **_content(rules), based_on=based_on, note=note)
    return revision


def replace_rules(revision: Revision, rules: Sequence[RuleSpec], *, by: User | None) -> Revision:
    """Gives a draft other rules; all of them, or none."""
    _demand_permission(by)
    _refuse_bad_rules(rules)
    with transaction.atomic():
        return _replaced(_held(revision), rules, by=by)


def _replaced(draft: Revision, rules: Sequence[RuleSpec], *, by: User | None) -> Revision:
    if not draft.is_draft:
        raise RevisionError(f"Revision {draft.number} was live and never changes; make a new draft instead.")
    if draft.is_shadow:
        # What the shadow said so far would be told of rules that never said it.
        raise RevisionError(f"Revision {draft.number} is the shadow; its rules stay while it is.")
    before = rules_of(draft)
    draft.rules.all().delete()
    _write(draft, rules)
    changes = difference(before, rules)
    kinds = {kind: sum(change.kind == kind for change in changes) for kind in ("added", "removed", "changed", "moved")}
    _tell(draft, "rules_changed", by, **_content(rules), changes=kinds)
    return draft


@transaction.atomic
def discard(revision: Revision, *, by: User | None) -> None:
    """Throws a draft away; its number is not given again."""
    _demand_permission(by)
    draft = _held(revision)
    if not draft.is_draft:
        raise RevisionError(f"Revision {draft.number} was live and is kept for ever.")
    _tell(draft, "discarded", by, **_content(rules_of(draft)), was_shadow=draft.is_shadow)
    draft.delete()


def activate(revision: Revision, *, by: User | None, actor: str | None = None) -> Revision:
    """Makes a draft live, or a retired revision again, unchanged; the one that was live retires in the same moment."""
    _demand_permission(by)
    if revision.is_draft:
        _refuse_bad_rules(rules_of(revision))
    with transaction.atomic():
        return _activated(revision, by=by, actor=actor)


def _activated(revision: Revision, *, by: User | None, actor: str | None) -> Revision:
    _become_the_one_writer()
    chosen = _held(revision)
    if chosen.state == State.ACTIVE:
        raise RevisionError(f"Revision {chosen.number} is live already.")
    rules = rules_of(chosen)
    if chosen.is_draft:
        _refuse_bad_rules(rules)
    if missing := rulechecks.missing_approvers(rules):
        raise RevisionError(f"Revision {chosen.number} cannot become live: {missing[0]}.")
    before = live()
    if before is not None:
        Revision.objects.filter(number=before.number).update(state=State.RETIRED)
    is_again = chosen.state == State.RETIRED
    chosen.state, chosen.is_shadow = State.ACTIVE, False
    chosen.activated_by, chosen.activated_at = by, timezone.now()
    chosen.digest = chosen.digest or digest_of(rules)
    chosen.save(update_fields=["state", "is_shadow", "activated_by", "activated_at", "digest"])
    replaces = before.number if before is not None else None
    _tell(chosen, "activated", by, actor=actor, **_content(rules), replaces=replaces, is_rolled_back=is_again)
    return chosen


@transaction.atomic
def set_shadow(revision: Revision | None, *, by: User | None) -> None:
    """Has this revision judged beside the live one, without effect; None ends that."""
    _demand_permission(by)
    _become_the_one_writer()
    before = Revision.objects.select_for_update().filter(is_shadow=True).first()
    chosen = _held(revision) if revision is not None else None
    if chosen is not None and chosen.state == State.ACTIVE:
        raise RevisionError(f"Revision {chosen.number} is live; it cannot be its own shadow.")
    if before == chosen:
        return
    if before is not None:
        kept = "" if before.is_draft else before.digest
        Revision.objects.filter(number=before.number).update(is_shadow=False, digest=kept)
        _tell(before, "shadowed", by, is_shadow=False)
    if chosen is not None:
        content = _content(rules_of(chosen))  # which stays while it is the shadow
        Revision.objects.filter(number=chosen.number).update(is_shadow=True, digest=content["digest"])
        _tell(chosen, "shadowed", by, is_shadow=True, **content)


def live() -> Revision | None:
    """The revision that counts now."""
    return Revision.objects.filter(state=State.ACTIVE).first()


def rules_of(revision: Revision) -> list[RuleSpec]:
    """A revision's rules, in their order."""
    return [spec_of(row) for row in Rule.objects.filter(revision=revision.number).order_by("position")]


def spec_of(row: Rule) -> RuleSpec:
    """The rule of a stored row."""
    ask = None
    if row.quorum is not None and row.decide_within is not None and row.run_within is not None:
        ask = Ask(
            approvers=row.approvers, quorum=row.quorum, decide_within=row.decide_within, run_within=row.run_within
        )
    limits = Limits(per_minute=row.per_minute, per_day=row.per_day, at_once=row.at_once)
    return RuleSpec(
        name=row.name,
        agents=tuple(row.agents),
        groups=tuple(row.groups),
        tools=tuple(row.tools),
        capabilities=tuple(row.capabilities),
        risk_at_least=RiskLevel(row.risk_at_least) if row.risk_at_least is not None else None,
        when=row.when,
        effect=Effect(row.effect),
        ask=ask,
        limits=limits if limits != Limits() else None,
    )


def with_rules(rules: Sequence[RuleSpec]) -> Revision | None:
    """The newest revision that has exactly these rules."""
    wanted = digest_of(rules)
    for revision in Revision.objects.order_by("-number"):
        if (revision.digest or digest_of(rules_of(revision))) == wanted:
            return revision
    return None


def digest_of(rules: Sequence[RuleSpec]) -> str:
    return "sha256:" + hashlib.sha256(canonical([rule.as_json() for rule in rules])).hexdigest()


def _demand_permission(by: User | None) -> None:
    if by is None:  # the shell
        return
    if not is_person(by):
        raise RevisionError("Policy is written by people; an agent cannot.")
    if not by.has_perm("policy.edit_policy"):
        raise RevisionError("Writing policy needs the permission 'edit_policy'.")


def _become_the_one_writer() -> None:
    """Until this transaction ends nobody else numbers or activates revisions."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_WRITER])


def _next_number() -> int:
    """One more than was ever given: a discarded draft's number stays with its events."""
    drafted = Event.objects.filter(subject_kind="policy", event="policy.drafted")
    given = drafted.aggregate(last=Max(Cast("subject_id", IntegerField())))["last"] or 0
    kept = Revision.objects.aggregate(last=Max("number"))["last"] or 0
    return int(max(given, kept)) + 1


def _held(revision: Revision) -> Revision:
    """The stored revision, held against other writers until this transaction ends."""
    stored = Revision.objects.select_for_update().filter(number=revision.number).first()
    if stored is None:
        raise RevisionError(f"There is no policy revision {revision.number} any more.")
    return stored


def _refuse_bad_rules(rules: Sequence[RuleSpec]) -> None:
    """Asked before a transaction, so that thousands of rules hold no other writer up; what it learnt is remembered."""
    if problems := rulechecks.problems(rules):
        raise RevisionError(str(problems[0]))


def _checked_note(note: str) -> str:
    note = note.strip()
    if len(note) > MAX_NOTE or "\0" in note:
        raise RevisionError(f"A note has at most {MAX_NOTE} characters.")
    return note


def _content(rules: Sequence[RuleSpec]) -> dict[str, Any]:
    return {"digest": digest_of(rules), "rules": len(rules)}


def _tell(revision: Revision, move: str, by: User | None, *, actor: str | None = None, **detail: Any) -> None:
    who = actor or (name_of(by) if by is not None else "shell")
    trail.record("policy", str(revision.number), f"policy.{move}", actor=who, detail=detail)


def _write(revision: Revision, rules: Sequence[RuleSpec]) -> None:
    Rule.objects.bulk_create([_row(revision, place, rule) for place, rule in enumerate(rules)], batch_size=500)


def _row(revision: Revision, position: int, rule: RuleSpec) -> Rule:
    asked = rule.ask.as_json() if rule.ask is not None else {}
    limits = rule.limits.as_json() if rule.limits is not None else {}
    return Rule(
        revision=revision,
        position=position,
        name=rule.name,
        agents=list(rule.agents),
        groups=list(rule.groups),
        tools=list(rule.tools),
        capabilities=list(rule.capabilities),
        risk_at_least=rule.risk_at_least,
        when=rule.when,
        effect=rule.effect.value,
        **asked,
        **limits,
    )
