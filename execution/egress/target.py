"""Target: an address on the web taken apart once, by one reader, and refused where two readers might disagree."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from execution.egress.addresses import Address
from execution.egress.errors import EgressDenied

MAX_URL = 4_000

_URL = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_PRINTABLE = re.compile(r"[!-~]+")
_CONTROL = re.compile(r"%([01][0-9a-f]|7f)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
# Where things listen that must never get a line of text from us that they may take for a command.
_NOT_WEB = frozenset(
    (
        *(1433, 1521, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5060, 5061, 5432, 5672, 5900, 5984),
        *(6000, 6379, 6380, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 9042, 9092, 9200, 9300, 10250, 10255),
        *(11211, 15672, 16379, 25672, 26379, 27017, 27018, 50070),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes."""

    scheme: str
    host: str  # a name, or an address without brackets
    port: int
    path: str  # with the query

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """What the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host.rstrip(".")
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse(url: str) -> Target:
    """The target, or EgressDenied; reasons never repeat the address, which may hold a secret."""
    if len(url) > MAX_URL or not _PRINTABLE.fullmatch(url):
        raise EgressDenied("the address holds characters that no web address has, or too many")
    if "\\" in url or _CONTROL.search(url):
        raise EgressDenied("the address holds a backslash or an encoded control character")
    if "#" in url:
        raise EgressDenied("the address holds a fragment")
    found = _URL.fullmatch(url)
    if found is None:
        raise EgressDenied("the address does not begin with http:// or https://")
    if "@" in found["authority"]:
        raise EgressDenied("the address holds a login")
    scheme = found["scheme"].lower()
    place = _AUTHORITY.fullmatch(found["authority"])
    if place is None:
        raise EgressDenied("the host in the address is not one")
    host = place["host"].strip("[]").lower()
    port = int(place["port"]) if place["port"] else _PORTS[scheme]
    check(host, port)
    return Target(scheme=scheme, host=host, port=port, path=(found["path"] or "/") + (found["query"] or ""))


def check(host: str, port: int) -> Address | None:
    """The address, if the host is written as one; EgressDenied if it is neither that nor a name, or the port is odd."""
    if not 0 < port < 65_536 or (port < 1024 and port not in _PORTS.values()) or port in _NOT_WEB:
        raise EgressDenied(f"port {port} is not one where tools listen")
    if ":" in host:
        try:
            return IPv6Address(host)
        except AddressValueError:
            raise EgressDenied("the host in the address is not one") from None
    labels = host.removesuffix(".").split(".")
    if not all(map(_LABEL.fullmatch, labels)) or len(host) > 253:
        raise EgressDenied("the host in the address is not one; write a name in its ASCII form")
    if not _NUMBER.fullmatch(labels[-1]):
        return None
    try:  # 2130706433, 127.1, 0x7f.1, 0177.0.0.1: some readers take them for addresses, we take none of them
        return IPv4Address(host)
    except AddressValueError:
        raise EgressDenied("the host looks like an address and is not written as one") from None
