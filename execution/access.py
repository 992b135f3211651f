"""Whose calls, and which events, a person or an agent may see."""

from typing import Any

from django.db.models import Func, Q, QuerySet, TextField
from django.db.models.functions import Cast
from guardian.shortcuts import get_objects_for_user

from execution.models import Call
from policy.caller import Caller
from policy.models import Agent
from registry.models import Toolkit, ToolkitVersion


def visible_calls(user: Any, caller: Caller | None) -> QuerySet[Call]:
    """An agent sees its own calls; a person those of agents they own and of toolkits they may audit."""
    calls = Call.objects.all()
    if caller is not None:
        return calls.filter(agent_id=caller.agent_id)
    if user.has_perm("execution.view_call"):
        return calls
    audited = _audited(user)
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


def visible_events(user: Any, caller: Caller | None) -> Q:
    """The events of calls one may see, of oneself or one's agents, and of toolkits one may audit."""
    calls = visible_calls(user, caller).order_by().values(subject=SubjectId("pk"))
    seen = Q(subject_kind="call", subject_id__in=calls)
    if caller is not None:
        return seen | Q(subject_kind="agent", subject_id=caller.name)
    toolkits = _audited(user)
    versions = ToolkitVersion.objects.filter(toolkit__in=toolkits).select_related("toolkit")
    return (
        seen
        | Q(subject_kind="agent", subject_id__in=Agent.objects.filter(owner=user).order_by().values("name"))
        | Q(subject_kind="toolkit", subject_id__in=toolkits.order_by().values("name"))
        | Q(subject_kind="version", subject_id__in=[str(version) for version in versions])
    )


def _audited(user: Any) -> QuerySet[Toolkit]:
    found: QuerySet[Toolkit] = get_objects_for_user(user, "registry.audit_toolkit", with_superuser=False)
    return found


class SubjectId(Func):
    """A call's id as events spell it; SQLite keeps UUIDs as hex without dashes."""

    output_field = TextField()

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **more: Any) -> Any:
        return compiler.compile(Cast(self.source_expressions[0], TextField()))

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        id, params = compiler.compile(self.source_expressions[0])
        parts = [f"substr({id}, {start}, {length})" for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
        return " || '-' || ".join(parts), params
