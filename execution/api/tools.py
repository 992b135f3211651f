"""`/api/tools/`: the registry's list, and what an agent may call in the form that the API of a model takes."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from audit.api.lists import refuse_unknown
from execution.protocols.mcp.formats import FORMATS, formatted
from policy.caller import Caller
from registry.api import tools

RENDERERS: list[type[BaseRenderer]] = [
    type(f"{name.title()}Renderer", (JSONRenderer,), {"format": name}) for name in FORMATS
]
FORMAT = OpenApiParameter(
    "format",
    OpenApiTypes.STR,
    enum=["json", *FORMATS],
    description=(
        "`json` (the default) is this list. The others are for agents: `{format, tools}` with every tool that the"
        " agent may call, in its latest version and on one page, ready for the API of a model."
    ),
)
EXAMPLE = OpenApiExample(
    "With format=anthropic",
    value={
        "format": "anthropic",
        "tools": [{"name": "Calculator_Add", "description": "Adds.", "input_schema": {"type": "object"}}],
    },
    response_only=True,
)


class ToolViewSet(tools.ToolViewSet):
    """Tools of the toolkits that the caller may see."""

    def get_renderers(self) -> list[BaseRenderer]:
        more = RENDERERS if self.action == "list" else []
        return [*super().get_renderers(), *(renderer() for renderer in more)]

    @extend_schema(summary="List tools", parameters=[FORMAT], examples=[EXAMPLE])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        form = request.accepted_renderer.format
        if form not in FORMATS:
            return super().list(request, *args, **kwargs)
        refuse_unknown(request, "format")
        if not isinstance(request.auth, Caller):
            raise PermissionDenied("This is what an agent may call: send an agent's key as 'Authorization: Bearer …'")
        return Response({"format": form, "tools": formatted(request.auth, form)})
