"""The path of plain JSON-RPC."""

from django.urls import path

from execution.protocols.rpc.views import RpcDoorView

urlpatterns = [path("rpc", RpcDoorView.as_view(), name="rpc")]
