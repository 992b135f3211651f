"""An answer's content as it was before someone packed it, within the same limit as the packed one."""

import zlib
from collections.abc import Iterator

from execution.egress.errors import AnswerTooLarge, EgressFailed

# Window bits for zlib: gzip's frame, or zlib's own, which is what "deflate" means.
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


def decoded(pieces: Iterator[bytes], coding: str, limit: int) -> bytes:
    """The content, unpacked no further than the limit although nobody asked for a packed one."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return b"".join(pieces)
    if coding not in _WINDOWS:
        raise EgressFailed("the answer is packed in a way that was not asked for", True, can_retry=False)
    unpacker, size, content = zlib.decompressobj(_WINDOWS[coding]), 0, []
    try:
        for piece in pieces:
            part = unpacker.decompress(piece, limit - size + 1)
            size += len(part)
            if size > limit:
                raise AnswerTooLarge(limit)
            if unpacker.unused_data:
                raise EgressFailed("the answer is broken: something follows what was packed", True)
            content.append(part)
    except zlib.error as error:
        raise EgressFailed("the answer is broken: it cannot be unpacked", True) from error
    if not unpacker.eof and (size or content):
        raise EgressFailed("the answer is broken: what was packed ends too early", True)
    return b"".join(content)
