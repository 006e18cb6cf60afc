"""Which internet addresses are public, and which inside ones an operator allows.

Deliberately absent: name resolution and connections (`addresses`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Written out, as `is_global` follows the Python version and lets pass what only looks global.
_NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # public by number, yet the host's own service in one large cloud
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")  # all else is local, mapped, translated (NAT64) or unassigned
_NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo and other protocols' own
        "2001:db8::/32",
        "2002::/16",  # 6to4: holds an IPv4 address
        "3fff::/20",
    )
)
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")


class UnfitAllowance(ValueError):
    """An entry of the operator's list cannot be read; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """One entry of the operator's list: a network or a name, at one port or at all of them."""

    network: Network | None
    name: str | None
    port: int | None

    def covers(self, host: str, address: Address, port: int) -> bool:
        if self.port is not None and self.port != port:
            return False
        if self.name is not None:
            return self.name == host
        return self.network is not None and address.version == self.network.version and address in self.network


def read_allowance(entry: str) -> Allowance:
    """Read `10.0.0.0/8`, `127.0.0.1:8080`, `[::1]:8080`, `fd00::/8` or `crm.internal:443`. Raises UnfitAllowance."""
    text = entry.strip().lower()
    network = _network(text.removeprefix("[").removesuffix("]"))
    if network is not None:
        return Allowance(network, None, None)
    head, colon, tail = text.rpartition(":")
    host = head if colon else text
    port = _port(tail, entry) if colon else None
    network = _network(host.removeprefix("[").removesuffix("]"))
    if network is not None:
        return Allowance(network, None, port)
    name = host.removesuffix(".")
    if not _NAME.fullmatch(name) or name.replace(".", "").isdecimal():
        raise UnfitAllowance(
            f"'{entry[:80]}' is no address, network or host name; write it as '10.0.0.0/8', '[::1]:8080' or 'crm.internal:443'."
        )
    return Allowance(None, name, port)


def is_public(address: Address) -> bool:
    """Whether the address is one on the public internet. What carries an IPv4 address inside (6to4, NAT64, Teredo) is not."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def parsed(text: str) -> Address | None:
    """The address that the text is, an IPv4-mapped one as the IPv4 address it means; null for a name or with a zone."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return None
        return address.ipv4_mapped or address
    return address


def _network(text: str) -> Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _port(text: str, entry: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:6]) < 65_536):
        raise UnfitAllowance(f"'{entry[:80]}' does not end in a port of 1 to 65535; write it as 'crm.internal:443'.")
    return int(text)
