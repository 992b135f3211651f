"""Change: what became of one rule between two lists of rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from policy.rulespec import RuleSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A rule that came, went, says something else, or stands in another place."""

    kind: Literal["added", "removed", "changed", "moved"]
    name: str
    before: RuleSpec | None = None
    after: RuleSpec | None = None


def difference(old: Sequence[RuleSpec], new: Sequence[RuleSpec]) -> list[Change]:
    """What is different in the new list, in its order, then what it no longer has; rules are known by their names."""
    before, after = {rule.name: rule for rule in old}, {rule.name: rule for rule in new}
    in_place = _in_place([name for name in before if name in after], [name for name in after if name in before])
    changes = []
    for name, rule in after.items():
        if name not in before:
            changes.append(Change(kind="added", name=name, after=rule))
        elif before[name] != rule:
            changes.append(Change(kind="changed", name=name, before=before[name], after=rule))
        elif name not in in_place:
            changes.append(Change(kind="moved", name=name, before=rule, after=rule))
    gone = [Change(kind="removed", name=name, before=rule) for name, rule in before.items() if name not in after]
    return changes + gone


def _in_place(old: list[str], new: list[str]) -> set[str]:
    """The names that kept their order; the fewest others have moved around them."""
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return {name for block in blocks for name in old[block.a : block.a + block.size]}
