"""Whose calls, and which events, a person or an agent may see."""

from typing import Any

from django.db.models import Exists, Func, OuterRef, Q, QuerySet, UUIDField
from guardian.shortcuts import get_objects_for_user

from execution.models import Call
from policy.breakglass import PERMISSION
from policy.caller import Caller
from policy.models import Agent, BreakGlass
from registry.models import Toolkit, ToolkitVersion


def visible_calls(user: Any, caller: Caller | None) -> QuerySet[Call]:
    """An agent sees its own calls; a person those of agents they own and of toolkits they may audit.

    Whoever may approve the calls of a toolkit follows those that people were asked about to their end, and whoever
    may break the glass sees what others ran that way.
    """
    calls = Call.objects.all()
    if caller is not None:
        return calls.filter(agent_id=caller.agent_id)
    if user.has_perm("execution.view_call"):
        return calls
    asked = Q(approval__isnull=False, tool__version__toolkit__in=permitted(user, "approve"))
    seen = Q(agent__owner=user) | Q(tool__version__toolkit__in=permitted(user, "audit")) | asked
    if user.has_perm(PERMISSION):
        seen |= Q(pk__in=BreakGlass.objects.order_by().values("call"))
    return calls.filter(seen)


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
    calls = visible_calls(user, caller).order_by()
    seen = Q(subject_kind="call") & Q(Exists(calls.filter(pk=SubjectKey("call"))))
    seen |= Q(subject_kind="approval") & Q(Exists(calls.filter(approval=SubjectKey("approval"))))
    if caller is not None:
        return seen | Q(subject_kind="agent", subject_id=caller.name)
    toolkits = permitted(user, "audit")
    versions = ToolkitVersion.objects.filter(toolkit__in=toolkits).select_related("toolkit")
    return (
        seen
        | Q(subject_kind="agent", subject_id__in=Agent.objects.filter(owner=user).order_by().values("name"))
        | Q(subject_kind="toolkit", subject_id__in=toolkits.order_by().values("name"))
        | Q(subject_kind="version", subject_id__in=[str(version) for version in versions])
    )


def permitted(user: Any, verb: str) -> QuerySet[Toolkit]:
    """The toolkits on which this user was given the permission, by name or through a group."""
    found: QuerySet[Toolkit] = get_objects_for_user(user, f"registry.{verb}_toolkit", with_superuser=False)
    return found


class SubjectKey(Func):
    """The key of the subject of this kind that an event of the outer query is about; nothing for other subjects."""

    output_field = UUIDField()

    def __init__(self, kind: str) -> None:
        super().__init__(OuterRef("subject_kind"), OuterRef("subject_id"))
        self._kind = kind

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **more: Any) -> Any:
        (kind, of_kind), (id, of_id) = (compiler.compile(expression) for expression in self.source_expressions)
        # SQLite keeps UUIDs as hex without dashes. CASE also keeps PostgreSQL from casting the ids of other subjects.
        key = f"replace({id}, '-', '')" if connection.vendor == "sqlite" else f"CAST({id} AS uuid)"
        return f"CASE WHEN {kind} = '{self._kind}' THEN {key} END", (*of_kind, *of_id)
