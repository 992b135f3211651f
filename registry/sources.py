"""The files of a Python toolkit as one bundle, named by a digest of what is in it."""

import hashlib
import io
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from uuid import uuid4

from django.conf import settings

from audit.canonical import canonical
from registry.models import Source, Toolkit

MAX_FILES = 500
MAX_BYTES = 5_000_000
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_MANIFEST = re.compile(
    rb"""^apiVersion[ \t]*:[ \t]*["']?placet\.dev/|"apiVersion"\s{0,9}:\s{0,9}"placet\.dev/""", re.MULTILINE
)
_TOOLKIT = re.compile(rb"""^kind[ \t]*:[ \t]*["']?Toolkit\b|"kind"\s{0,9}:\s{0,9}"Toolkit\"""", re.MULTILINE)
_HEAD = 64_000  # what tells a manifest from other data stands near its beginning
_EPOCH = (1980, 1, 1, 0, 0, 0)


class SourceError(ValueError):
    """A folder that cannot be bundled, or a bundle that is not what its name says."""


def files_of(folder: Path) -> dict[str, bytes]:
    """The files that make up a toolkit's code, by relative path; hidden files, caches and manifests are left out."""
    found: dict[str, bytes] = {}
    size = 0
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if len(found) >= MAX_FILES:
            raise SourceError(f"{folder} holds more than {MAX_FILES} files; a toolkit needs a folder of its own")
        size += path.stat().st_size
        if size > MAX_BYTES:
            raise SourceError(f"{folder} holds more than {MAX_BYTES} bytes; a toolkit needs a folder of its own")
        content = path.read_bytes()
        if path.parent == folder and is_manifest(path, content):
            continue
        found[name] = content
    return found


def is_manifest(path: Path, content: bytes) -> bool:
    """Whether a file is a toolkit's manifest, by its ending and its first fields."""
    head = content[:_HEAD]
    is_data = path.suffix in {".yaml", ".yml", ".json"}
    return is_data and _MANIFEST.search(head) is not None and _TOOLKIT.search(head) is not None


def digest_of(files: Mapping[str, bytes]) -> str:
    """The name of a bundle: the same files give the same name, whatever wrote them and when."""
    listing = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return "sha256:" + hashlib.sha256(canonical(listing)).hexdigest()


def keep(toolkit: Toolkit, files: Mapping[str, bytes]) -> Source:
    """Stores a bundle for a toolkit; the same bundle is stored once."""
    content = _packed(files)
    source, _ = Source.objects.get_or_create(
        toolkit=toolkit, digest=digest_of(files), defaults={"content": content, "size": len(content)}
    )
    return source


def unpack(digest: str) -> Path:
    """The folder with the files of a bundle, made at most once on this machine and then only read."""
    if not DIGEST.fullmatch(digest):
        raise SourceError("a source is named by sha256: and 64 hexadecimal digits")
    home = Path(settings.PLACET_HOME) / "sources"
    folder = home / digest.removeprefix("sha256:")
    if folder.is_dir():
        return folder
    source = Source.objects.filter(digest=digest).first()
    if source is None:
        raise SourceError(f"no toolkit has the source {digest}")
    files = _unpacked(bytes(source.content))
    if digest_of(files) != digest:
        raise SourceError(f"the stored source {digest} was altered")
    home.mkdir(parents=True, exist_ok=True)
    draft = home / f".{uuid4().hex}"
    _write(draft, files)
    try:
        draft.rename(folder)
    except OSError:  # another process was first; what it wrote is the same
        _remove(draft)
        if not folder.is_dir():
            raise
    return folder


def _walk(folder: Path) -> Iterator[Path]:
    """Regular files in a fixed order; a symbolic link could lead out of the folder and is refused."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or path.name in _SKIPPED_FOLDERS or path.suffix in {".pyc", ".pyo"}:
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise SourceError(f"{path} is a symbolic link; a toolkit's files are plain files")
        if stat.S_ISDIR(mode):
            yield from _walk(path)
        elif stat.S_ISREG(mode):
            yield path
        else:
            raise SourceError(f"{path} is neither a file nor a folder")


def _packed(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in sorted(files):
            bundle.writestr(zipfile.ZipInfo(name, _EPOCH), files[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _unpacked(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        entries = bundle.infolist()
        if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_BYTES:
            raise SourceError("the stored source is too large")
        for entry in entries:
            path = PurePosixPath(entry.filename)
            if path.is_absolute() or ".." in path.parts or "\\" in entry.filename or entry.filename.endswith("/"):
                raise SourceError("the stored source holds a path that leads out of its folder")
        return {entry.filename: bundle.read(entry) for entry in entries}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(mode=0o700)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o444)
    for inner, _, _ in os.walk(folder, topdown=False):
        os.chmod(inner, 0o555)


def _remove(folder: Path) -> None:
    for inner, _, _ in os.walk(folder):
        os.chmod(inner, 0o700)
    shutil.rmtree(folder)
