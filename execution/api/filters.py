"""How a list of calls is narrowed."""

import django_filters

from execution.models import Call, State


class CallFilter(django_filters.FilterSet):
    state = django_filters.MultipleChoiceFilter(choices=State.choices)
    agent = django_filters.CharFilter(field_name="agent__name")
    tool = django_filters.CharFilter(field_name="tool_ref", lookup_expr="istartswith")
    since = django_filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gte")
    until = django_filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Call
        fields = ["state", "agent", "tool", "door", "call_id", "trace_id", "since", "until"]
