"""Addresses of model servers: which are usable, and which are this machine."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from batchrank.backends.loose import excerpt
from batchrank.errors import UsageError


def parse_url(url: str) -> SplitResult:
    """The parts of a plain http(s) address; UsageError says why it is none."""
    if set(url) & set("@?#"):
        raise UsageError("A server's address may hold no login, query or fragment.")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        usable = False
    if not usable:
        raise UsageError(f"{excerpt(url)} is no address of the form http://HOST:PORT.")
    return parts


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address, is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
