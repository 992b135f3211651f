"""How a list of calls is narrowed."""

import django_filters
from django.db.models import Q, QuerySet

from audit.api.filters import MomentFilter
from execution.models import Call, State


class CallFilter(django_filters.FilterSet):
    state = django_filters.MultipleChoiceFilter(choices=State.choices)
    agent = django_filters.CharFilter(field_name="agent__name")
    tool_id = django_filters.CharFilter(method="of_tool", help_text="With its version, or without for all of them.")
    trace_id = django_filters.CharFilter(method="of_trace")
    since = MomentFilter(field_name="created_at", lookup_expr="gte")
    until = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Call
        fields = ["state", "agent", "tool_id", "door", "call_id", "trace_id", "since", "until"]

    def of_trace(self, calls: QuerySet[Call], name: str, trace_id: str) -> QuerySet[Call]:
        """Not those without a trace: only so does SQLite see that the index, which leaves them out, will do."""
        return calls.filter(trace_id=trace_id).exclude(trace_id="")

    def of_tool(self, calls: QuerySet[Call], name: str, tool_id: str) -> QuerySet[Call]:
        every = Q(tool_ref__istartswith=f"{tool_id}@") if "@" not in tool_id else Q()
        return calls.filter(Q(tool_ref__iexact=tool_id) | every)
