"""/api/versions/: releases of toolkits, what differs between them, and their end."""

import re
from typing import Any

import django_filters
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from audit.api.lists import refuse_unknown
from registry import access, publishing
from registry.actors import who
from registry.api.bodies import Body
from registry.api.errors import BadParameter, Conflict
from registry.api.rendering import YAMLRenderer
from registry.api.serializers import RISKS, Failure, VersionSerializer
from registry.comparisons import predecessor
from registry.compatibility import compare
from registry.manifests import export_manifest
from registry.manifesttext import manifest_text
from registry.models import ToolkitVersion
from registry.risk import RiskLevel

_ID = re.compile(
    r"(?P<toolkit>[A-Za-z][A-Za-z0-9_]{0,61})@(?P<major>\d{1,9})\.(?P<minor>\d{1,9})\.(?P<patch>\d{1,9})", re.A
)
REFUSALS: dict[int, Any] = {403: Failure, 404: Failure, 409: Failure, 422: Failure}


def all_versions(user: User) -> QuerySet[ToolkitVersion]:
    """The versions this user may see, with all that an answer shows of them."""
    people = ("created_by", "edited_by", "reviewed_by", "published_by")
    return access.visible_versions(user).select_related("toolkit", *people).prefetch_related("tools")


def find_version(user: User, id: str) -> ToolkitVersion:
    """The visible version of an id such as Calculator@1.1.0, without regard to case; Http404 otherwise."""
    match = _ID.fullmatch(id)
    if match is None:
        raise Http404
    toolkit, *numbers = match.groups()
    major, minor, patch = map(int, numbers)
    found = all_versions(user).filter(toolkit__name__iexact=toolkit, major=major, minor=minor, patch=patch).first()
    if found is None:
        raise Http404
    return found


class VersionFilters(django_filters.FilterSet):
    """Which versions a list shows."""

    toolkit = django_filters.CharFilter(field_name="toolkit__name", lookup_expr="iexact")
    state = django_filters.ChoiceFilter(choices=ToolkitVersion.State.choices)
    risk = django_filters.ChoiceFilter(choices=RISKS, method="of_risk")
    in_review = django_filters.BooleanFilter(field_name="review_requested_at", lookup_expr="isnull", exclude=True)

    def of_risk(self, versions: QuerySet[ToolkitVersion], name: str, word: str) -> QuerySet[ToolkitVersion]:
        return versions.filter(risk=RiskLevel.from_word(word))


class DeprecateBody(Body):
    """Why one should move on, and where to."""

    note = serializers.CharField(max_length=2_000, allow_blank=True, default="")
    sunset_on = serializers.DateField(
        allow_null=True, default=None, help_text="From this day on (UTC) it may be withdrawn; every answer says so."
    )


class WithdrawBody(Body):
    """Why nobody may call it any more."""

    reason = serializers.CharField(max_length=2_000)


class Comparison(serializers.Serializer[Any]):
    """What moving from one version to the other would mean to a caller."""

    old = serializers.CharField()
    new = serializers.CharField()
    level = serializers.ChoiceField(choices=[("breaking", "breaking"), ("safe", "safe")])
    reasons = serializers.ListField(child=serializers.CharField())


