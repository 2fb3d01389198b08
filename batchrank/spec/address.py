"""Where a run listens for those who watch it: an address and a port."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Address:
    """A host by name or number, without brackets; port 0 is any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """`HOST:PORT`, or `PORT` alone on the loopback interface; raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    host = host if colon else LOOPBACK
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text}: write an IPv6 address in brackets, such as [::1]:8080")
    if not (port.isascii() and port.isdigit() and int(port) <= 65_535) or not host:
        raise ValueError(f"{text}: write HOST:PORT, such as 127.0.0.1:8080, or PORT alone")
    return Address(host, int(port))
