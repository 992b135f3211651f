"""What is wrong, or odd, about a list of rules as a whole and beside what the registry knows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson
from django.contrib.auth.models import Group
from django.db.models.functions import Lower

from audit.canonical import canonical
from policy import conditions
from policy.models import Agent
from policy.rulespec import RuleSpec
from registry.models import Tool, Toolkit
from registry.toolref import ToolRef

MAX_RULES = 2_000

_Known = dict[tuple[str, str], dict[tuple[int, int, int], bytes]]  # toolkit and tool, version, canonical schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why rules cannot be saved, as a sentence, and which field of which rule it lies in; no place: the list itself."""

    reason: str
    place: int | None = None
    name: str = ""
    field: str = ""

    def __str__(self) -> str:
        return self.reason if self.place is None else f"Rule '{self.name}', {self.field}: {self.reason}"


def problems(rules: Sequence[RuleSpec]) -> list[Problem]:
    """All that keeps these rules from being saved; nothing, if nothing does."""
    if len(rules) > MAX_RULES:
        return [Problem(reason=f"A policy has at most {MAX_RULES} rules, not {len(rules)}.")]
    found: list[Problem] = []
    places: dict[str, int] = {}
    known = _tools_named([rule for rule in rules if rule.when])
    for place, rule in enumerate(rules):
        first = places.setdefault(rule.name, place)
        if first != place:
            reason = f"Rule {first + 1} has this name already."
            found.append(Problem(place=place, name=rule.name, field="name", reason=reason))
        if rule.when:
            flaws = _flaws(rule.when, _input_schemas(rule, known))
            found += [Problem(place=place, name=rule.name, field="when", reason=flaw) for flaw in flaws]
    return found


def missing_approvers(rules: Sequence[RuleSpec]) -> list[str]:
    """The rules that ask a group which does not exist, each as a clause."""
    asked = {rule.ask.approvers: rule for rule in reversed(rules) if rule.ask is not None and rule.ask.approvers}
    known = set(Group.objects.filter(name__in=asked).values_list("name", flat=True))
    return [
        f"rule '{rule.name}' asks the group {group}, which does not exist"
        for group, rule in reversed(asked.items())
        if group not in known
    ]


def warnings(rules: Sequence[RuleSpec]) -> list[str]:
    """What may be a slip of the pen, but may also come true later; each a sentence."""
    told = []
    toolkits = set(Toolkit.objects.annotate(key=Lower("name")).values_list("key", flat=True))
    agents = set(Agent.objects.values_list("name", flat=True))
    groups = set(Group.objects.values_list("name", flat=True))
    for rule in rules:
        for pattern in rule.tools:
            toolkit = pattern.partition(".")[0]
            if pattern != "*" and toolkit.lower() not in toolkits:
                told.append(f"Rule '{rule.name}': there is no toolkit {toolkit} yet.")
        told += [f"Rule '{rule.name}': there is no agent {name} yet." for name in rule.agents if name not in agents]
        told += [f"Rule '{rule.name}': there is no group {name} yet." for name in rule.groups if name not in groups]
    return told + [f"{clause[0].upper()}{clause[1:]}." for clause in missing_approvers(rules)]


@lru_cache(maxsize=4_096)
def _flaws(text: str, schemas: tuple[bytes, ...]) -> tuple[str, ...]:
    """Remembered, because the same rules are checked when they are written and when they become live."""
    return tuple(conditions.problems(text, input_schemas=[orjson.loads(schema) for schema in schemas]))


def _input_schemas(rule: RuleSpec, known: _Known) -> tuple[bytes, ...]:
    """The input schemas of the tools that the rule names, each once; none if it may be about others too."""
    schemas: dict[bytes, None] = {}
    for pattern in rule.tools:
        ref = ToolRef.parse(pattern)
        if ref is None:
            return ()
        versions = known.get((ref.toolkit.lower(), ref.tool.lower()), {})
        schemas |= dict.fromkeys(schema for version, schema in versions.items() if ref.version in (None, version))
    return tuple(schemas)


def _tools_named(rules: Sequence[RuleSpec]) -> _Known:
    """Every callable version's input schema of the toolkits that these rules name."""
    toolkits = {pattern.partition(".")[0].lower() for rule in rules for pattern in rule.tools} - {"*"}
    rows = (
        Tool.objects.callable()
        .annotate(toolkit_key=Lower("version__toolkit__name"), key=Lower("name"))
        .filter(toolkit_key__in=toolkits)
        .order_by("-version__major", "-version__minor", "-version__patch")
        .values_list("toolkit_key", "key", "version__major", "version__minor", "version__patch", "input_schema")
    )
    known: _Known = defaultdict(dict)
    for toolkit, tool, major, minor, patch, schema in rows:
        known[toolkit, tool][major, minor, patch] = canonical(schema)
    return known