@extend_schema_view(
    list=extend_schema(summary="List versions"),
    retrieve=extend_schema(summary="Show a version", responses={200: VersionSerializer, 404: Failure}),
)
class VersionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """Versions of the toolkits that the caller may see; drafts only for those who publish or review them."""

    serializer_class = VersionSerializer
    queryset = ToolkitVersion.objects.none()
    filterset_class = VersionFilters
    search_fields = ["toolkit__name", "title", "description", "tools__name"]
    ordering_fields = ["toolkit", "version", "created_at", "published_at", "risk", "state"]
    ordering_columns = {"toolkit": ("toolkit__name",), "version": ("major", "minor", "patch")}
    ordering = ["toolkit__name", "-major", "-minor", "-patch"]
    lookup_field = "id"
    lookup_value_regex = "[^/]+"

    def get_queryset(self) -> QuerySet[ToolkitVersion]:
        return all_versions(who(self.request))

    def get_object(self) -> ToolkitVersion:
        return find_version(who(self.request), self.kwargs["id"])

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        refuse_unknown(request, "format")
        return super().retrieve(request, *args, **kwargs)

    @extend_schema(
        summary="Deprecate a published version: it still answers, and says so",
        request=DeprecateBody,
        responses={200: VersionSerializer, **REFUSALS},
    )
    @action(detail=True, methods=["post"], filter_backends=[])
    def deprecate(self, request: Request, id: str) -> Response:
        version = self._publishable()
        body = DeprecateBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            note, sunset_on = body.validated_data["note"], body.validated_data["sunset_on"]
            publishing.deprecate(version, by=who(request), reason=note, sunset_on=sunset_on)
        except publishing.PublishingError as error:
            raise Conflict(str(error)) from error
        return Response(VersionSerializer(self.get_object()).data)

    @extend_schema(
        summary="Withdraw a version: it can no longer be called",
        request=WithdrawBody,
        responses={200: VersionSerializer, **REFUSALS},
    )
    @action(detail=True, methods=["post"], filter_backends=[])
    def withdraw(self, request: Request, id: str) -> Response:
        version = self._publishable()
        body = WithdrawBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            publishing.withdraw(version, by=who(request), reason=body.validated_data["reason"])
        except publishing.PublishingError as error:
            raise Conflict(str(error)) from error
        return Response(VersionSerializer(self.get_object()).data)

    @extend_schema(
        summary="Compare with another version of the toolkit",
        parameters=[
            OpenApiParameter(
                "to", OpenApiTypes.STR, description="The older version, such as 1.0.0; else the one before."
            )
        ],
        responses={200: Comparison, 400: Failure, 404: Failure},
    )
    @action(detail=True, methods=["get"], filter_backends=[], pagination_class=None)
    def compare(self, request: Request, id: str) -> Response:
        new = self.get_object()
        refuse_unknown(request, "to")
        old = self._older(new, request.query_params.get("to"))
        verdict = compare(old, new)
        told = {"old": str(old), "new": str(new), "level": verdict.level, "reasons": verdict.reasons}
        return Response(Comparison(told).data)

    @extend_schema(
        summary="Export a version's manifest",
        parameters=[OpenApiParameter("format", OpenApiTypes.STR, enum=["json", "yaml"])],
        responses={(200, "application/json"): OpenApiTypes.OBJECT, (200, "application/yaml"): OpenApiTypes.STR},
    )
    @action(
        detail=True,
        methods=["get"],
        filter_backends=[],
        pagination_class=None,
        renderer_classes=[JSONRenderer, YAMLRenderer],
    )
    def manifest(self, request: Request, id: str) -> Response:
        version = self.get_object()
        if not access.may_read_manifest(request.user, version.toolkit):
            raise PermissionDenied(f"Reading the manifest needs the permission 'view' on {version.toolkit.name}.")
        refuse_unknown(request, "format")
        is_yaml = request.accepted_renderer.format == YAMLRenderer.format
        return Response(manifest_text(version) if is_yaml else export_manifest(version))

    def _older(self, new: ToolkitVersion, named: str | None) -> ToolkitVersion:
        old = predecessor(new)
        if named is not None:
            id = named if "@" in named else f"{new.toolkit.name}@{named}"
            old = find_version(who(self.request), id)
        if old is None or old.toolkit_id != new.toolkit_id:
            raise BadParameter("to", f"Name another version of {new.toolkit.name}, such as 1.0.0.")
        return old

    def _publishable(self) -> ToolkitVersion:
        version = self.get_object()
        if not access.may(self.request.user, "publish", version.toolkit):
            raise PermissionDenied(f"This needs the permission 'publish' on {version.toolkit.name}.")
        return version
