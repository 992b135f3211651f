"""The paths of Tool Contract v1."""

from django.urls import path

from execution.protocols.tool_contract.callbacks import CallbackView
from execution.protocols.tool_contract.views import ExecuteView

urlpatterns = [
    path("contract/v1/execute", ExecuteView.as_view(), name="contract-execute"),
    path("v1/tool-callbacks/<path:request_id>", CallbackView.as_view(), name="tool-callback"),
]
