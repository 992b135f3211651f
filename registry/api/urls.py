"""/api/toolkits/, /api/versions/ and /api/manifests/; /api/tools/ is where it is known what an agent may call."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from registry.api.manifests import ManifestView
from registry.api.toolkits import ToolkitViewSet
from registry.api.versions import VersionViewSet

router = SimpleRouter()
router.register("toolkits", ToolkitViewSet, basename="toolkit")
router.register("versions", VersionViewSet, basename="version")

urlpatterns = [
    path("manifests/", ManifestView.as_view(), name="manifest-upload"),
    path("", include(router.urls)),
]
