"""/api/policy/revisions/: write policy as drafts, compare, activate, roll back, and watch a shadow."""

from collections.abc import Callable
from typing import Any, TypeVar

import django_filters
from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from audit.api.lists import refuse_unknown
from policy import policyfile, readers, revisions
from policy.api.people import IsPerson
from policy.api.policy_serializers import (
    DraftBody,
    RevisionDifferenceSerializer,
    RevisionSerializer,
    RulesBody,
    ShadowBody,
    WholeRevisionSerializer,
)
from policy.handedin import Flawed, from_json, from_text
from policy.models import Revision
from policy.revisions import Change, RevisionError
from policy.rulespec import RuleSpec
from registry.actors import who
from registry.api.bodies import Nothing
from registry.api.errors import BadParameter, Conflict, Refused
from registry.api.rendering import YAMLRenderer
from registry.api.serializers import Failure

REFUSALS: dict[int, Any] = {403: Failure, 404: Failure, 409: Failure, 422: Failure}
TO = OpenApiParameter(
    "to", OpenApiTypes.STR, description="The older one: live (default), or a number; 0: the defaults."
)
Result = TypeVar("Result")


class RevisionFilters(django_filters.FilterSet):
    """Which revisions a list shows."""

    state = django_filters.ChoiceFilter(choices=Revision.State.choices)
    is_shadow = django_filters.BooleanFilter()
    based_on = django_filters.NumberFilter()


