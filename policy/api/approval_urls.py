"""/api/approvals/, /api/grants/ and /api/break-glass/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from policy.api.approvals import ApprovalViewSet
from policy.api.breakglass import BreakGlassViewSet
from policy.api.grants import GrantViewSet

by_uuid = SimpleRouter(use_regex_path=False)
by_uuid.register("approvals", ApprovalViewSet, basename="approval")
by_number = SimpleRouter()
by_number.register("grants", GrantViewSet, basename="grant")
by_number.register("break-glass", BreakGlassViewSet, basename="break-glass")

urlpatterns = [path("", include(by_uuid.urls)), path("", include(by_number.urls))]
