"""Typed reading of the environment; a missing or bad value fails at start, by name."""

import base64
import binascii
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from registry.loopback import is_loopback

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}
# Redis, RabbitMQ, and the embedded one; what has no scheme would be taken for a RabbitMQ that nobody runs.
BROKERS = ("redis", "rediss", "redis+socket", "sentinel", "amqp", "amqps", "pyamqp", "filesystem")
PRAGMAS = {
    "page_size": 2048,  # of a new file; a call changes some thirty pages, and each is written out whole
    "journal_mode": "WAL",
    "synchronous": "NORMAL",  # survives the death of any process; a power cut may cost the last moments, never the file
    "cache_size": -16_000,
    "wal_autocheckpoint": 16_000,  # pages; each checkpoint waits for the disk, and all writers wait for the checkpoint
}
# Milliseconds after which PostgreSQL gives up, so that no request hangs on another one's lock or on a lost client.
LIMITS = {"statement_timeout": 30_000, "lock_timeout": 5_000, "idle_in_transaction_session_timeout": 60_000}


def text(name: str, default: str | None = None) -> str:
    value = os.environ.get(name, default)
    if value is None or (value == "" and default is None):
        raise ImproperlyConfigured(f"{name} is not set; it must be given in the environment")
    return value


def flag(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.lower() in TRUE:
        return True
    if value.lower() in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")


def number(name: str, default: float, *, at_least: float = 0) -> float:
    value = os.environ.get(name)
    if value is None or value == "":
        return default
    try:
        parsed = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}") from None
    if not parsed >= at_least or parsed == float("inf"):
        raise ImproperlyConfigured(f"{name} must be at least {at_least}, not {value!r}")
    return parsed


def whole(name: str, default: int, *, at_least: int = 0) -> int:
    value = number(name, default, at_least=at_least)
    if value != int(value):
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}")
    return int(value)


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def networks(name: str) -> list[str]:
    """Ranges of addresses, comma separated: 10.0.0.0/8, 192.0.2.7, fd00::/8."""
    ranges = words(name)
    for word in ranges:
        try:
            ipaddress.ip_network(word)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must be ranges such as 127.0.0.0/8, not {word!r}") from None
    return ranges


def folder(name: str, default: Path) -> Path:
    return Path(os.environ.get(name) or default).expanduser().resolve()


def key(name: str) -> bytes:
    """A 32-byte key, written as base64."""
    try:
        raw = base64.b64decode(text(name), validate=True)
    except (binascii.Error, ValueError):
        raise ImproperlyConfigured(f"{name} must be base64") from None
    if len(raw) != 32:
        raise ImproperlyConfigured(f"{name} must be 32 bytes of base64, not {len(raw)}")
    return raw


def keyring(name: str) -> dict[str, bytes]:
    """`id:base64,id:base64`: the first is used to seal, all to open."""
    ring: dict[str, bytes] = {}
    for word in words(name):
        key_id, _, encoded = word.partition(":")
        try:
            raw = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if not key_id or len(raw) != 32:
            raise ImproperlyConfigured(f"{name} must be written id:base64 of 32 bytes, comma separated")
        ring[key_id] = raw
    if not ring:
        raise ImproperlyConfigured(f"{name} is not set; it must be given in the environment")
    return ring


