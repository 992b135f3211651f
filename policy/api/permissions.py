"""/api/toolkits/{name}/permissions/: who may do what with a toolkit. For people only."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import PermissionDenied
from rest_framework.generics import GenericAPIView, get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from audit.api.lists import refuse_unknown
from policy import permissions
from policy.api.access_serializers import HeldSerializer, PermissionBody
from policy.api.people import IsPerson
from policy.granting import Holder, may_list
from policy.permissions import ImpossiblePermission
from registry import access
from registry.actors import who
from registry.api.errors import Refused
from registry.api.serializers import Failure
from registry.models import Toolkit

NAME = OpenApiParameter("name", OpenApiTypes.STR, OpenApiParameter.PATH, description="The toolkit's name.")
REFUSALS: dict[int, Any] = {403: Failure, 404: Failure, 422: Failure}


class ToolkitPermissionsView(GenericAPIView[Any]):
    """What was given on exactly this toolkit; a permission on all toolkits is not listed here."""

    permission_classes = [IsPerson]
    serializer_class = HeldSerializer
    queryset = Toolkit.objects.none()
    filter_backends = []

    @extend_schema(
        summary="List who may do what with a toolkit",
        parameters=[NAME],
        responses={200: HeldSerializer(many=True), 403: Failure, 404: Failure},
    )
    def get(self, request: Request, name: str) -> Response:
        refuse_unknown(request, "page", "page_size", "format")
        toolkit = self._toolkit(request, name)
        if not may_list(who(request), toolkit):
            raise PermissionDenied(f"Who may do what with {toolkit} is told to those who give permissions or audit it.")
        page = self.paginate_queryset(permissions.all_held(toolkit))
        return self.get_paginated_response(HeldSerializer(page, many=True).data)

    @extend_schema(
        summary="Give a permission on a toolkit",
        description="Giving what the holder already has changes nothing and answers 200.",
        parameters=[NAME],
        request=PermissionBody,
        responses={200: HeldSerializer, 201: HeldSerializer, **REFUSALS},
    )
    def post(self, request: Request, name: str) -> Response:
        toolkit = self._toolkit(request, name)
        holder, verb = self._asked(request)
        try:
            is_new = permissions.give(toolkit, verb, holder, by=who(request))
        except ImpossiblePermission as error:
            raise Refused(422, "invalid", str(error)) from error
        shown = HeldSerializer(permissions.held(toolkit, holder)).data
        return Response(shown, status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)

    @extend_schema(
        summary="Take a permission on a toolkit away",
        description="The body is {holder, permission}, as for giving; taking what the holder lacks changes nothing.",
        parameters=[NAME],
        request=PermissionBody,
        responses={200: HeldSerializer, **REFUSALS},
    )
    def delete(self, request: Request, name: str) -> Response:
        toolkit = self._toolkit(request, name)
        holder, verb = self._asked(request)
        permissions.take(toolkit, verb, holder, by=who(request))
        return Response(HeldSerializer(permissions.held(toolkit, holder)).data)

    def _toolkit(self, request: Request, name: str) -> Toolkit:
        found: Toolkit = get_object_or_404(access.visible_toolkits(who(request)), name__iexact=name)
        return found

    def _asked(self, request: Request) -> tuple[Holder, str]:
        body = PermissionBody(data=request.data)
        body.is_valid(raise_exception=True)
        named = body.validated_data["holder"]
        holder = permissions.holder_named(named)
        if holder is None:
            raise Refused(422, "invalid", f"holder: There is nobody called {named!r}: user:, group: or agent:NAME.")
        return holder, body.validated_data["permission"]
