"""/api/access-requests/: a denial turned into a question to the toolkit's owner."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from policy import accessrequests
from policy.accessrequests import AccessRequestError
from policy.api.access_serializers import AccessRequestBody, AccessRequestSerializer, GrantNote, RefusalNote
from policy.api.people import IsPerson
from policy.caller import Caller
from policy.models import AccessRequest, Agent
from policy.visibility import visible_toolkits
from registry import access
from registry.actors import who
from registry.api.errors import Refused
from registry.api.serializers import Failure
from registry.models import Toolkit

DECIDED: dict[int, Any] = {200: AccessRequestSerializer, 403: Failure, 404: Failure, 409: Failure, 422: Failure}


class AccessRequestFilters(django_filters.FilterSet):
    """Which requests a list shows."""

    state = django_filters.ChoiceFilter(choices=AccessRequest.State.choices)
    agent = django_filters.CharFilter(field_name="agent__name")
    toolkit = django_filters.CharFilter(field_name="toolkit__name", lookup_expr="iexact")


@extend_schema_view(
    list=extend_schema(summary="List access requests"),
    retrieve=extend_schema(summary="Show an access request", responses={200: AccessRequestSerializer, 404: Failure}),
)
class AccessRequestViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """An agent's own requests; for a person those of toolkits they own or publish and of agents they answer for."""

    serializer_class = AccessRequestSerializer
    queryset = AccessRequest.objects.none()
    filterset_class = AccessRequestFilters
    search_fields = ["agent__name", "toolkit__name", "reason"]
    ordering_fields = ["id", "created_at", "decided_at"]
    ordering = ["-id"]
    lookup_value_regex = "[0-9]{1,18}"

    def get_queryset(self) -> QuerySet[AccessRequest]:
        return accessrequests.visible_to(who(self.request))

    @extend_schema(
        summary="Ask for the permission to call a toolkit",
        description="An agent asks for itself, about a toolkit it may see; a person names the agent.",
        request=AccessRequestBody,
        responses={201: AccessRequestSerializer, 404: Failure, 409: Failure, 422: Failure, 429: Failure},
    )
    def create(self, request: Request) -> Response:
        body = AccessRequestBody(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        agent, toolkits = self._asker(request, asked.get("agent"))
        toolkit = toolkits.filter(name__iexact=asked["toolkit"]).first()
        if toolkit is None:
            raise Http404
        try:
            made = accessrequests.ask(agent, toolkit, reason=asked["reason"], by=who(request), call=asked.get("call"))
        except AccessRequestError as error:
            raise _refused(error) from error
        shown = AccessRequestSerializer(made).data
        location = {"Location": f"/api/access-requests/{made.pk}/"}
        return Response(shown, status=status.HTTP_201_CREATED, headers=location)

    @extend_schema(summary="Give what was asked for", request=GrantNote, responses=DECIDED)
    @action(detail=True, methods=["post"], permission_classes=[IsPerson], filter_backends=[])
    def grant(self, request: Request, pk: str) -> Response:
        found: AccessRequest = self.get_object()
        body = GrantNote(data=request.data)
        body.is_valid(raise_exception=True)
        return self._decided(lambda: accessrequests.grant(found, by=who(request), **body.validated_data))

    @extend_schema(summary="Refuse what was asked for, with a reason", request=RefusalNote, responses=DECIDED)
    @action(detail=True, methods=["post"], permission_classes=[IsPerson], filter_backends=[])
    def refuse(self, request: Request, pk: str) -> Response:
        found: AccessRequest = self.get_object()
        body = RefusalNote(data=request.data)
        body.is_valid(raise_exception=True)
        return self._decided(lambda: accessrequests.refuse(found, by=who(request), **body.validated_data))

    def _decided(self, decide: Any) -> Response:
        try:
            return Response(AccessRequestSerializer(decide()).data)
        except AccessRequestError as error:
            raise _refused(error) from error

    def _asker(self, request: Request, named: str | None) -> tuple[Agent, QuerySet[Toolkit]]:
        """The agent that needs it, and the toolkits that exist for whoever asks."""
        caller = request.auth
        if isinstance(caller, Caller):
            if named is not None and named != caller.name:
                raise Refused(422, "invalid", "agent: An agent asks for itself only.")
            agent = Agent.objects.get(pk=caller.agent_id)
            return agent, Toolkit.objects.filter(pk__in=visible_toolkits(caller))
        if named is None:
            raise Refused(422, "invalid", "agent: Name the agent that needs it.")
        user = who(request)
        sees_all = user.has_perm("policy.view_agent") or user.has_perm("policy.change_agent")
        found = Agent.objects.filter(Q() if sees_all else Q(owner=user.pk), name=named).first()
        if found is None:
            raise Refused(422, "invalid", f"agent: There is no agent named {named!r}, or it is not yours to see.")
        return found, access.visible_toolkits(user)


def _refused(error: AccessRequestError) -> Refused:
    details = {"request": error.request.pk, "state": error.request.state} if error.request is not None else None
    return Refused(error.status, error.code, error.message, details=details)