def database(url: str) -> dict[str, object]:
    """DATABASE_URL to Django's dictionary: postgres://… or sqlite:///path."""
    parts = _split("DATABASE_URL", url)
    if parts.scheme in {"postgres", "postgresql"}:
        options = dict(parse_qsl(parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parts.hostname or "",
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": None,
            "CONN_HEALTH_CHECKS": False,
            "OPTIONS": {
                "connect_timeout": 3,
                "options": " ".join(f"-c {name}={value}" for name, value in LIMITS.items()),
                **options,
                "prepare_threshold": _threshold(options.get("prepare_threshold", "0")),
            },
        }
    if parts.scheme == "sqlite":
        return sqlite(Path(unquote(parts.path)))
    raise ImproperlyConfigured(f"DATABASE_URL must begin with postgres:// or sqlite:///, not {parts.scheme}://")


def broker(name: str) -> str:
    """The broker's address, or those of several with semicolons between them; the embedded one if it is not set."""
    value = os.environ.get(name) or "filesystem://"
    for address in value.split(";"):
        _split(name, address)
        if address.partition("://")[0] not in BROKERS or "://" not in address:
            known = ", ".join(f"{scheme}://" for scheme in BROKERS)
            raise ImproperlyConfigured(f"{name} must begin with one of {known}")
    return value


def _threshold(text: str) -> int | None:
    """After how many executions a hot statement is prepared; `none` for poolers that share connections in between."""
    if text == "none":
        return None
    if not text.isdecimal():
        raise ImproperlyConfigured(f"prepare_threshold in DATABASE_URL must be a whole number or none, not {text!r}")
    return int(text)


def sqlite(path: Path) -> dict[str, object]:
    return {
        "ENGINE": "config.sqlite",
        "NAME": str(path),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 2,  # seconds; our own writers wait at the gate, so this is for strangers who hold the file
            "init_command": "; ".join(f"PRAGMA {name}={value}" for name, value in PRAGMAS.items()),
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where mail is handed in, and how."""

    host: str
    port: int
    user: str
    password: str
    is_tls: bool  # from the first byte
    is_starttls: bool

    def __repr__(self) -> str:
        return f"MailServer({self.host}:{self.port})"


def mail(name: str) -> MailServer | None:
    """smtp://user:password@host:port, or smtps://…; None when it is not set.

    What is not this machine is spoken to under TLS: `smtp` says STARTTLS unless the address ends in `?starttls=0`.
    """
    parts = _url(name)
    if parts is None:
        return None
    if parts.scheme not in {"smtp", "smtps"} or parts.hostname is None or parts.path.strip("/"):
        raise ImproperlyConfigured(f"{name} must be written smtp://user:password@host:port or smtps://…")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    starttls = options.pop("starttls", "0" if is_loopback(parts.hostname) else "1")
    if options or starttls not in {"0", "1"}:
        raise ImproperlyConfigured(f"{name} knows only the option starttls=0 or starttls=1")
    is_tls = parts.scheme == "smtps"
    return MailServer(
        host=parts.hostname,
        port=parts.port or (465 if is_tls else 587),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        is_tls=is_tls,
        is_starttls=not is_tls and starttls == "1",
    )


def webhook(name: str) -> str:
    """The address of a webhook: https, or http on this machine; empty when it is not set."""
    parts = _url(name)
    if parts is None:
        return ""
    if parts.scheme not in {"http", "https"} or parts.hostname is None:
        raise ImproperlyConfigured(f"{name} must be an https:// address")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ImproperlyConfigured(f"{name} must begin with https://, for it leaves this machine")
    if "@" in parts.netloc or parts.fragment:
        raise ImproperlyConfigured(f"{name} must hold neither a user nor a fragment")
    return os.environ[name]


def keyset(name: str) -> str:
    """Where a key set lies: the address of one, as for webhooks, or the whole path of a file; empty if not set."""
    value = os.environ.get(name, "")
    if not value or "://" in value:
        return webhook(name)
    return str(Path(value).expanduser().absolute())  # links are followed when it is read: they may be moved on


def own_url(name: str, default: str) -> str:
    """The address people reach us by, without the slash at its end."""
    parts = _url(name)
    if parts is None:
        return default
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"{name} must be written https://host or http://host:port")
    return os.environ[name].rstrip("/")


def addresses(name: str, *, is_origin: bool = False) -> list[str]:
    """Web addresses, comma separated: https, or http on this machine; an origin has nothing after its host."""
    found = words(name)
    for word in found:
        try:
            parts = urlsplit(word)
            is_good = bool(parts.hostname) and parts.port != 0 and not parts.query and not parts.fragment
        except ValueError:
            is_good, parts = False, urlsplit("")
        is_safe = parts.scheme == "https" or (
            parts.scheme == "http" and (is_origin or is_loopback(parts.hostname or ""))
        )
        if not is_good or not is_safe or '"' in word or (is_origin and parts.path.strip("/")):
            raise ImproperlyConfigured(f"{name} must be addresses such as https://host, comma separated")
    return found


def _url(name: str) -> SplitResult | None:
    value = os.environ.get(name, "")
    if not value:
        return None
    parts = _split(name, value)
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ImproperlyConfigured(f"{name} holds a character that no address has")
    return parts


def _split(name: str, value: str) -> SplitResult:
    """The parts of an address; one that cannot be read is refused without being repeated, for it may hold a secret."""
    try:
        parts = urlsplit(value)
        _ = parts.port  # read here, for this is where a bad one is found
    except ValueError:
        raise ImproperlyConfigured(f"{name} is not an address that can be read") from None
    return parts
