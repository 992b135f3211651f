"""Whose calls a person or an agent may see."""

from typing import Any

from django.db.models import Q, QuerySet
from guardian.shortcuts import get_objects_for_user

from execution.models import Call
from policy.caller import Caller


def visible_calls(user: Any, caller: Caller | None) -> QuerySet[Call]:
    """An agent sees its own calls; a person those of agents they own and of toolkits they may audit."""
    calls = Call.objects.all()
    if caller is not None:
        return calls.filter(agent_id=caller.agent_id)
    if user.is_superuser:
        return calls
    audited = get_objects_for_user(user, "registry.audit_toolkit", with_superuser=False)
    return calls.filter(Q(agent__owner=user) | Q(tool__version__toolkit__in=audited))


def may_cancel(user: Any, caller: Caller | None, call: Call) -> bool:
    """Who asked for a call, or answers for who did, may take it back."""
    if caller is not None:
        return call.agent_id == caller.agent_id
    return bool(user.is_superuser or call.agent.owner_id == user.pk)


def may_settle(user: Any, caller: Caller | None, call: Call) -> bool:
    """Only a person says what became of an unknown outcome: one who publishes the toolkit."""
    if caller is not None or call.tool is None:
        return False
    return bool(user.is_superuser or user.has_perm("registry.publish_toolkit", call.tool.version.toolkit))
