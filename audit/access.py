"""Whose events a person or an agent may see; the apps above say what belongs to whom."""

from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet

from audit.models import Event

Rule = Callable[[Any, Any], Q]  # (user, caller or None) to the events that are theirs to see

_rules: list[Rule] = []


def also_visible(rule: Rule) -> Rule:
    """Registers a rule by which those who may not see every event still see some; once, at start-up."""
    if rule not in _rules:
        _rules.append(rule)
    return rule


def sees_everything(user: Any) -> bool:
    """Superusers, and whoever was given `audit.view_event`: auditors, and agents that carry events elsewhere."""
    return bool(user.is_active and user.has_perm("audit.view_event"))


def visible_events(user: Any, caller: Any = None) -> QuerySet[Event]:
    """Every event for those who see everything; for others those that a rule gives them, or none."""
    events = Event.objects.all()
    if sees_everything(user):
        return events
    seen = Q(pk__in=[])
    for rule in _rules:
        seen |= rule(user, caller)
    return events.filter(seen)
