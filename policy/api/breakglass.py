"""/api/break-glass/: calls that people let run against policy, and the review that follows each."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from policy import breakglass
from policy.api.approval_serializers import BrokenGlassSerializer, ReviewOfBreakGlassBody
from policy.api.approvals import OnlyPeople
from policy.models import BreakGlass
from policy.standing import visible_glass
from registry.actors import who
from registry.api.errors import Refused
from registry.api.serializers import Failure

REFUSALS: dict[int, Any] = {403: Failure, 404: Failure, 409: Failure, 422: Failure}


class BreakGlassFilters(django_filters.FilterSet):
    """Which uses a list shows."""

    reviewed = django_filters.BooleanFilter(method="was_reviewed", help_text="False: those that wait for a review.")
    agent = django_filters.CharFilter(field_name="agent__name")

    def was_reviewed(self, found: QuerySet[BreakGlass], name: str, is_reviewed: bool) -> QuerySet[BreakGlass]:
        waiting = Q(verdict="")
        return found.exclude(waiting) if is_reviewed else found.filter(waiting)


@extend_schema_view(
    list=extend_schema(summary="List uses of break-glass"),
    retrieve=extend_schema(summary="Show one use", responses={200: BrokenGlassSerializer, 404: Failure}),
)
class BreakGlassViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[BreakGlass]):
    """Every use for those who may break the glass; for others their own, and those on their toolkits."""

    permission_classes = [OnlyPeople]
    serializer_class = BrokenGlassSerializer
    queryset = BreakGlass.objects.none()
    filterset_class = BreakGlassFilters
    search_fields = ["tool_ref", "agent__name", "person__username", "reason"]
    ordering_fields = ["at"]
    ordering = ["-at"]
    lookup_value_regex = r"\d{1,18}"

    def get_queryset(self) -> QuerySet[BreakGlass]:
        return self.queryset if getattr(self, "swagger_fake_view", False) else visible_glass(who(self.request))

    @extend_schema(
        summary="Say whether it was justified; another person than who did it",
        request=ReviewOfBreakGlassBody,
        responses={200: BrokenGlassSerializer, **REFUSALS},
    )
    @action(detail=True, methods=["post"], filter_backends=[])
    def review(self, request: Request, pk: str) -> Response:
        row = self.get_object()
        form = ReviewOfBreakGlassBody(data=request.data)
        form.is_valid(raise_exception=True)
        try:
            breakglass.review(row, by=who(request), **form.validated_data)
        except breakglass.BreakGlassError as error:
            raise Refused(error.status, error.code, f"{error.message}.") from error
        return Response(self.get_serializer(self.get_object()).data)
