"""Which addresses may be reached: a list of our own, judged on the number that is connected to.

A name opens nothing; the few that mean a metadata service are closed by themselves.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# What hands out a machine's own keys, or steers it, to whoever asks from inside. Open only if named one by one.
METADATA = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",  # most clouds
            "169.254.170.2",  # container credentials
            "169.254.170.23",
            "169.254.42.42",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",  # a public number that means the host machine
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:42::42",
        ),
    )
)

# The names that clouds give it inside; closed before anybody is asked for an address, who might not know them.
METADATA_NAMES = frozenset(
    (
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
    )
)

_CLOSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(text), words)
    for text, words in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a provider's customers"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for measurements"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "a local translator's"),
        ("100::/64", "a black hole"),
        ("2001::/23", "reserved"),  # tunnels, measurements, identifiers: nothing that a tool is found at
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")  # the only IPv6 space given out so far
_COMPATIBLE = IPv6Network("::/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)


def closed(address: Address, allowed: Sequence[Network]) -> str:
    """Why this address may not be reached, in a few words; empty if it may."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # the same machine, written differently
    inner = tuple(_embedded(address))
    for each in (address, *inner):
        if each in METADATA and not any(_names(network, address) for network in allowed):
            return "a metadata service"
    if any(address in network for network in allowed):
        return ""
    if why := _why(address):
        return why
    return next((f"a way to an address that is {why}" for each in inner if (why := _why(each))), "")


def closed_name(host: str, allowed: Sequence[Network]) -> str:
    """Why no address of this name may be reached; empty if that hangs on the addresses alone."""
    is_opened = any(_names(network, address) for network in allowed for address in METADATA)
    return "a metadata service" if host.lower().rstrip(".") in METADATA_NAMES and not is_opened else ""


def _why(address: Address) -> str:
    for network, words in _CLOSED:
        if address in network:
            return words
    is_known = isinstance(address, IPv4Address) or address in _GLOBAL_6 or address in _TRANSLATED
    return "" if is_known else "reserved"


def _names(network: Network, address: Address) -> bool:
    return network.num_addresses == 1 and address in network


def _embedded(address: Address) -> Iterable[IPv4Address]:
    """The IPv4 addresses that a translator or a tunnel would really go to."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if address in _TRANSLATED or (address in _COMPATIBLE and number > 1):
        yield IPv4Address(number & 0xFFFFFFFF)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield IPv4Address(number >> 64 & 0xFFFFFFFF)
        yield IPv4Address(~number & 0xFFFFFFFF)
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        yield IPv4Address(number & 0xFFFFFFFF)


@lru_cache(maxsize=64)
def networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    """The ranges that an operator opened; checked when the settings are read."""
    return tuple(map(ip_network, texts))
