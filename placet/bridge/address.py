"""Where Placet is and what opens it: both are looked at before the first message is read."""

from __future__ import annotations

import ipaddress
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PATH = "/mcp"
MAX_KEY = 8_192


class Unusable(Exception):
    """Why the bridge cannot start; said in one line."""


@dataclass(frozen=True)
class Address:
    """The MCP endpoint of a Placet."""

    host: str
    port: int
    path: str
    is_tls: bool

    @classmethod
    def parse(cls, url: str) -> Address:
        """`https://placet.example` means its /mcp; plain http is for this machine, because a key travels with it."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise Unusable(f"--url {url!r} is not an address that can be read") from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise Unusable(f"--url must be written https://host or http://127.0.0.1:8000, not {url!r}")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise Unusable("--url must hold no user, no query and no fragment; keys come from --key-file")
        if not url.isascii() or not url.isprintable() or " " in url:
            raise Unusable("--url holds a character that no address has")
        is_tls = parts.scheme == "https"
        if not is_tls and not is_loopback(parts.hostname):
            raise Unusable(f"--url must begin with https:// for {parts.hostname}: a key would travel unprotected")
        path = parts.path if parts.path.strip("/") else PATH
        return cls(parts.hostname, port or (443 if is_tls else 80), path, is_tls)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.path}"


class Key:
    """The key in a file; it is read anew when it stops working, so that it can be replaced while we run."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.value = self._read()

    def has_changed(self) -> bool:
        """Whether the file holds another key by now, which is then the key."""
        before = self.value
        try:
            self.value = self._read()
        except Unusable:
            return False
        return self.value != before

    def is_open_to_others(self) -> bool:
        return self._path is not None and bool(self._path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))

    def __repr__(self) -> str:
        return f"Key({self._path})"

    def _read(self) -> str:
        if self._path is None:
            return ""
        try:
            with self._path.open("rb") as file:
                content = file.read(MAX_KEY + 1)
        except OSError as error:
            raise Unusable(f"--key-file {self._path}: {error.strerror}") from None
        key = content.strip()
        if not key or len(content) > MAX_KEY or not all(0x21 <= byte <= 0x7E for byte in key):
            raise Unusable(f"--key-file {self._path} must hold one key and nothing else")
        return key.decode("ascii")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
