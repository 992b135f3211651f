"""/api/evidence/: packs that a worker makes, to follow and to download; each sees their own."""

from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from audit.api.lists import refuse_unknown
from audit.api.views import AnyForm
from audit.attestation import published_keys
from execution import packs
from execution.api.evidence_serializers import NewPackSerializer, PackSerializer
from execution.evidence import visible_call
from execution.models import Pack
from execution.packfiles import download
from execution.scope import FilterError, Scope
from execution.viewer import Viewer
from policy.caller import Caller
from registry.actors import who
from registry.api.errors import Conflict, Refused
from registry.api.serializers import Failure


@extend_schema_view(
    list=extend_schema(summary="List the packs that you asked for"),
    retrieve=extend_schema(summary="Follow a pack", responses={200: PackSerializer, 404: Failure}),
)
class PackViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Pack]):
    """Files of evidence; kept for a day. Whoever may see the events may have them in a pack."""

    queryset = Pack.objects.none()
    serializer_class = PackSerializer
    ordering_fields = ["created_at", "finished_at"]
    ordering = ["-id"]
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Pack]:
        if getattr(self, "swagger_fake_view", False):
            return Pack.objects.none()
        return Pack.objects.filter(requested_by=who(self.request)).select_related("requested_by", "agent")

    @extend_schema(
        summary="Ask for a pack",
        request=NewPackSerializer,
        responses={202: PackSerializer, 404: Failure, 409: Failure, 422: Failure},
    )
    def create(self, request: Request) -> Response:
        """202 and where to follow it."""
        body = NewPackSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        caller = request.auth if isinstance(request.auth, Caller) else None
        user = who(request)
        if "call" in asked and visible_call(asked["call"], Viewer(user=user, caller=caller)) is None:
            raise NotFound
        scope = Scope(call=asked.get("call"), filters=asked.get("filters", {}))
        try:
            made = packs.ask(scope, by=user, caller=caller, form=asked["form"])
        except FilterError as error:
            raise ValidationError({"filters": {error.field: [error.reason]}}) from error
        except packs.PackError as error:
            raise Conflict(str(error)) from error
        made.refresh_from_db()
        location = f"/api/evidence/{made.pk}/"
        return Response(self.get_serializer(made).data, status=202, headers={"Location": location})

    @extend_schema(
        summary="Download a pack",
        responses={
            (200, "application/zip"): OpenApiTypes.BINARY,
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
            404: Failure,
            409: Failure,
            410: Failure,
        },
    )
    @action(detail=True, filter_backends=[], pagination_class=None, content_negotiation_class=AnyForm)
    def download(self, request: Request, *args: Any, **kwargs: Any) -> FileResponse:
        """The file, once it is done."""
        refuse_unknown(request)
        pack = self.get_object()
        if pack.state == Pack.State.FAILED:
            raise Refused(410, "pack_failed", pack.error)
        if pack.is_open:
            raise Conflict(f"The pack is not made yet: {pack.percent} percent.")
        answer = download(pack)
        if answer is None:
            raise Refused(410, "pack_gone", packs.GONE)
        return answer

    @extend_schema(
        summary="Public keys that seals and packs are signed with",
        responses={200: {"type": "object", "additionalProperties": {"type": "string"}}},
    )
    @action(detail=False, filter_backends=[], pagination_class=None)
    def keys(self, request: Request) -> Response:
        """Name and key (Ed25519, hex), the current one first; what verify.py takes as --key."""
        refuse_unknown(request, "format")
        return Response(published_keys())
