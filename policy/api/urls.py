"""/api/agents/, and the steps of a version that need a person's word."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from policy.api import reviews, schema  # noqa: F401  the schema learns how agents prove themselves
from policy.api.accessrequests import AccessRequestViewSet
from policy.api.agents import AgentViewSet
from policy.api.permissions import ToolkitPermissionsView

router = SimpleRouter()
router.register("agents", AgentViewSet, basename="agent")
router.register("access-requests", AccessRequestViewSet, basename="access-request")

urlpatterns = [
    path("versions/<str:id>/request-review/", reviews.RequestReview.as_view(), name="version-request-review"),
    path("versions/<str:id>/review/", reviews.AnswerReview.as_view(), name="version-review"),
    path("versions/<str:id>/publish/", reviews.Publish.as_view(), name="version-publish"),
    path("toolkits/<str:name>/permissions/", ToolkitPermissionsView.as_view(), name="toolkit-permissions"),
    path("policy/", include("policy.api.policy_urls")),
    path("", include("policy.api.approval_urls")),
    path("", include(router.urls)),
]
