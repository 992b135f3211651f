"""/api/policy/…: revisions, questions, replays and a shadow's differences."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from policy.api.differences import DifferenceViewSet
from policy.api.evaluate import EvaluateView
from policy.api.replays import ReplayView, ReplayViewSet
from policy.api.revisions import RevisionViewSet

router = SimpleRouter()
router.register("revisions", RevisionViewSet, basename="revision")
router.register("revisions/(?P<number>[0-9]{1,9})/differences", DifferenceViewSet, basename="difference")
router.register("replays", ReplayViewSet, basename="replay")

urlpatterns = [
    path("evaluate/", EvaluateView.as_view(), name="api-policy-evaluate"),
    path("replay/", ReplayView.as_view(), name="api-policy-replay"),
    path("", include(router.urls)),
]
