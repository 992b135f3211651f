"""The forms in which bodies come and answers go: JSON, or YAML for manifests."""

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer

from registry.api.errors import BadParameter


class ByFormat(DefaultContentNegotiation):
    """`?format=` or Accept chooses; a format that is not offered is a wrong parameter, not a missing page."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        parser = super().select_parser(request, parsers)
        if parser is None:
            offered = " or ".join(parser.media_type for parser in parsers)
            raise UnsupportedMediaType(request.content_type, f"Send the body as Content-Type: {offered}.")
        return parser

    def filter_renderers(self, renderers: Any, format: str) -> Any:
        try:
            return super().filter_renderers(renderers, format)
        except Http404:
            offered = dict.fromkeys(renderer.format for renderer in renderers)
            raise BadParameter("format", f"Ask for {' or '.join(offered)}.") from None


class YAMLRenderer(BaseRenderer):
    """Writes a text as it is; anything else as JSON, which is YAML too."""

    media_type = "application/yaml"
    format = "yaml"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return data.encode() if isinstance(data, str) else JSONRenderer().render(data)
