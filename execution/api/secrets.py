"""/api/secrets/: keep, rotate, discard and delete secrets. For people only; no answer shows a value."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django_filters
from django.db import transaction
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from execution import secretstore
from execution.api.secret_serializers import NewSecretBody, SecretBody, SecretSerializer, SecretVersionBody
from execution.models import Secret
from execution.secretreading import may_see, overview
from execution.secretstore import SecretError
from execution.secretvalues import ValueProblem, from_json
from policy.api.people import IsPerson
from registry.actors import actor, who
from registry.api.bodies import Nothing
from registry.api.errors import Refused
from registry.api.serializers import Failure

_NUMBER = OpenApiParameter("number", OpenApiTypes.INT, OpenApiParameter.PATH)


class SecretFilters(django_filters.FilterSet):
    """Which secrets a list shows."""

    source = django_filters.ChoiceFilter(choices=Secret.Source.choices)


class MayManageSecrets(IsPerson):
    """Seeing needs execution.view_secret, and each step the permission of its name."""

    needed = {"create": "add_secret", "destroy": "delete_secret"}

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        if view.action in ("list", "retrieve", None):
            self.message = "This needs the permission execution.view_secret."
            return may_see(request.user)
        needed = f"execution.{self.needed.get(view.action, 'change_secret')}"
        self.message = f"This needs the permission {needed}."
        return bool(request.user.has_perm(needed))


@extend_schema_view(
    list=extend_schema(summary="List secrets, without their values"),
    retrieve=extend_schema(
        summary="Show a secret: its versions and who uses it, not its value",
        responses={200: SecretSerializer, 403: Failure, 404: Failure},
    ),
)
class SecretViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """Secrets that Placet brings to tools. A value goes in and never comes out."""

    permission_classes = [MayManageSecrets]
    serializer_class = SecretSerializer
    queryset = Secret.objects.none()
    filterset_class = SecretFilters
    search_fields = ["name", "description"]
    ordering_fields = ["name", "created_at"]
    ordering = ["name"]
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Secret]:
        return overview()

    def finalize_response(self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[arg-type]
        answer["Cache-Control"] = "no-store"
        return answer

    @extend_schema(
        summary="Keep a secret",
        request=NewSecretBody,
        responses={201: SecretSerializer, 403: Failure, 422: Failure},
    )
    def create(self, request: Request) -> Response:
        asked = _read(NewSecretBody, request)
        values = _values(asked.pop("value")) if "value" in asked else None
        with _refusing():
            secret = secretstore.create(asked.pop("name"), values, actor=actor(who(request)), **asked)
        return self._shown(secret, status=201)

    @extend_schema(
        summary="Change a secret; a value is its new version, and *** keeps the one it has",
        request=SecretBody,
        responses={200: SecretSerializer, 403: Failure, 404: Failure, 422: Failure},
    )
    def update(self, request: Request, name: str) -> Response:
        secret, asked = self.get_object(), _read(SecretBody, request)
        values = _values(asked.pop("value")) if "value" in asked else None
        with _refusing(), transaction.atomic():
            secretstore.change(secret, actor=actor(who(request)), **asked)
            if values is not None:
                secretstore.add_version(secret, values, actor=actor(who(request)))
        return self._shown(secret)

    @extend_schema(
        summary="Add a version; it is used from the next attempt on",
        request=SecretVersionBody,
        responses={201: SecretSerializer, 403: Failure, 404: Failure, 422: Failure},
    )
    def add_version(self, request: Request, name: str) -> Response:
        secret, asked = self.get_object(), _read(SecretVersionBody, request)
        values = _values(asked["value"])
        with _refusing():
            secretstore.add_version(secret, values, actor=actor(who(request)))
        return self._shown(secret, status=201)

    @extend_schema(
        summary="Destroy the value of one version",
        request=None,
        parameters=[_NUMBER],
        responses={200: SecretSerializer, 403: Failure, 404: Failure},
    )
    def discard(self, request: Request, name: str, number: str) -> Response:
        secret = self.get_object()
        Nothing.expected(request)
        if not secret.versions.filter(number=int(number)).exists():
            raise NotFound
        secretstore.discard(secret, int(number), actor=actor(who(request)))
        return self._shown(secret)

    @extend_schema(
        summary="Delete a secret with all its versions; tools that name it fail from then on",
        responses={204: None, 403: Failure, 404: Failure},
    )
    def destroy(self, request: Request, name: str) -> Response:
        with _refusing():
            secretstore.delete(self.get_object(), actor=actor(who(request)))
        return Response(status=204)

    def _shown(self, secret: Secret, status: int = 200) -> Response:
        return Response(SecretSerializer(self.get_queryset().get(pk=secret.pk)).data, status=status)


def _read(form: type[Any], request: Request) -> dict[str, Any]:
    body = form(data=request.data)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


def _values(value: Any) -> Any:
    with _refusing():
        return from_json(value)


@contextmanager
def _refusing() -> Iterator[None]:
    """Turns what the store refuses into an answer; neither quotes a value."""
    try:
        yield
    except (SecretError, ValueProblem) as error:
        raise Refused(422, "invalid", str(error)) from None
