"""A message between its five bytes of prefix and its JSON; what is compressed, cut or doubled is none."""

from typing import Any

from grpclib.encoding.base import CodecBase

SUBTYPE = "json"
CONTENT_TYPE = f"application/grpc+{SUBTYPE}"
PREFIX = 5  # one byte that says whether it is compressed, four for the length


class BadMessage(Exception):
    """Bytes that are not exactly one plain message."""


class JSONCodec(CodecBase):
    """For servers made with grpclib: bytes of JSON go through as they are, their reader is stricter than a codec."""

    __content_subtype__ = SUBTYPE

    def encode(self, message: Any, message_type: Any) -> bytes:
        return bytes(message)

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return bytes(data)


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def length(prefix: bytes) -> int:
    """How long the message is that begins so."""
    if prefix[0] != 0:
        raise BadMessage("it is compressed, which nobody asked for")
    return int.from_bytes(prefix[1:PREFIX], "big")


def unframed(data: bytes) -> bytes:
    """The one message that these bytes are."""
    if len(data) < PREFIX:
        raise BadMessage("there is no message" if not data else "the message is cut short")
    size = length(data)
    if len(data) != PREFIX + size:
        raise BadMessage("the message is cut short" if len(data) < PREFIX + size else "there is more than one message")
    return data[PREFIX:]
