"""/api/tools/: everything that can be called, and what it would do."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import Http404
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins
from rest_framework.filters import SearchFilter
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from audit.api.lists import KnownParameters, StrictOrdering, refuse_unknown
from registry import access, search
from registry.api.serializers import RISKS, Failure, ToolSerializer
from registry.models import Tool, ToolkitVersion
from registry.risk import RiskLevel
from registry.toolref import ToolRef


class ToolFilters(django_filters.FilterSet):
    """Which tools a list shows."""

    toolkit = django_filters.CharFilter(field_name="version__toolkit__name", lookup_expr="iexact")
    state = django_filters.ChoiceFilter(field_name="version__state", choices=ToolkitVersion.State.choices)
    risk = django_filters.ChoiceFilter(choices=RISKS, method="of_risk")
    risk_at_least = django_filters.ChoiceFilter(choices=RISKS, method="of_risk_at_least")
    capability = django_filters.CharFilter(field_name="capabilities__name")
    idempotency = django_filters.ChoiceFilter(choices=Tool.Idempotency.choices)
    runtime = django_filters.CharFilter(method="of_runtime", max_length=32, help_text="Such as python or http.")

    def of_risk(self, tools: QuerySet[Tool], name: str, word: str) -> QuerySet[Tool]:
        return tools.filter(risk=RiskLevel.from_word(word))

    def of_risk_at_least(self, tools: QuerySet[Tool], name: str, word: str) -> QuerySet[Tool]:
        return tools.filter(risk__gte=RiskLevel.from_word(word))

    def of_runtime(self, tools: QuerySet[Tool], name: str, kind: str) -> QuerySet[Tool]:
        return search.of_runtime(tools, kind)


class ToolSearch(SearchFilter):
    """Looks into names, texts and parameters."""

    search_description = "Words that must occur in the name, title, description or parameters."

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        words = self.get_search_terms(request)
        return search.matching(queryset, " ".join(words)) if words else queryset


@extend_schema_view(
    list=extend_schema(summary="List tools"),
    retrieve=extend_schema(
        summary="Show a tool",
        parameters=[
            OpenApiParameter(
                "id",
                OpenApiTypes.STR,
                OpenApiParameter.PATH,
                description="Toolkit.Tool@1.2.0, or Toolkit.Tool for the latest published one.",
            )
        ],
        responses={200: ToolSerializer, 404: Failure},
    ),
)
class ToolViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """Tools of the toolkits that the caller may see."""

    serializer_class = ToolSerializer
    queryset = Tool.objects.none()
    filter_backends = [KnownParameters, DjangoFilterBackend, ToolSearch, StrictOrdering]
    filterset_class = ToolFilters
    search_fields = ["name"]
    ordering_fields = ["name", "title", "risk", "toolkit", "version", "published_at"]
    ordering_columns = {
        "toolkit": ("version__toolkit__name",),
        "version": ("version__major", "version__minor", "version__patch"),
        "published_at": ("version__published_at",),
    }
    ordering = ["version__toolkit__name", "name", "-version__major", "-version__minor", "-version__patch"]
    lookup_field = "id"
    lookup_value_converter = "str"

    def get_queryset(self) -> QuerySet[Tool]:
        tools = access.visible_tools(self.request.user)
        return tools.select_related("version__toolkit").prefetch_related("capabilities")

    def get_object(self) -> Tool:
        refuse_unknown(self.request, "format")
        ref = ToolRef.parse(self.kwargs["id"])
        if ref is None:
            raise Http404
        found = self.get_queryset().filter(version__toolkit__name__iexact=ref.toolkit, name__iexact=ref.tool)
        if ref.version is None:
            found = found.filter(version__in=ToolkitVersion.objects.callable())
        else:
            major, minor, patch = ref.version
            found = found.filter(version__major=major, version__minor=minor, version__patch=patch)
        # Without a version: the highest published one, else the highest deprecated one.
        tool = found.order_by("-version__state", "-version__major", "-version__minor", "-version__patch").first()
        if tool is None:
            raise Http404
        return tool
