"""/api/manifests/: hand in a manifest, or only try what it would do."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from audit.api.lists import refuse_unknown
from registry.actors import who
from registry.api.errors import BadParameter, Refused
from registry.api.parsing import StrictJSONParser, TextYAMLParser, XYAMLTextParser, YAMLText, YAMLTextParser
from registry.api.serializers import Failure
from registry.manifests import ManifestError
from registry.uploads import Upload, upload


class VerdictSerializer(serializers.Serializer[Any]):
    """Whether callers of the version before can move on without a change."""

    old = serializers.CharField()
    level = serializers.ChoiceField(choices=[("breaking", "breaking"), ("safe", "safe")])
    reasons = serializers.ListField(child=serializers.CharField())


class UploadSerializer(serializers.Serializer[Any]):
    """What the manifest did, or in a dry run would do."""

    version = serializers.CharField(help_text="Such as Calculator@1.1.0.")
    outcome = serializers.ChoiceField(choices=["created", "updated", "unchanged"])
    dry_run = serializers.BooleanField()
    state = serializers.CharField()
    digest = serializers.CharField()
    comparison = VerdictSerializer(allow_null=True)
    difference = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="Lines of the manifest, with - and + before them."
    )


class ManifestView(APIView):
    """A manifest becomes a draft; running it twice changes nothing."""

    parser_classes = [StrictJSONParser, YAMLTextParser, XYAMLTextParser, TextYAMLParser]

    @extend_schema(
        summary="Upload a manifest",
        operation_id="manifests_upload",
        parameters=[OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="1: try it and take it back.")],
        request={"application/json": OpenApiTypes.OBJECT, "application/yaml": OpenApiTypes.STR},
        responses={
            200: UploadSerializer,
            201: UploadSerializer,
            400: Failure,
            403: Failure,
            413: Failure,
            422: Failure,
        },
    )
    def post(self, request: Request) -> Response:
        is_trial = _flag(request, "dry_run")
        given = request.data.body if isinstance(request.data, YAMLText) else request.data
        try:
            if not isinstance(given, bytes | dict):
                raise ManifestError("", "must be a mapping of fields")
            done = upload(given, by=who(request), is_trial=is_trial)
        except ManifestError as error:
            wrong = {"path": error.told_path, "line": error.line, "reason": error.reason}
            raise Refused(422, "invalid_manifest", str(error), errors=[wrong]) from error
        is_new = done.outcome == "created" and not is_trial
        return Response(_shown(done, is_trial), status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)


def _shown(done: Upload, is_trial: bool) -> Any:
    comparison = done.comparison and {
        "old": str(done.comparison.old),
        "level": done.comparison.verdict.level,
        "reasons": done.comparison.verdict.reasons,
    }
    told = {
        "version": done.name,
        "outcome": done.outcome,
        "dry_run": is_trial,
        "state": done.version.state,
        "digest": done.version.digest,
        "comparison": comparison,
        "difference": done.difference,
    }
    return UploadSerializer(told).data


def _flag(request: Request, name: str) -> bool:
    refuse_unknown(request, name)
    value = request.query_params.get(name, "0")
    if value not in {"0", "1", "true", "false"}:
        raise BadParameter(name, "Give 1 or 0.")
    return value in {"1", "true"}