class ReadsOrWritesPolicy(BasePermission):
    """Reading needs the permission to view or edit policy, everything else the one to edit it."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if request.method in ("GET", "HEAD", "OPTIONS"):
            self.message = "Reading policy needs the permission policy.view_revision or policy.edit_policy."
            return readers.may_read(request.user)
        self.message = "Writing policy needs the permission policy.edit_policy."
        return readers.may_write(request.user)


@extend_schema_view(
    list=extend_schema(summary="List policy revisions"),
    retrieve=extend_schema(
        summary="Show a policy revision and its rules", responses={200: WholeRevisionSerializer, 404: Failure}
    ),
)
class RevisionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """Policy revisions, for people who may read policy. A draft is edited; what was live never changes."""

    permission_classes = [IsPerson, ReadsOrWritesPolicy]
    serializer_class = RevisionSerializer
    queryset = Revision.objects.select_related("created_by", "activated_by")
    filterset_class = RevisionFilters
    search_fields = ["note", "rules__name"]
    ordering_fields = ["number", "created_at", "activated_at", "state"]
    ordering = ["-number"]
    lookup_field = "number"
    lookup_value_regex = "[0-9]{1,9}"

    def filter_queryset(self, queryset: QuerySet[Revision, Any]) -> QuerySet[Revision, Any]:
        """Only lists are narrowed."""
        return super().filter_queryset(queryset).distinct() if self.action == "list" else queryset

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        refuse_unknown(request, "format")
        return self._shown(self.get_object())

    @extend_schema(summary="Write a draft", request=DraftBody, responses={201: WholeRevisionSerializer, **REFUSALS})
    def create(self, request: Request) -> Response:
        body = DraftBody(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        based_on = given.get("based_on")
        if based_on is not None and not Revision.objects.filter(number=based_on).exists():
            told = f"There is no policy revision {based_on}."
            raise Refused(422, "invalid", f"based_on: {told}", errors=[{"path": "based_on", "reason": told}])
        rules, note = _rules(given)
        note = given["note"] or note
        # Rules that were given are the draft's, even if there are none; else it gets those it is based on.
        based_on = based_on if rules or not {"rules", "text"} & given.keys() else None
        made = _done(lambda: revisions.new_draft(by=who(request), rules=rules, based_on=based_on, note=note))
        where = {"Location": f"/api/policy/revisions/{made.number}/"}
        return Response(WholeRevisionSerializer(made).data, status=status.HTTP_201_CREATED, headers=where)

    @extend_schema(
        summary="Give a draft other rules", request=RulesBody, responses={200: WholeRevisionSerializer, **REFUSALS}
    )
    def update(self, request: Request, number: str) -> Response:
        revision = self.get_object()
        body = RulesBody(data=request.data)
        body.is_valid(raise_exception=True)
        rules, _ = _rules(body.validated_data)
        with transaction.atomic():
            _refuse_outdated(revision, body.validated_data.get("digest"))
            _done(lambda: revisions.replace_rules(revision, rules, by=who(request)))
        return self._shown(self.get_object())

    @extend_schema(
        summary="Give a draft other rules", request=RulesBody, responses={200: WholeRevisionSerializer, **REFUSALS}
    )
    def partial_update(self, request: Request, number: str) -> Response:
        """The same as PUT: a draft has nothing else to change but its rules."""
        return self.update(request, number)

    @extend_schema(summary="Throw a draft away", responses={204: None, **REFUSALS})
    def destroy(self, request: Request, number: str) -> Response:
        revision = self.get_object()
        _done(lambda: revisions.discard(revision, by=who(request)))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Make a revision live: a draft, or one that was live before (roll back)",
        request=None,
        responses={200: WholeRevisionSerializer, **REFUSALS},
    )
    @action(detail=True, methods=["post"])
    def activate(self, request: Request, number: str) -> Response:
        revision = self.get_object()
        Nothing.expected(request)
        _done(lambda: revisions.activate(revision, by=who(request)))
        return self._shown(self.get_object())

    @extend_schema(
        summary="Judge a revision beside the live one, without effect, or end that",
        request=ShadowBody,
        responses={200: WholeRevisionSerializer, **REFUSALS},
    )
    @action(detail=True, methods=["post"])
    def shadow(self, request: Request, number: str) -> Response:
        revision = self.get_object()
        body = ShadowBody(data=request.data)
        body.is_valid(raise_exception=True)
        if body.validated_data["on"]:
            _done(lambda: revisions.set_shadow(revision, by=who(request)))
        elif revision.is_shadow:
            _done(lambda: revisions.set_shadow(None, by=who(request)))
        return self._shown(self.get_object())

    @extend_schema(
        summary="What a revision changes against the live one, or another",
        parameters=[TO],
        responses={200: RevisionDifferenceSerializer, 400: Failure, 404: Failure},
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def difference(self, request: Request, number: str) -> Response:
        new = self.get_object()
        refuse_unknown(request, "to", "format")
        old = older(request.query_params.get("to", "live"))
        changes = revisions.difference(revisions.rules_of(old) if old else [], revisions.rules_of(new))
        told = {"old": old.number if old else 0, "new": new.number, "changes": [_change(change) for change in changes]}
        return Response(RevisionDifferenceSerializer(told).data)

    @extend_schema(
        summary="Export a revision as a policy file",
        responses={(200, "application/yaml"): OpenApiTypes.STR},
    )
    @action(detail=True, methods=["get"], pagination_class=None, renderer_classes=[YAMLRenderer, JSONRenderer])
    def export(self, request: Request, number: str) -> Response:
        revision = self.get_object()
        refuse_unknown(request, "format")
        text = policyfile.written(revisions.rules_of(revision), note=revision.note)
        name = {"Content-Disposition": f'attachment; filename="policy-{revision.number}.yaml"'}
        return Response(text, headers=name)

    def _shown(self, revision: Revision) -> Response:
        return Response(WholeRevisionSerializer(revision).data)


def older(named: str) -> Revision | None:
    """The revision to compare with; None for the defaults, which are also what counts while nothing is live."""
    if named == "live":
        return revisions.live()
    if not (named.isascii() and named.isdecimal() and len(named) < 10):
        raise BadParameter("to", "Give live, or the number of a revision.")
    if int(named) == 0:
        return None
    found = Revision.objects.filter(number=int(named)).first()
    if found is None:
        raise BadParameter("to", f"There is no policy revision {named}.")
    return found


def _rules(given: dict[str, Any]) -> tuple[list[RuleSpec], str]:
    """The rules that were handed in, and the note if they came as a file that has one."""
    try:
        if "text" in given:
            file = from_text(given["text"])
            return file.rules, file.note
        return from_json(given.get("rules", ())), ""
    except Flawed as error:
        flaws = [flaw.as_json() for flaw in error.flaws]
        raise Refused(422, "invalid_policy", str(error), errors=flaws) from error


def _done(step: Callable[[], Result]) -> Result:
    try:
        return step()
    except RevisionError as error:
        raise Conflict(str(error)) from error


def _refuse_outdated(revision: Revision, read: str | None) -> None:
    """Held until the rules are written, so that nobody comes in between."""
    held = Revision.objects.select_for_update().get(number=revision.number)
    if read is not None and read != revisions.digest_of(revisions.rules_of(held)):
        raise Conflict(f"Revision {revision.number} has changed since you read it; read it again.")


def _change(change: Change) -> dict[str, Any]:
    before, after = change.before, change.after
    return {
        "kind": change.kind,
        "name": change.name,
        "before": before.as_json() if before else None,
        "after": after.as_json() if after else None,
        "sentence_before": before.sentence if before else None,
        "sentence_after": after.sentence if after else None,
    }
