"""/api/toolkits/: named families of tools and their owners."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from audit.api.lists import refuse_unknown
from registry import access, toolkits
from registry.actors import who
from registry.api.errors import Conflict
from registry.api.serializers import Failure, ToolkitBody, ToolkitPatch, ToolkitSerializer
from registry.models import Toolkit

NAME = "[A-Za-z0-9_]+"


class ToolkitFilters(django_filters.FilterSet):
    """Which toolkits a list shows."""

    owner = django_filters.CharFilter(field_name="owner__username", help_text="The owner's user name.")


@extend_schema_view(
    list=extend_schema(summary="List toolkits"),
    retrieve=extend_schema(summary="Show a toolkit", responses={200: ToolkitSerializer, 404: Failure}),
)
class ToolkitViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """Toolkits the caller may see, call, publish, review or audit."""

    serializer_class = ToolkitSerializer
    queryset = Toolkit.objects.none()
    filterset_class = ToolkitFilters
    search_fields = ["name", "title", "description"]
    ordering_fields = ["name", "title", "created_at"]
    ordering = ["name"]
    lookup_field = "name"
    lookup_value_regex = NAME

    def get_queryset(self) -> QuerySet[Toolkit]:
        return toolkits.with_latest_version(access.visible_toolkits(self.request.user)).select_related("owner")

    def get_object(self) -> Toolkit:
        refuse_unknown(self.request, "format")
        return get_object_or_404(self.get_queryset(), name__iexact=self.kwargs["name"])

    @extend_schema(
        summary="Make a toolkit",
        request=ToolkitBody,
        responses={201: ToolkitSerializer, 403: Failure, 409: Failure, 422: OpenApiResponse(Failure)},
    )
    def create(self, request: Request) -> Response:
        if not request.user.has_perm("registry.add_toolkit"):
            raise PermissionDenied("Making a toolkit needs the permission registry.add_toolkit.")
        body = ToolkitBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            made = toolkits.create(by=who(request), **body.validated_data)
        except toolkits.ToolkitError as error:
            raise Conflict(str(error)) from error
        return Response(self._shown(made), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a toolkit's title, description or owner",
        request=ToolkitPatch,
        responses={200: ToolkitSerializer, 403: Failure, 404: Failure, 422: Failure},
    )
    def partial_update(self, request: Request, name: str) -> Response:
        toolkit = self.get_object()
        if not access.may(request.user, "publish", toolkit):
            raise PermissionDenied(f"Changing {toolkit.name} needs the permission 'publish' on it.")
        body = ToolkitPatch(data=request.data)
        body.is_valid(raise_exception=True)
        return Response(self._shown(toolkits.describe(toolkit, by=who(request), **body.validated_data)))

    def _shown(self, toolkit: Toolkit) -> Any:
        fresh = toolkits.with_latest_version(Toolkit.objects.select_related("owner")).get(pk=toolkit.pk)
        return ToolkitSerializer(fresh).data
