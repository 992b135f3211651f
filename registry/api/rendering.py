"""YAML for those who ask for it."""

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer, JSONRenderer


class YAMLRenderer(BaseRenderer):
    """Writes a text as it is; anything else, such as an error, as JSON, which is YAML too."""

    media_type = "application/yaml"
    format = "yaml"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return data.encode() if isinstance(data, str) else JSONRenderer().render(data)
