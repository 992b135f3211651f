"""The path of the OTC draft; its list of tools hangs at OXP's path."""

from django.urls import path

from execution.protocols.otc.views import CallView

urlpatterns = [
    path("call", CallView.as_view(), name="otc-call"),
]
