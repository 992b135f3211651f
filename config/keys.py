"""The keys that live outside the database: made at first start on one machine, given in production."""

import base64
import contextlib
import json
import logging
import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured

from config import env

Given = TypeVar("Given")

logger = logging.getLogger(__name__)


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


def from_home(home: Path, database: Mapping[str, Any] | None = None) -> Keys:
    """The keys in `home/keys.json`, made on first use; two starts at once agree on one file.

    They are made before anything else, so a database that holds something had others, and needs those.
    """
    path = home / "keys.json"
    # The file is looked for again after the question, for another start may just have made both.
    if not path.exists() and database is not None and _has_past(path, database) and not path.exists():
        raise ImproperlyConfigured(
            f"{path} is not there, but its database holds data already: restore the file, "
            "for new keys could neither verify the trail nor open what is sealed"
        )
    if not path.exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_once(path, _fresh())
    _close_to_others(path)
    return _read(path)


def _has_past(path: Path, database: Mapping[str, Any]) -> bool:
    """Whether the database may hold what was made under other keys."""
    if database["ENGINE"] == "config.sqlite":
        file = Path(database["NAME"])
        return file.exists() and file.stat().st_size > 0
    import psycopg

    place = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    try:
        with psycopg.connect(**{to: database[name] for to, name in place.items()}, **database["OPTIONS"]) as connection:
            if connection.execute("SELECT to_regclass('audit_event')").fetchone() == (None,):
                return False
            return connection.execute("SELECT EXISTS (SELECT FROM audit_event)").fetchone() == (True,)
    except psycopg.Error as error:
        reason = str(error).partition("\n")[0]
        raise ImproperlyConfigured(
            f"{path} is not there, and whether its database needs it cannot be found out: {reason}"
        ) from None


def _close_to_others(path: Path) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(0o600)
            if stat.S_IMODE(path.stat().st_mode) & 0o077:  # some file systems say yes and change nothing
                raise ImproperlyConfigured(f"{path} stays open to others (mode {mode:04o}) on this file system")
            logger.warning("%s was open to others (mode %04o); it is 0600 again", path, mode)
    except OSError as error:
        raise ImproperlyConfigured(f"{path} cannot be kept from others: {error.strerror}") from None


def _read(path: Path) -> Keys:
    try:
        stored = json.loads(path.read_text())
        return Keys(
            django=_given(stored["django"], str),
            audit=_decoded(stored["audit"]),
            seal_seed=_decoded(stored["seal_seed"]),
            sealing=_given({key_id: _decoded(value) for key_id, value in stored["sealing"].items()}, dict),
        )
    except OSError as error:
        raise ImproperlyConfigured(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):  # whatever else it is than what we wrote
        raise ImproperlyConfigured(f"{path} is damaged: restore it, for nothing else holds these keys") from None


def _given(value: Given, kind: type) -> Given:
    if not value or not isinstance(value, kind):
        raise ValueError
    return value


def _decoded(text: str) -> bytes:
    raw = base64.b64decode(text, validate=True)
    if len(raw) != 32:
        raise ValueError
    return raw


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
