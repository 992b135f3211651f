from django.urls import path
from rest_framework.routers import SimpleRouter

from audit.api.views import EventViewSet, SealViewSet, StatusView

router = SimpleRouter(use_regex_path=False)
router.register("audit/events", EventViewSet, basename="event")
router.register("audit/seals", SealViewSet, basename="seal")

urlpatterns = [*router.urls, path("audit/status/", StatusView.as_view(), name="audit-status")]
