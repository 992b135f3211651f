"""/api/versions/{id}/…: the steps of a version that need a person's word."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from policy import reviews
from policy.api.people import IsPerson
from policy.api.serializers import ReviewBody, ReviewSerializer
from registry.actors import who
from registry.api.bodies import Nothing
from registry.api.errors import Conflict
from registry.api.serializers import Failure, VersionSerializer
from registry.api.versions import find_version
from registry.publishing import PublishingError

ID = OpenApiParameter("id", OpenApiTypes.STR, OpenApiParameter.PATH, description="Such as Calculator@1.1.0.")
REFUSALS: dict[int, Any] = {403: Failure, 404: Failure, 409: Failure, 422: Failure}


class RequestReview(APIView):
    """Asks for a second person's sign-off."""

    @extend_schema(
        summary="Ask for a review of a draft",
        parameters=[ID],
        request=None,
        responses={200: VersionSerializer, **REFUSALS},
    )
    def post(self, request: Request, id: str) -> Response:
        Nothing.expected(request)
        version = find_version(who(request), id)
        try:
            reviews.request(version, by=who(request))
        except (reviews.ReviewError, PublishingError) as error:
            raise Conflict(str(error)) from error
        return Response(VersionSerializer(find_version(who(request), id)).data)


class AnswerReview(APIView):
    """A reviewer's approval or refusal; only a logged-in person gives it."""

    permission_classes = [IsPerson]

    @extend_schema(
        summary="Approve or refuse a draft",
        parameters=[ID],
        request=ReviewBody,
        responses={201: ReviewSerializer, **REFUSALS},
    )
    def post(self, request: Request, id: str) -> Response:
        version = find_version(who(request), id)
        body = ReviewBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            review = reviews.answer(version, by=who(request), **body.validated_data)
        except (reviews.ReviewError, PublishingError) as error:
            raise Conflict(str(error)) from error
        return Response(ReviewSerializer(review).data, status=status.HTTP_201_CREATED)


class Publish(APIView):
    """Publishes a draft; from then on it never changes."""

    @extend_schema(
        summary="Publish a draft",
        parameters=[ID],
        request=None,
        responses={200: VersionSerializer, **REFUSALS},
    )
    def post(self, request: Request, id: str) -> Response:
        Nothing.expected(request)
        version = find_version(who(request), id)
        try:
            reviews.publish(version, by=who(request))
        except (reviews.ReviewError, PublishingError) as error:
            raise Conflict(str(error)) from error
        return Response(VersionSerializer(find_version(who(request), id)).data)
