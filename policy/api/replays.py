"""/api/policy/replay/ and /api/policy/replays/: try a revision on recorded calls before it is live."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from policy import readers, replays
from policy.api.people import IsPerson
from policy.api.trial_serializers import ReplayBody, ReplayResultSerializer, ReplaySerializer
from policy.models import Replay, Revision
from registry.actors import who
from registry.api.errors import Conflict, Refused
from registry.api.serializers import Failure
from registry.api.waiting import preferred_wait

PATIENCE = 20.0  # seconds the answer is held unless the client says otherwise
PREFER = OpenApiParameter("Prefer", OpenApiTypes.STR, OpenApiParameter.HEADER, description="wait=SECONDS, else 20")


class ReplayFilters(django_filters.FilterSet):
    """Which replays a list shows."""

    state = django_filters.ChoiceFilter(choices=Replay.State.choices)
    revision = django_filters.NumberFilter()


class MayReplay(BasePermission):
    """Those who write policy, and those who see every event."""

    message = "Replaying needs the permission policy.edit_policy or audit.view_event."

    def has_permission(self, request: Request, view: Any) -> bool:
        return readers.may_replay(request.user)


class ReplayView(APIView):
    """Judges the newest recorded calls by a revision; nothing runs, and no call changes."""

    permission_classes = [IsPerson, MayReplay]

    @extend_schema(
        summary="Try a revision on recorded calls",
        request=ReplayBody,
        parameters=[PREFER],
        responses={
            200: ReplayResultSerializer,
            202: ReplaySerializer,
            403: Failure,
            404: Failure,
            409: Failure,
            422: Failure,
        },
    )
    def post(self, request: Request) -> Response:
        """200 with the result if it was there within `Prefer: wait=N`, else 202 and where to follow it."""
        wait = preferred_wait(request, PATIENCE)
        body = ReplayBody(data=request.data)
        body.is_valid(raise_exception=True)
        number, last = body.validated_data["revision"], body.validated_data["last"]
        if number and not Revision.objects.filter(number=number).exists():
            raise Refused(404, "not_found", f"There is no policy revision {number}.")
        try:
            asked = replays.ask(number, last, by=who(request))
        except replays.ReplayError as error:
            raise Conflict(str(error)) from error
        ended = replays.wait_for(asked.pk, patience=wait)
        if ended.state == Replay.State.FAILED:
            raise Refused(500, "replay_failed", ended.error, details={"replay": str(ended.pk)})
        status = 200 if ended.state == Replay.State.DONE else 202
        return Response(shown(ended), status=status, headers={"Location": f"/api/policy/replays/{ended.pk}/"})


@extend_schema_view(
    list=extend_schema(summary="List replays"),
    retrieve=extend_schema(
        summary="Follow a replay; its result once it is done", responses={200: ReplayResultSerializer, 404: Failure}
    ),
)
class ReplayViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """Replays of the last thirty days."""

    permission_classes = [IsPerson, MayReplay]
    serializer_class = ReplaySerializer
    queryset = Replay.objects.select_related("requested_by")
    filterset_class = ReplayFilters
    search_fields = ["requested_by__username"]
    ordering_fields = ["created_at", "finished_at", "revision"]
    ordering = ["-id"]
    lookup_value_regex = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

    def get_queryset(self) -> QuerySet[Replay]:
        return super().get_queryset() if self.action == "retrieve" else super().get_queryset().defer("result")

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(shown(self.get_object()))


def shown(replay: Replay) -> dict[str, Any]:
    """How far it is, and beside it the result once there is one."""
    return {**ReplaySerializer(replay).data, **(replay.result or {})}
