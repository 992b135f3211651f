"""The paths of MCP, and where its clients learn how to get a token."""

from django.urls import path

from execution.protocols.mcp.resource_metadata import metadata
from execution.protocols.mcp.views import McpView

urlpatterns = [
    path("mcp", McpView.as_view(), name="mcp"),
    path(".well-known/oauth-protected-resource", metadata, name="resource-metadata"),
    path(".well-known/oauth-protected-resource/mcp", metadata, name="resource-metadata-mcp"),
]
