"""The path of Tool Contract v1."""

from django.urls import path

from execution.protocols.tool_contract.views import ExecuteView

urlpatterns = [
    path("contract/v1/execute", ExecuteView.as_view(), name="contract-execute"),
]
