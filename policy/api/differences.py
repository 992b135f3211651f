"""/api/policy/revisions/{n}/differences/: where a shadow revision would have decided otherwise."""

from typing import Any

import django_filters
from django.db.models import Count, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from audit.api.filters import MomentFilter
from policy.api.people import IsPerson
from policy.api.revisions import ReadsOrWritesPolicy
from policy.api.trial_serializers import EFFECTS, DifferenceSerializer
from policy.models import Difference, Revision
from registry.api.serializers import Failure

_EFFECTS = [(effect, effect) for effect in EFFECTS]
MOST = 200  # agents or tools that the counts name


class DifferenceFilters(django_filters.FilterSet):
    """Which differences a list shows."""

    agent = django_filters.CharFilter(field_name="agent__name")
    tool_id = django_filters.CharFilter(field_name="tool_ref", lookup_expr="iexact")
    live_effect = django_filters.ChoiceFilter(choices=_EFFECTS)
    shadow_effect = django_filters.ChoiceFilter(choices=_EFFECTS)
    call = django_filters.UUIDFilter()
    since = MomentFilter(field_name="at", lookup_expr="gte")
    until = MomentFilter(field_name="at", lookup_expr="lt")


class TurnSerializer(serializers.Serializer[Any]):
    """How often one effect would have become another."""

    live_effect = serializers.CharField()
    shadow_effect = serializers.CharField()
    count = serializers.IntegerField()


class AgentCountSerializer(serializers.Serializer[Any]):
    """How often an agent would have noticed."""

    agent = serializers.CharField()
    count = serializers.IntegerField()


class ToolCountSerializer(serializers.Serializer[Any]):
    """How often a tool would have been decided otherwise."""

    tool_id = serializers.CharField()
    count = serializers.IntegerField()


class DifferenceCountsSerializer(serializers.Serializer[Any]):
    """The differences counted."""

    total = serializers.IntegerField()
    effects = TurnSerializer(many=True)
    agents = AgentCountSerializer(many=True)
    tools = ToolCountSerializer(many=True)


@extend_schema_view(list=extend_schema(summary="List where a shadow would have decided otherwise"))
class DifferenceViewSet(mixins.ListModelMixin, GenericViewSet[Any]):
    """Calls that were decided by the live revision, and otherwise by this one as its shadow."""

    permission_classes = [IsPerson, ReadsOrWritesPolicy]
    serializer_class = DifferenceSerializer
    queryset = Difference.objects.none()
    filterset_class = DifferenceFilters
    search_fields = ["agent__name", "tool_ref", "live_rule", "shadow_rule"]
    ordering_fields = ["at", "agent", "tool_id"]
    ordering_columns = {"at": ("pk",), "agent": ("agent__name",), "tool_id": ("tool_ref",)}
    ordering = ["-id"]

    def get_queryset(self) -> QuerySet[Difference]:
        if getattr(self, "swagger_fake_view", False):
            return Difference.objects.none()
        number = int(self.kwargs["number"])
        found = Difference.objects.filter(shadow_revision=number).select_related("agent")
        if not Revision.objects.filter(number=number).exists() and not found.exists():
            raise Http404
        return found

    @extend_schema(
        summary="Count where a shadow would have decided otherwise",
        filters=True,
        responses={200: DifferenceCountsSerializer, 404: Failure},
    )
    @action(detail=False, pagination_class=None)
    def counts(self, request: Request, **kwargs: Any) -> Response:
        return Response(DifferenceCountsSerializer(counted(self.filter_queryset(self.get_queryset()))).data)


def counted(found: QuerySet[Difference]) -> dict[str, Any]:
    """How many in all, by effects, by agent and by tool; the most frequent first."""

    def by(*names: str) -> list[dict[str, Any]]:
        return list(found.order_by().values(*names).annotate(count=Count("pk")).order_by("-count", *names)[:MOST])

    return {
        "total": found.count(),
        "effects": by("live_effect", "shadow_effect"),
        "agents": [{"agent": row["agent__name"], "count": row["count"]} for row in by("agent__name")],
        "tools": [{"tool_id": row["tool_ref"], "count": row["count"]} for row in by("tool_ref")],
    }
