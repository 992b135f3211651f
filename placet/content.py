"""What a tool may return besides JSON values: texts, pictures, sounds and resources."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be read, as opposed to a value to be processed."""

    text: str

    def as_block(self) -> dict[str, Any]:
        return {"type": "text", "text": _text("text", self.text)}


@dataclass(frozen=True, slots=True)
class Image:
    """A picture."""

    data: bytes
    mime_type: str

    def as_block(self) -> dict[str, Any]:
        return {"type": "image", "data": _base64("data", self.data), "mimeType": _text("mime_type", self.mime_type)}


@dataclass(frozen=True, slots=True)
class Audio:
    """A sound."""

    data: bytes
    mime_type: str

    def as_block(self) -> dict[str, Any]:
        return {"type": "audio", "data": _base64("data", self.data), "mimeType": _text("mime_type", self.mime_type)}


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """The address of something the caller can fetch by itself."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""

    def as_block(self) -> dict[str, Any]:
        block = {"type": "resource_link", "uri": _text("uri", self.uri), "name": _text("name", self.name)}
        for key, text in (("title", self.title), ("description", self.description), ("mimeType", self.mime_type)):
            if text:
                block[key] = _text(key, text)
        return block


@dataclass(frozen=True, slots=True)
class Resource:
    """A document with its address: either `text` or `blob`."""

    uri: str
    mime_type: str = ""
    text: str | None = None
    blob: bytes | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise ValueError("A Resource holds either text or blob")

    def as_block(self) -> dict[str, Any]:
        resource = {"uri": _text("uri", self.uri)}
        if self.mime_type:
            resource["mimeType"] = _text("mime_type", self.mime_type)
        if self.text is not None:
            resource["text"] = _text("text", self.text)
        else:
            resource["blob"] = _base64("blob", self.blob)
        return {"type": "resource", "resource": resource}


CONTENT_TYPES = (Text, Image, Audio, ResourceLink, Resource)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {type(value).__name__}")
    return value


def _base64(name: str, value: object) -> str:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    return b64encode(value).decode("ascii")
