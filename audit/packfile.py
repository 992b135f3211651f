"""PackFile: a zip whose every byte follows from its content, closed by a signed list of what is in it."""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from audit.attestation import PACK, attested

FORMAT = "placet.evidence/1"
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
MAX_BYTES = 2_000_000_000  # of one file; beyond this a zip needs extensions that not every reader has

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest moment a zip can name: when a pack was made is no part of it


class TooLarge(Exception):
    """One file of the pack would be larger than a plain zip can hold."""


class Entry:
    """One file of the pack while it is written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out, self._sum, self.size = out, hashlib.sha256(), 0

    def write(self, piece: bytes | bytearray) -> None:
        self.size += len(piece)
        if self.size > MAX_BYTES:
            raise TooLarge
        self._sum.update(piece)
        self._out.write(piece)

    @property
    def sha256(self) -> str:
        return self._sum.hexdigest()


class PackFile:
    """Files are added in order, each in pieces; last of all `sign` adds the signed list of them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(file, "w", allowZip64=False)
        self._listed: list[dict[str, Any]] = []

    def __enter__(self) -> "PackFile":
        return self

    def __exit__(self, *failure: object) -> None:
        self._zip.close()

    @contextmanager
    def entry(self, name: str, *, is_plain: bool = False) -> Iterator[Entry]:
        """A file that is written in the block."""
        info = zipfile.ZipInfo(name, _EPOCH)
        info.create_system, info.external_attr = 3, 0o100644 << 16  # a file on Unix, wherever it was made
        info.compress_type = zipfile.ZIP_STORED if is_plain else zipfile.ZIP_DEFLATED
        with self._zip.open(info, "w") as out:
            entry = Entry(out)
            yield entry
        packed = self._packed(info)
        self._listed.append({"name": name, "size": entry.size, "sha256": entry.sha256, "packed_sha256": packed})

    def add(self, name: str, content: bytes | bytearray | str) -> None:
        """A file whose whole content is at hand."""
        with self.entry(name) as entry:
            entry.write(content.encode() if isinstance(content, str) else content)

    def sign(self, facts: Mapping[str, Any]) -> None:
        """Write down what the pack is about and what is in it, and sign that."""
        body = written({"format": FORMAT, **facts, "files": list(self._listed)})
        key_id, signature = attested(PACK, body)
        with self.entry(MANIFEST, is_plain=True) as entry:
            entry.write(body)
        with self.entry(SIGNATURE, is_plain=True) as entry:
            entry.write(written({"key_id": key_id, "signature": signature.hex()}))

    def _packed(self, info: zipfile.ZipInfo) -> str:
        """The hash of the compressed bytes as they stand in the zip: they have spare bits, which nobody may use."""
        end = self._file.tell()
        self._file.seek(info.header_offset + 30 + len(info.filename))
        found, left = hashlib.sha256(), info.compress_size
        while left and (piece := self._file.read(min(left, 1 << 20))):
            found.update(piece)
            left -= len(piece)
        self._file.seek(end)
        return found.hexdigest()


def written(value: Any) -> bytes:
    """JSON for people and programs: sorted, indented, nothing beyond ASCII."""
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
