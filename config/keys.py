"""The keys that live outside the database: made at first start on one machine, given in production."""

import base64
import contextlib
import json
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from config import env


@dataclass(frozen=True)
class Keys:
    """What signs, seals and chains; its repr shows nothing."""

    django: str
    audit: bytes
    seal_seed: bytes
    sealing: dict[str, bytes]

    def __repr__(self) -> str:
        return "Keys(…)"


def from_environment() -> Keys:
    return Keys(
        django=env.text("PLACET_SECRET_KEY"),
        audit=env.key("PLACET_AUDIT_KEY"),
        seal_seed=env.key("PLACET_SEAL_SEED"),
        sealing=env.keyring("PLACET_SEALING_KEYS"),
    )


def from_home(home: Path) -> Keys:
    """The keys in `home/keys.json`, made on first use; two starts at once agree on one file."""
    path = home / "keys.json"
    if not path.exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_once(path, _fresh())
    stored = json.loads(path.read_text())
    return Keys(
        django=stored["django"],
        audit=base64.b64decode(stored["audit"]),
        seal_seed=base64.b64decode(stored["seal_seed"]),
        sealing={key_id: base64.b64decode(value) for key_id, value in stored["sealing"].items()},
    )


def _fresh() -> dict[str, object]:
    def new() -> str:
        return base64.b64encode(secrets.token_bytes(32)).decode()

    return {"django": secrets.token_urlsafe(48), "audit": new(), "seal_seed": new(), "sealing": {"k1": new()}}


def _write_once(path: Path, content: dict[str, object]) -> None:
    """Write beside, then link into place: the file appears whole or not at all, and the first writer wins."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".keys-")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(beside, path)
    finally:
        os.unlink(beside)
