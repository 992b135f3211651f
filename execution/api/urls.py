from django.urls import path, re_path
from rest_framework.routers import SimpleRouter

from execution.api.evidence import PackViewSet
from execution.api.secrets import SecretViewSet
from execution.api.tools import ToolViewSet
from execution.api.views import CallViewSet
from execution.models.secret import NAME

router = SimpleRouter(use_regex_path=False)
router.register("calls", CallViewSet, basename="call")
router.register("evidence", PackViewSet, basename="evidence")
router.register("tools", ToolViewSet, basename="tool")

# A secret's name may hold slashes, so what comes after it is looked for first.
_SECRET = rf"^secrets/(?P<name>{NAME})"

urlpatterns = [
    *router.urls,
    path("secrets/", SecretViewSet.as_view({"get": "list", "post": "create"}), name="secret-list"),
    re_path(
        rf"{_SECRET}/versions/(?P<number>[0-9]{{1,9}})/discard/$",
        SecretViewSet.as_view({"post": "discard"}),
        name="secret-discard",
    ),
    re_path(rf"{_SECRET}/versions/$", SecretViewSet.as_view({"post": "add_version"}), name="secret-versions"),
    re_path(
        rf"{_SECRET}/$",
        SecretViewSet.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="secret-detail",
    ),
]
