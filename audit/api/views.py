"""`/api/audit/`: events, seals, the export, the state of it all; every other method is 405."""

from typing import Any

from django.db.models import Max, QuerySet
from django.http import Http404, StreamingHttpResponse
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from audit import access, exports
from audit.api.filters import EventFilter, EventSearch
from audit.api.lists import KnownParameters, StrictOrdering, refuse_unknown
from audit.api.paging import EventPages
from audit.api.serializers import EventSerializer, SealSerializer, StatusSerializer
from audit.models import Event, Seal

FORMAT = OpenApiParameter("format", OpenApiTypes.STR, enum=list(exports.FORMS), description="jsonl (default) or csv")


class AnyForm(BaseContentNegotiation):
    """The export has its own form, whatever the client says it accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class EventViewSet(viewsets.ReadOnlyModelViewSet[Event]):
    """What happened. Auditors see every event; an agent those of its calls; people what is theirs to audit."""

    queryset = Event.objects.all()
    serializer_class = EventSerializer
    pagination_class = EventPages
    filter_backends = [KnownParameters, DjangoFilterBackend, EventSearch, StrictOrdering]
    filterset_class = EventFilter
    ordering_fields = ["id", "at", "event", "actor"]
    # Events are numbered as they are written, so their key orders them by time, and needs no sorting.
    ordering_columns = {"at": ("pk",)}
    ordering = ["-id"]
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Event]:
        if getattr(self, "swagger_fake_view", False):
            return Event.objects.none()
        return access.visible_events(self.request.user, self.request.auth)

    def filter_queryset(self, queryset: QuerySet[Event, Any]) -> QuerySet[Event, Any]:
        """One event is looked up among all that are visible; only lists are narrowed."""
        if self.action != "retrieve":
            return super().filter_queryset(queryset)
        refuse_unknown(self.request, "format")
        return queryset

    @extend_schema(
        parameters=[FORMAT],
        filters=True,
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR, (200, "text/csv"): OpenApiTypes.STR},
    )
    @action(detail=False, content_negotiation_class=AnyForm, pagination_class=None)
    def export(self, request: Request) -> StreamingHttpResponse:
        """Every event that the same filters and search find, oldest first, as JSON lines or CSV."""
        form = request.query_params.get("format", "jsonl")
        if form not in exports.FORMS:
            raise ValidationError({"format": [f"Give {' or '.join(exports.FORMS)}."]})
        return exports.response(self.filter_queryset(self.get_queryset()), form)


class SealViewSet(viewsets.ReadOnlyModelViewSet[Seal]):
    """Signed statements about which events existed, for those who see every event."""

    queryset = Seal.objects.all()
    serializer_class = SealSerializer
    filter_backends = [KnownParameters, StrictOrdering]
    ordering_fields = ["n"]
    ordering = ["-n"]
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Seal]:
        if not getattr(self, "swagger_fake_view", False):
            _demand_auditor(self.request)
        return super().get_queryset()


class StatusView(APIView):
    """How much evidence there is, and how much of it is sealed, for those who see every event."""

    @extend_schema(responses=StatusSerializer)
    def get(self, request: Request) -> Response:
        _demand_auditor(request)
        refuse_unknown(request, "format")
        last_seal = Seal.objects.order_by("-n").first()
        events = Event.objects.count()
        told = {
            "events": events,
            "last_event_id": Event.objects.aggregate(last=Max("id"))["last"],
            "seals": Seal.objects.count(),
            "last_seal": last_seal,
            "unsealed": Event.objects.filter(id__gt=last_seal.last_id).count() if last_seal else events,
        }
        return Response(StatusSerializer(told).data)


def _demand_auditor(request: Request) -> None:
    if not access.sees_everything(request.user):
        raise Http404
