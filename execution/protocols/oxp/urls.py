"""The paths of OXP 1.0; the list of tools is shared with the OTC draft."""

from django.urls import path

from execution.protocols.otc.views import ToolsView as OTCToolsView
from execution.protocols.oxp.views import CallView, HealthView, ToolsView
from execution.protocols.tools import by_profile

urlpatterns = [
    path("health", HealthView.as_view(), name="oxp-health"),
    path("tools", by_profile(oxp=ToolsView.as_view(), otc=OTCToolsView.as_view()), name="oxp-tools"),
    path("tools/call", CallView.as_view(), name="oxp-call"),
]
