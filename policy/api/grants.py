"""/api/grants/: bounded allowances for later calls, with their meters."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from policy import grants
from policy.api.approval_serializers import GrantSerializer, ReasonBody
from policy.api.approvals import OnlyPeople
from policy.models import Grant
from policy.standing import GRANT_STATES, visible_grants
from registry.actors import who
from registry.api.errors import Conflict
from registry.api.serializers import Failure

REFUSALS: dict[int, Any] = {403: Failure, 404: Failure, 409: Failure, 422: Failure}


class GrantFilters(django_filters.FilterSet):
    """Which grants a list shows."""

    state = django_filters.ChoiceFilter(choices=[(state, state) for state in GRANT_STATES], method="in_state")
    agent = django_filters.CharFilter(field_name="agent__name")

    def in_state(self, found: QuerySet[Grant], name: str, state: str) -> QuerySet[Grant]:
        return found.filter(GRANT_STATES[state])


@extend_schema_view(
    list=extend_schema(summary="List grants"),
    retrieve=extend_schema(summary="Show a grant", responses={200: GrantSerializer, 404: Failure}),
)
class GrantViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Grant]):
    """Grants on toolkits that you may approve or audit, those you gave, and those of agents you own."""

    permission_classes = [OnlyPeople]
    serializer_class = GrantSerializer
    queryset = Grant.objects.none()
    filterset_class = GrantFilters
    search_fields = ["tool_ref", "agent__name", "reason", "granted_by__username"]
    ordering_fields = ["granted_at", "until", "used"]
    ordering = ["-granted_at"]
    lookup_value_regex = r"\d{1,18}"

    def get_queryset(self) -> QuerySet[Grant]:
        return self.queryset if getattr(self, "swagger_fake_view", False) else visible_grants(who(self.request))

    @extend_schema(summary="End a grant at once", request=ReasonBody, responses={200: GrantSerializer, **REFUSALS})
    @action(detail=True, methods=["post"], filter_backends=[])
    def revoke(self, request: Request, pk: str) -> Response:
        grant = self.get_object()
        form = ReasonBody(data=request.data)
        form.is_valid(raise_exception=True)
        try:
            grants.revoke(grant, by=who(request), reason=form.validated_data["reason"])
        except grants.GrantError as error:
            raise Conflict(f"{error}.") from error
        return Response(self.get_serializer(self.get_object()).data)
