"""/api/agents/: who may call, and with which keys. For people only."""

from datetime import timedelta
from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.generics import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from policy import agents
from policy.api.people import IsPerson
from policy.api.serializers import (
    AgentBody,
    AgentSerializer,
    KeyBody,
    NewAgentSerializer,
    NewKeySerializer,
    RotationBody,
)
from policy.granting import ungrantable
from policy.models import Agent
from registry.actors import actor, who
from registry.api.bodies import Nothing
from registry.api.errors import Refused
from registry.api.serializers import Failure

NO_STORE = {"Cache-Control": "no-store"}  # an answer that shows a secret is kept nowhere


class AgentFilters(django_filters.FilterSet):
    """Which agents a list shows."""

    owner = django_filters.CharFilter(field_name="owner__username", help_text="The owner's user name.")
    is_active = django_filters.BooleanFilter()


@extend_schema_view(
    list=extend_schema(summary="List agents"),
    retrieve=extend_schema(summary="Show an agent and its keys", responses={200: AgentSerializer, 404: Failure}),
)
class AgentViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """Agents that the person owns, or all for those who may view agents."""

    permission_classes = [IsPerson]
    serializer_class = AgentSerializer
    queryset = Agent.objects.none()
    filterset_class = AgentFilters
    search_fields = ["name", "owner__username"]
    ordering_fields = ["name", "created_at"]
    ordering = ["name"]
    lookup_field = "name"
    lookup_value_regex = "[A-Za-z0-9._-]+"

    def get_queryset(self) -> QuerySet[Agent]:
        return agents.visible_to(who(self.request)).select_related("owner").prefetch_related("credentials__use")

    @extend_schema(
        summary="Make an agent; its key and JWT secret are shown this once",
        request=AgentBody,
        responses={201: NewAgentSerializer, 403: Failure, 422: Failure},
    )
    def create(self, request: Request) -> Response:
        if not request.user.has_perm("policy.add_agent"):
            raise PermissionDenied("Making an agent needs the permission policy.add_agent.")
        body = AgentBody(data=request.data)
        body.is_valid(raise_exception=True)
        asked: dict[str, Any] = {"owner": request.user.get_username()} | body.validated_data
        self._refuse_more_than_own(asked)
        try:
            made = agents.create(asked.pop("name"), actor=actor(who(request)), **asked)
        except agents.AgentError as error:
            raise _invalid(error) from error
        secrets = {"key": made.key, "jwt_secret": made.jwt_secret}
        shown = AgentSerializer(made.agent).data | secrets
        return Response(shown, status=status.HTTP_201_CREATED, headers=NO_STORE)

    @extend_schema(
        summary="Make a further key, shown this once",
        request=KeyBody,
        responses={201: NewKeySerializer, 403: Failure, 404: Failure, 422: Failure},
    )
    @action(detail=True, methods=["post"], filter_backends=[], pagination_class=None)
    def keys(self, request: Request, name: str) -> Response:
        agent = self._changeable()
        body = KeyBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            key = agents.new_key(agent, actor=actor(who(request)), **body.validated_data)
        except agents.AgentError as error:
            raise _invalid(error) from error
        return _shown_once(key)

    @extend_schema(
        summary="Replace a key by a new one, shown this once; the old one goes on for a while",
        request=RotationBody,
        parameters=[OpenApiParameter("prefix", OpenApiTypes.STR, OpenApiParameter.PATH)],
        responses={201: NewKeySerializer, 403: Failure, 404: Failure, 422: Failure},
    )
    @action(detail=True, methods=["post"], url_path="keys/(?P<prefix>[A-Za-z0-9]+)/rotate", filter_backends=[])
    def rotate_key(self, request: Request, name: str, prefix: str) -> Response:
        agent = self._changeable()
        body = RotationBody(data=request.data)
        body.is_valid(raise_exception=True)
        old = get_object_or_404(agent.credentials.all(), prefix=prefix)
        keep = timedelta(hours=body.validated_data["keep_hours"])
        try:
            return _shown_once(agents.rotate_key(old, actor=actor(who(request)), keep=keep))
        except agents.AgentError as error:
            raise _invalid(error) from error

    @extend_schema(
        summary="Revoke a key",
        request=None,
        parameters=[OpenApiParameter("prefix", OpenApiTypes.STR, OpenApiParameter.PATH)],
        responses={200: AgentSerializer, 403: Failure, 404: Failure},
    )
    @action(detail=True, methods=["post"], url_path="keys/(?P<prefix>[A-Za-z0-9]+)/revoke", filter_backends=[])
    def revoke_key(self, request: Request, name: str, prefix: str) -> Response:
        agent = self._changeable()
        Nothing.expected(request)
        agents.revoke_key(get_object_or_404(agent.credentials.all(), prefix=prefix), actor=actor(who(request)))
        return self._shown()

    @extend_schema(summary="Shut an agent out with all its keys", request=None, responses={200: AgentSerializer})
    @action(detail=True, methods=["post"], filter_backends=[])
    def disable(self, request: Request, name: str) -> Response:
        Nothing.expected(request)
        agents.set_active(self._changeable(), False, actor=actor(who(request)))
        return self._shown()

    @extend_schema(summary="Let an agent in again", request=None, responses={200: AgentSerializer})
    @action(detail=True, methods=["post"], filter_backends=[])
    def enable(self, request: Request, name: str) -> Response:
        Nothing.expected(request)
        agents.set_active(self._changeable(), True, actor=actor(who(request)))
        return self._shown()

    def _changeable(self) -> Agent:
        agent: Agent = self.get_object()
        if not agents.may_change(who(self.request), agent):
            raise PermissionDenied("Only the agent's owner, or who may change agents, can do this.")
        return agent

    def _refuse_more_than_own(self, asked: dict[str, Any]) -> None:
        user = who(self.request)
        if asked["call_all"] and not user.is_superuser:
            raise PermissionDenied("Only a superuser can let an agent call every toolkit.")
        for verb in ("call", "serve"):
            if missing := ungrantable(user, verb=verb, toolkits=asked[verb]):
                raise PermissionDenied(
                    f"You cannot give '{verb}' on {', '.join(missing)}: you do not have it yourself."
                )

    def _shown(self) -> Response:
        return Response(AgentSerializer(self.get_object()).data)


def _shown_once(key: str) -> Response:
    shown = {"key": key, "prefix": agents.prefix_of(key)}
    return Response(shown, status=status.HTTP_201_CREATED, headers=NO_STORE)


def _invalid(error: agents.AgentError) -> Refused:
    return Refused(422, "invalid", f"{str(error)[:1].upper()}{str(error)[1:]}.".replace("..", "."))
