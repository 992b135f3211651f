"""The list of doors, one line each."""

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from execution.telemetry.views import exposition

admin.autodiscover()

urlpatterns = [
    path("", include("execution.portal.publish_urls")),
    path("", include("execution.portal.urls")),  # before the admin: its first page is our home
    path("admin/", admin.site.urls),
    path("", include("execution.protocols.oxp.urls")),
    path("", include("execution.protocols.otc.urls")),
    path("", include("execution.protocols.tool_contract.urls")),
    path("", include("execution.protocols.sessions.urls")),
    path("", include("execution.protocols.mcp.urls")),
    path("", include("execution.protocols.rpc.urls")),
    path("metrics", exposition, name="metrics"),
    path("", include("execution.urls")),
    path("", include("policy.urls")),
    path("api/", include("audit.api.urls")),
    path("api/", include("registry.api.urls")),
    path("api/", include("policy.api.urls")),
    path("api/", include("execution.api.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/docs/", login_required(SpectacularSwaggerSplitView.as_view(url_name="api-schema")), name="api-docs"),
]

handler400 = "execution.protocols.unseen.bad_request"
handler404 = "registry.api.errors.page_not_found"
handler500 = "registry.api.errors.server_error"
