"""RuleSet: the rules of one revision made ready for judging; the live one is at hand until the revision moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import Q

from policy import revisions
from policy.caller import Caller
from policy.checks.default import ASKS, default
from policy.checks.permission import granted, permission
from policy.checks.rule import RuleCheck
from policy.decision import Decision, Effect, Finding
from policy.models import Revision
from policy.question import Question
from policy.rulespec import RuleSpec
from policy.visibility import groups_of
from registry import revision
from registry.toolspec import ToolSpec

DEFAULTS = 0  # the number before anyone has made a revision live
MAX_REMEMBERED = 20_000  # pairs of an agent and a tool


@dataclass(frozen=True, slots=True)
class _Concerned:
    """The rules about one agent and one tool; the decision itself, where no argument can change it."""

    checks: tuple[RuleCheck, ...]
    settled: Decision | None
    is_barred: bool


class RuleSet:
    """Permission first; then a matching deny wins, else the first matching rule, else the default for the risk."""

    def __init__(self, number: int, rules: Sequence[RuleSpec], *, digest: str = "") -> None:
        self.number = number
        self.digest = digest  # empty where the rules may still change
        self._checks = tuple(RuleCheck(rule) for rule in rules)
        self._bars = any(check.is_deny and not check.rule.when for check in self._checks)
        # A tool's spec is frozen and stays the same object while it is in use, so no answer here can become wrong.
        self._concerned: dict[tuple[str, frozenset[str], ToolSpec], _Concerned] = {}

    def judge(self, question: Question, *, now: datetime | None = None) -> Decision:
        """The answer, with every check that spoke; `now` is the moment that conditions see."""
        permitted = permission(question)
        if permitted.effect is Effect.DENY:
            return self._decision(permitted, (permitted,))
        groups = groups_of(question.caller)
        concerned = self._about(question, groups)
        if concerned.settled is not None:
            return concerned.settled
        return self._judged(question, concerned.checks, groups, now or datetime.now(UTC))

    def is_barred(self, caller: Caller, tool: ToolSpec) -> bool:
        """Whether a deny without a condition keeps this agent from this tool whatever it says."""
        if not self._bars:
            return False
        return self._about(Question(caller=caller, tool=tool, arguments={}), groups_of(caller)).is_barred

    def conditional(self, question: Question) -> tuple[RuleSpec, ...]:
        """The rules about this agent and this tool whose answer hangs on the arguments or the moment."""
        checks = self._about(question, groups_of(question.caller)).checks
        return tuple(check.rule for check in checks if check.rule.when)

    def _about(self, question: Question, groups: frozenset[str]) -> _Concerned:
        key = (question.caller.name, groups, question.tool)
        found = self._concerned.get(key)
        if found is None:
            if len(self._concerned) >= MAX_REMEMBERED:
                self._concerned.clear()
            found = self._concerned[key] = self._concerning(question, groups)
        return found

    def _concerning(self, question: Question, groups: frozenset[str]) -> _Concerned:
        checks, is_open = [], True
        for check in self._checks:
            if (check.is_deny or is_open) and check.concerns(question.caller.name, groups, question.tool):
                checks.append(check)
                # Behind a rule that always matches, only a deny can still be heard.
                is_open = is_open and (check.is_deny or bool(check.rule.when))
        is_settled = not any(check.rule.when for check in checks)
        return _Concerned(
            checks=tuple(checks),
            settled=self._judged(question, tuple(checks), groups, datetime.now(UTC)) if is_settled else None,
            is_barred=any(check.is_deny and not check.rule.when for check in checks),
        )

    def _judged(
        self, question: Question, checks: tuple[RuleCheck, ...], groups: frozenset[str], now: datetime
    ) -> Decision:
        """Asks every deny, and every other rule while nothing has been decided; a condition that fails denies."""
        findings = [granted(question.tool.toolkit)]
        denied: Finding | None = None
        failed: Finding | None = None
        first: tuple[Finding, RuleSpec] | None = None
        for check in checks:
            if not check.is_deny and (denied or failed or first):
                continue
            finding, is_failure = check.finding(question, groups=groups, now=now)
            if finding is None:
                continue
            findings.append(finding)
            if is_failure:
                failed = failed or finding
            elif check.is_deny:
                denied = denied or finding
            else:
                first = finding, check.rule
        if decisive := denied or failed:
            return self._decision(decisive, tuple(findings))
        if first is not None:
            return self._decision(first[0], tuple(findings), first[1])
        usual = default(question.tool.risk)
        return Decision(
            effect=usual.effect,
            rule=usual.check,
            reason=usual.reason,
            help=usual.help,
            revision=self.number,
            findings=(*findings, usual),
            ask=ASKS.get(question.tool.risk),
        )

    def _decision(self, decisive: Finding, findings: tuple[Finding, ...], rule: RuleSpec | None = None) -> Decision:
        return Decision(
            effect=decisive.effect,
            rule=decisive.check,
            reason=decisive.reason,
            help=decisive.help,
            revision=self.number,
            findings=findings,
            ask=rule.ask if rule else None,
            limits=rule.limits if rule else None,
        )


@dataclass(frozen=True, slots=True)
class _Book:
    """Which rules count under one revision of the registry."""

    revision: int
    live: RuleSet
    shadow: RuleSet | None


_defaults = RuleSet(DEFAULTS, [])
_book = _Book(-1, _defaults, None)


def live_rules() -> RuleSet:
    """The rules that count now; without a live revision, none but the defaults."""
    return _current_book().live


def shadow_rules() -> RuleSet | None:
    """The rules that are judged beside the live ones, without effect."""
    return _current_book().shadow


def rules_numbered(number: int) -> RuleSet:
    """The rules of any revision, 0 for the defaults; Revision.DoesNotExist if there is none."""
    return _defaults if number == DEFAULTS else _rule_set(Revision.objects.get(number=number))


def _current_book() -> _Book:
    global _book
    number = revision.current()
    book = _book
    if book.revision != number:
        rows = list(Revision.objects.filter(Q(state=Revision.State.ACTIVE) | Q(is_shadow=True)))
        live = next((row for row in rows if row.state == Revision.State.ACTIVE), None)
        shadow = next((row for row in rows if row.is_shadow), None)
        book = _book = _Book(
            number, _rule_set(live) if live else _defaults, _rule_set(shadow) if shadow is not None else None
        )
    return book


def _rule_set(row: Revision) -> RuleSet:
    """The one at hand if it was made of the same rules, with all that it remembers; else a new one."""
    for known in (_book.live, _book.shadow):
        if known is not None and row.digest and (known.number, known.digest) == (row.number, row.digest):
            return known
    return RuleSet(row.number, revisions.rules_of(row), digest=row.digest)
