"""What is wrong, or odd, about a list of rules as a whole and beside what the registry knows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.contrib.auth.models import Group
from django.db.models.functions import Lower

from audit.canonical import canonical
from policy import conditions
from policy.models import Agent
from policy.rulespec import RuleSpec
from registry.models import Tool, Toolkit
from registry.toolref import ToolRef

MAX_RULES = 2_000


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
    schemas_of = cache(_schemas_of)  # a thousand rules are about a few tools
    for place, rule in enumerate(rules):
        first = places.setdefault(rule.name, place)
        if first != place:
            reason = f"Rule {first + 1} has this name already."
            found.append(Problem(place=place, name=rule.name, field="name", reason=reason))
        if rule.when:
            flaws = conditions.problems(rule.when, input_schemas=_input_schemas(rule, schemas_of))
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


def _input_schemas(rule: RuleSpec, schemas_of: Callable[[ToolRef], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The input schemas of the tools that the rule names, each once; none if it may be about others too."""
    refs = [ToolRef.parse(pattern) for pattern in rule.tools]
    schemas: dict[bytes, dict[str, Any]] = {}
    for ref in refs:
        if ref is None:
            return []
        for schema in schemas_of(ref):
            schemas.setdefault(canonical(schema), schema)
    return list(schemas.values())


def _schemas_of(ref: ToolRef) -> list[dict[str, Any]]:
    tools = (
        Tool.objects.callable()
        .annotate(toolkit_key=Lower("version__toolkit__name"), key=Lower("name"))
        .filter(toolkit_key=ref.toolkit.lower(), key=ref.tool.lower())
        .order_by("-version__major", "-version__minor", "-version__patch")
    )
    if ref.version is not None:
        major, minor, patch = ref.version
        tools = tools.filter(version__major=major, version__minor=minor, version__patch=patch)
    return list(tools.values_list("input_schema", flat=True))
