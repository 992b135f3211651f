"""/api/approvals/: what waits for a person, and their answers. The page of the inbox uses the same functions."""

from typing import Any
from uuid import UUID

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from policy import approvals, grants
from policy.api.approval_serializers import (
    ApprovalSerializer,
    ApproveBody,
    GrantBody,
    GrantSerializer,
    ReasonBody,
)
from policy.api.people import IsPerson
from policy.models import Approval
from policy.standing import settling_vote
from registry.actors import is_person, who
from registry.api.errors import Refused
from registry.api.serializers import Failure

REFUSALS: dict[int, Any] = {403: Failure, 404: Failure, 409: Failure, 410: Failure, 422: Failure}


class OnlyPeople(IsPerson):
    """As IsPerson, and tells a service credential so by a code of its own."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if user and user.is_authenticated and (request.auth is not None or not is_person(user)):
            raise Refused(403, "not_a_person", self.message)
        return super().has_permission(request, view)


class ApprovalFilters(django_filters.FilterSet):
    """Which approvals a list shows."""

    state = django_filters.MultipleChoiceFilter(choices=Approval.State.choices)
    agent = django_filters.CharFilter(field_name="agent__name")
    tool = django_filters.CharFilter(method="of_tool", help_text="With its version, or without for all of them.")
    mine = django_filters.BooleanFilter(method="for_me", help_text="True: those you may decide now; false: the others.")

    def of_tool(self, found: QuerySet[Approval], name: str, tool: str) -> QuerySet[Approval]:
        every = Q(tool_ref__istartswith=f"{tool}@") if "@" not in tool else Q()
        return found.filter(Q(tool_ref__iexact=tool) | every)

    def for_me(self, found: QuerySet[Approval], name: str, is_mine: bool) -> QuerySet[Approval]:
        mine = Q(pk__in=approvals.to_decide(who(self.request)).order_by().values("pk"))
        return found.filter(mine if is_mine else ~mine)


@extend_schema_view(
    list=extend_schema(summary="List approvals"),
    retrieve=extend_schema(summary="Show an approval", responses={200: ApprovalSerializer, 404: Failure}),
)
class ApprovalViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Approval]):
    """Approvals of toolkits that you may approve or audit, and of agents you own; all, if you read every call."""

    permission_classes = [OnlyPeople]
    serializer_class = ApprovalSerializer
    queryset = Approval.objects.none()
    filterset_class = ApprovalFilters
    search_fields = ["tool_ref", "agent__name", "call_id", "rule", "user_id", "trace_id"]
    ordering_fields = ["created_at", "decide_by"]
    ordering = ["-created_at"]
    lookup_value_converter = "uuid"

    def get_queryset(self) -> QuerySet[Approval]:
        if getattr(self, "swagger_fake_view", False):
            return self.queryset
        return approvals.visible_to(who(self.request)).prefetch_related("votes__person", "tool__capabilities")

    @extend_schema(summary="Say yes", request=ApproveBody, responses={200: ApprovalSerializer, **REFUSALS})
    @action(detail=True, methods=["post"], filter_backends=[])
    def approve(self, request: Request, pk: UUID) -> Response:
        return self._decided(ApproveBody, "approve")

    @extend_schema(summary="Say no, and why", request=ReasonBody, responses={200: ApprovalSerializer, **REFUSALS})
    @action(detail=True, methods=["post"], filter_backends=[])
    def deny(self, request: Request, pk: UUID) -> Response:
        return self._decided(ReasonBody, "deny")

    @extend_schema(
        summary="Take back a yes that has not run yet",
        request=ReasonBody,
        responses={200: ApprovalSerializer, **REFUSALS},
    )
    @action(detail=True, methods=["post"], filter_backends=[])
    def revoke(self, request: Request, pk: UUID) -> Response:
        approval, said = self._asked(ReasonBody)
        try:
            approvals.revoke(approval.pk, by=who(request), reason=said["reason"])
        except approvals.ApprovalError as error:
            raise refusal(error, self.get_object()) from error
        return self._shown()

    @extend_schema(
        summary="Say yes to this call, and to a bounded number of later ones",
        request=GrantBody,
        responses={201: GrantSerializer, **REFUSALS},
    )
    @action(detail=True, methods=["post"], filter_backends=[])
    def grant(self, request: Request, pk: UUID) -> Response:
        approval, said = self._asked(GrantBody)
        try:
            given = grants.give(approval, by=who(request), **said)
        except approvals.ApprovalError as error:
            raise refusal(error, self.get_object()) from error
        except grants.GrantError as error:
            raise Refused(422, "invalid", f"{error}.") from error
        return Response(GrantSerializer(given).data, status=status.HTTP_201_CREATED)

    def _decided(self, body: type[ApproveBody | ReasonBody], answer: str) -> Response:
        approval, said = self._asked(body)
        try:
            approvals.decide(approval.pk, by=who(self.request), answer=answer, reason=said["reason"])
        except approvals.ApprovalError as error:
            raise refusal(error, self.get_object()) from error
        return self._shown()

    def _asked(self, body: type[Any]) -> tuple[Approval, dict[str, Any]]:
        """What is not this person's to see is not found, whatever they say about it."""
        approval = self.get_object()
        form = body(data=self.request.data)
        form.is_valid(raise_exception=True)
        return approval, form.validated_data

    def _shown(self) -> Response:
        return Response(self.get_serializer(self.get_object()).data)


def refusal(error: approvals.ApprovalError, approval: Approval) -> Refused:
    """Why an answer did not count; whoever came second learns who was first, and when."""
    vote = settling_vote(approval)
    details = {
        "state": approval.state,
        "decided_at": approval.decided_at,
        "decision": vote
        and {"person": vote.person.get_username(), "answer": vote.answer, "reason": vote.reason, "at": vote.at},
    }
    told = details if error.status in (409, 410) else None
    return Refused(error.status, error.code, f"{error.message}.", details=told)
