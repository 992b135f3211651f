#!/usr/bin/env python3
"""Checks a pack of evidence that Placet made: python3 verify.py [PACK.zip or FOLDER] [--key HEX] [--json]

Needs Python 3.9 or later and nothing else. Ends with 0 if everything holds, with 1 and the first bad row if anything
was changed, with 2 if there is nothing to check. Take this script, and the public key, from where you trust them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

SEAL, PACK = b"placet.audit.seal.v1\0", b"placet.evidence.pack.v1\0"
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
ORIGIN = "00" * 32  # what the first event of a subject, and the first seal, point back to

# Ed25519 as in RFC 8032: the field, the order of the group, the curve, and its base point.
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]


class Bad(Exception):
    """Something that is not as it was packed: where, and what is wrong."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what


def _point(encoded: bytes) -> Point | None:
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(CURVE * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def _sum(a: Point, b: Point) -> Point:
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * CURVE % P, 2 * a[2] * b[2] % P
    i, j, k, m = f - e, h - g, h + g, f + e
    return i * j % P, k * m % P, j * k % P, i * m % P


_BASE = _point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the owner of the public key signed exactly this message."""
    a = _point(key) if len(key) == 32 and len(signature) == 64 else None
    s = int.from_bytes(signature[32:], "little")
    if a is None or _BASE is None or s >= ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    minus: Point = (P - a[0], a[1], 1, P - a[3])
    both, total = _sum(_BASE, minus), (0, 1, 1, 0)
    for bit in range(252, -1, -1):  # s times the base point minus h times the key, both at once
        total = _sum(total, total)
        choice = (s >> bit & 1, h >> bit & 1)
        if choice != (0, 0):
            total = _sum(total, both if choice == (1, 1) else _BASE if choice[0] else minus)
    inverse = pow(total[2], P - 2, P)
    x, y = total[0] * inverse % P, total[1] * inverse % P
    return signature[:32] == (y | (x & 1) << 255).to_bytes(32, "little")


class Files:
    """The files of a pack, from a zip or from the folder it was unpacked into."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.zip = None if path.is_dir() else zipfile.ZipFile(path)
        if self.zip is not None:
            self.names = self.zip.namelist()
        else:
            inside = [each for each in sorted(path.rglob("*")) if not each.is_dir()]
            self.names = [each.relative_to(path).as_posix() for each in inside]

    def open(self, name: str) -> IO[bytes]:
        return self.zip.open(name) if self.zip is not None else (self.path / name).open("rb")

    def read(self, name: str) -> bytes:
        if name not in self.names:
            raise Bad(name, "this file is missing")
        with self.open(name) as file:
            return file.read()

    def lines(self, name: str) -> Iterator[dict[str, Any]]:
        with self.open(name) as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except ValueError:
                    raise Bad(f"{name}, row {number}", "it is not JSON") from None


class Verifier:
    """One walk through a pack; every step raises Bad at the first thing that is wrong."""

    def __init__(self, path: Path, *keys: str) -> None:
        self.files = Files(path)
        self.trusted = {key.lower() for key in keys}
        self.said: list[str] = []
        self.manifest: dict[str, Any] = {}
        self.keys: dict[str, bytes] = {}
        self.seals: list[dict[str, Any]] = []

    def verify(self) -> None:
        for step in (
            self.signature,
            self.content,
            self.container,
            self.seal_lines,
            self.proofs,
            self.chains,
            self.words,
        ):
            step()

    def signature(self) -> None:
        """The list of files is signed; by whom, only a key from elsewhere can tell."""
        body, signed = self.files.read(MANIFEST), _json(SIGNATURE, self.files.read(SIGNATURE))
        self.manifest = _json(MANIFEST, body)
        for name, text in _json("keys.json", self.files.read("keys.json")).items():
            raw = bytes.fromhex(text)
            if hashlib.sha256(raw).hexdigest()[:16] != name:
                raise Bad("keys.json", f"the key called {name} has another name")
            self.keys[name] = raw
        if self.trusted:
            self.keys = {name: raw for name, raw in self.keys.items() if raw.hex() in self.trusted}
        key = self.keys.get(signed["key_id"])
        if key is None:
            raise Bad(SIGNATURE, f"the pack is signed with the key {signed['key_id']}, which is not the one you trust")
        if not is_signed(key, bytes.fromhex(signed["signature"]), PACK + body):
            raise Bad(MANIFEST, "the signature does not fit this list of files")
        if self.files.read(SIGNATURE) != _written(signed):
            raise Bad(SIGNATURE, "it is written in another way than Placet writes it")
        self.said.append(f"the list of files is signed with the key {key.hex()}")

    def content(self) -> None:
        """Every file is the one on the list, and no other file is there."""
        listed = self.manifest["files"]
        wanted = [each["name"] for each in listed] + [MANIFEST, SIGNATURE]
        for name in self.files.names:
            if name not in wanted:
                raise Bad(name, "this file is not part of the pack")
        for each in listed:
            name = each["name"]
            if name not in self.files.names:
                raise Bad(name, "this file is missing")
            if _digest(self.files, name) != each["sha256"]:
                raise Bad(self._place(name), "its text is not the one that was packed")
        self.said.append(f"{len(listed)} files are byte for byte as they were packed")

    def _place(self, name: str) -> str:
        """Where a changed file differs, as exactly as can be known."""
        if name != "events.jsonl":
            return name
        digests = self.files.read("events.rows").decode("ascii", "replace").split()
        with self.files.open(name) as file:
            for number, line in enumerate(file, 1):
                if number > len(digests) or hashlib.sha256(line).hexdigest()[:16] != digests[number - 1]:
                    return f"{name}, row {number}{_event(line)}"
        return f"{name}, after its last row"

    def container(self) -> None:
        """The zip itself says nothing that its files do not: no second entry, no spare byte."""
        if self.files.zip is None:
            return
        packed = {each["name"]: each["packed_sha256"] for each in self.manifest["files"]}
        directory, offset, count = b"", 0, 0
        with self.files.path.open("rb") as file:
            for name in [*packed, MANIFEST, SIGNATURE]:
                info, plain = self.files.zip.getinfo(name), name.encode("ascii")
                method = 0 if name in (MANIFEST, SIGNATURE) else 8
                sizes = struct.pack("<3L", info.CRC, info.compress_size, info.file_size)
                facts = struct.pack("<5H", 20, 0, method, 0, 33) + sizes
                local = b"PK\3\4" + facts + struct.pack("<2H", len(plain), 0) + plain
                if info.header_offset != offset or file.read(len(local)) != local:
                    raise Bad(name, "its place in the zip is not as it was packed")
                if _sum_of(file, info.compress_size) != packed.get(name) and name in packed:
                    raise Bad(name, "its compressed form is not the one that was packed")
                shared = struct.pack("<5H2L", len(plain), 0, 0, 0, 0, 0o100644 << 16, offset)
                directory += b"PK\1\2" + struct.pack("<H", 0x314) + facts + shared + plain
                offset, count = file.tell(), count + 1
            end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), offset, 0)
            if file.read() != directory + end:
                raise Bad("the zip", "its directory is not as it was packed")
        self.said.append("the zip holds nothing else")

    def seal_lines(self) -> None:
        """Each seal is signed; of two in a row, the later one names the earlier one."""
        before: tuple[int, str] | None = None
        for seal in self.files.lines("seals.jsonl"):
            where, signature = f"seals.jsonl, seal {seal['n']}", seal.pop("signature")
            body = json.dumps(seal, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
            key = self.keys.get(seal["key_id"])
            if key is None or not is_signed(key, bytes.fromhex(signature), SEAL + body):
                raise Bad(where, "the signature does not fit what the seal says, or is of a key you do not trust")
            if before is not None and seal["n"] <= before[0]:
                raise Bad(where, "it stands out of order")
            if before is not None and seal["n"] == before[0] + 1 and seal["prev_seal_hash"] != before[1]:
                raise Bad(where, "it does not follow from the seal before")
            before = seal["n"], hashlib.sha256(SEAL + body + bytes.fromhex(signature)).hexdigest()
            self.seals.append(seal)
        span = f", made from {self.seals[0]['sealed_at']} to {self.seals[-1]['sealed_at']}" if self.seals else ""
        self.said.append(f"{len(self.seals)} seals are signed{span}")

    def proofs(self) -> None:
        """The events of each seal lead to the root that it signed."""
        events = self.files.lines("events.jsonl")
        event = next(events, None)
        given = {proof["seal"]: proof["hashes"] for proof in self.files.lines("proofs.jsonl")}
        sealed = unsealed = last_id = 0
        for seal in self.seals:
            shown: dict[int, bytes] = {}
            while event is not None and event["id"] <= seal["last_id"]:
                place = _place_in(seal, event["id"])
                if event["id"] <= last_id:
                    raise Bad(_named(event), "it stands out of order")
                if place is None:
                    unsealed += 1
                else:
                    own = event["id"].to_bytes(8, "big") + bytes.fromhex(event["hash"])
                    shown[place] = hashlib.sha256(b"\0" + own).digest()
                last_id, event = event["id"], next(events, None)
            sealed += len(shown)
            _lead_to_root(seal, shown, given.get(seal["n"], []))
        rest = int(event is not None) + sum(1 for _ in events)
        if unsealed + rest != self.manifest["unsealed"] or sealed + unsealed + rest != self.manifest["events"]:
            raise Bad("events.jsonl", "there are not as many events, sealed or not, as the signed list says")
        self.said.append(f"{sealed} events with these hashes existed when their seals were made")
        if unsealed + rest:
            self.said.append(f"{unsealed + rest} events were not sealed yet: only the pack's own signature covers them")

    def chains(self) -> None:
        """Each event names the one before it, subject by subject."""
        tails: dict[tuple[str, str], tuple[int, str]] = {}
        links = holes = 0
        for event in self.files.lines("events.jsonl"):
            subject = event["subject_kind"], event["subject_id"]
            seq, tail = tails.get(subject, (0, ORIGIN))
            if event["seq"] == seq + 1:
                links += 1
                if event["prev_hash"] != tail:
                    raise Bad(_named(event), "it does not follow from the event before it")
            elif event["seq"] <= seq:
                raise Bad(_named(event), "it stands out of order in its chain")
            elif "call" in self.manifest["scope"]:
                raise Bad(_named(event), f"what came before it is missing: it should be number {seq + 1}")
            else:
                holes += 1
            tails[subject] = event["seq"], event["hash"]
        self.said.append(f"{links} links in the chains of {len(tails)} subjects hold")
        if holes:
            self.said.append(f"{holes} events follow on events that were not asked for, so those links are not shown")

    def words(self) -> None:
        """What only the maker could check, because it needs the secret key, is the maker's word."""
        told = self.manifest["keyed_hashes"]
        if told["first_bad"] is not None:
            bad = told["first_bad"]
            where = f"event {bad['id']} ({bad['subject_kind']} {bad['subject_id']}, number {bad['seq']})"
            raise Bad(where, "when the pack was made, its keyed hash did not fit what it says")
        self.said.append(f"the maker signed that the keyed hashes of {told['checked']} events fitted what they say")


def _lead_to_root(seal: dict[str, Any], shown: dict[int, bytes], hashes: list[str]) -> None:
    places, left = sorted(shown), iter(hashes)

    def node(start: int, end: int, first: int, last: int) -> bytes:
        """The root over leaves start to end; places[first:last] are those of them that are shown."""
        if first == last:
            return bytes.fromhex(next(left))
        if end - start == 1:
            return shown[start]
        middle = start + (1 << (end - start - 1).bit_length() - 1)
        cut = bisect_left(places, middle, first, last)
        both = node(start, middle, first, cut) + node(middle, end, cut, last)
        return hashlib.sha256(b"\1" + both).digest()

    try:
        found = node(0, seal["count"], 0, len(places)).hex()
    except (StopIteration, ValueError, KeyError):
        found = ""
    if found != seal["merkle_root"] or next(left, None) is not None:
        ids = f"{seal['first_id']} to {seal['last_id']}"
        raise Bad(f"seal {seal['n']} over events {ids}", "the events do not lead to the root that was signed")


def _place_in(seal: dict[str, Any], id: int) -> int | None:
    """Which leaf an event is; none if the seal knows nothing of it."""
    if id < seal["first_id"] or any(start <= id <= end for start, end in seal["gaps"]):
        return None
    return int(id - seal["first_id"] - sum(end - start + 1 for start, end in seal["gaps"] if end < id))


def _digest(files: Files, name: str) -> str:
    with files.open(name) as file:
        return _sum_of(file, sys.maxsize)


def _sum_of(file: IO[bytes], size: int) -> str:
    found = hashlib.sha256()
    while size and (piece := file.read(min(size, 1 << 20))):
        found.update(piece)
        size -= len(piece)
    return found.hexdigest()


def _json(name: str, text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Bad(name, "it is not JSON") from None


def _written(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def _event(line: bytes) -> str:
    try:
        return f" ({_named(json.loads(line))})"
    except (ValueError, KeyError, TypeError):
        return ""


def _named(event: dict[str, Any]) -> str:
    return f"event {event['id']} ({event['subject_kind']} {event['subject_id']}, number {event['seq']})"


def _plain(text: str) -> str:
    """Whoever wrote the pack must not write on this terminal."""
    return "".join(each if " " <= each <= "~" else f"\\u{ord(each):04x}" for each in text)


def main(arguments: list[str] | None = None) -> int:
    """Print what was checked and a verdict."""
    parser = argparse.ArgumentParser(description="Check a pack of evidence made by Placet.")
    parser.add_argument("pack", nargs="?", default=str(Path(__file__).parent), help="the zip, or its unpacked folder")
    parser.add_argument("--key", action="append", default=[], help="a public key you trust, in hex, from elsewhere")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(arguments)
    bad: Bad | None = None
    said: list[str] = []
    try:
        verifier = Verifier(Path(chosen.pack), *chosen.key)
        said = verifier.said
        verifier.verify()
    except Bad as found:
        bad = found
    except FileNotFoundError as error:
        sys.stderr.write(f"Nothing to check: {error}\n")
        return 2
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError) as error:
        bad = Bad("the zip", f"it cannot be read ({error!a})")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        bad = Bad("the pack", f"it is not written as Placet writes it ({error!a})")
    if chosen.json:
        told = {"where": bad.where, "what": bad.what} if bad else None
        lines = [json.dumps({"ok": bad is None, "checked": said, "first_bad": told})]
    else:
        lines = [f"  ok   {each}" for each in said]
        if bad is not None:
            lines += [f"  BAD  {bad}", f"VERDICT: this pack does NOT hold. First bad row: {bad}"]
        else:
            note = "  note the key came with the pack: compare it with one from elsewhere, or give it with --key"
            lines += [*([] if chosen.key else [note]), "VERDICT: this pack holds."]
    sys.stdout.write("".join(f"{_plain(line)}\n" for line in lines))
    return int(bad is not None)


if __name__ == "__main__":
    sys.exit(main())
