"""Bodies of /api/: strict JSON everywhere, YAML text where a manifest is uploaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from rest_framework import exceptions
from rest_framework.parsers import BaseParser

from registry import strictjson
from registry.api.errors import Refused, TooLarge

MAX_BYTES = 1_000_000


class StrictJSONParser(BaseParser):
    """JSON with bounds: size, depth, duplicate keys, numbers and characters, as at every door."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        body = _read(stream, media_type, parser_context)
        try:
            return strictjson.loads(body, max_bytes=MAX_BYTES)
        except strictjson.StrictJSONError as error:
            raise Refused(error.status, error.code, error.message) from error


@dataclass(frozen=True, slots=True)
class YAMLText:
    """A YAML body as it came; whoever wants it parses it, safely."""

    body: bytes


class YAMLTextParser(BaseParser):
    """Hands a YAML body on unread, bounded in size."""

    media_type = "application/yaml"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return YAMLText(_read(stream, media_type, parser_context))


class XYAMLTextParser(YAMLTextParser):
    """Under the name YAML had before it was registered."""

    media_type = "application/x-yaml"


class TextYAMLParser(YAMLTextParser):
    """Under the name many clients give it."""

    media_type = "text/yaml"


def _read(stream: IO[bytes], media_type: str | None, context: Mapping[str, Any] | None) -> bytes:
    for parameter in (media_type or "").split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset" and value.strip('"').lower().replace("-", "") not in {"utf8", "usascii"}:
            raise exceptions.UnsupportedMediaType(media_type or "", "Send the body as UTF-8.")
    declared = str(context["request"].META.get("CONTENT_LENGTH") or "0") if context else "0"
    body = b"" if declared.isdecimal() and int(declared) > MAX_BYTES else stream.read(MAX_BYTES + 1)
    if (not body and declared != "0") or len(body) > MAX_BYTES:
        raise TooLarge(MAX_BYTES)
    return body
