"""/api/toolkits/, /api/versions/, /api/tools/ and /api/manifests/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from registry.api.manifests import ManifestView
from registry.api.toolkits import ToolkitViewSet
from registry.api.tools import ToolViewSet
from registry.api.versions import VersionViewSet

router = SimpleRouter()
router.register("toolkits", ToolkitViewSet, basename="toolkit")
router.register("versions", VersionViewSet, basename="version")
router.register("tools", ToolViewSet, basename="tool")

urlpatterns = [
    path("manifests/", ManifestView.as_view(), name="manifest-upload"),
    path("", include(router.urls)),
]
