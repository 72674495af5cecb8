"""Address where a server shows its page and metrics: ``PORT`` on loopback, or ``HOST:PORT``."""

from __future__ import annotations

import ipaddress

import msgspec

from specwire.runtime.transport.endpoint import MAX_PORT

LOOPBACK = "127.0.0.1"


class Place(msgspec.Struct, frozen=True):
    """Host and port to listen on, 0 for any port, and the file with the password, empty for none."""

    host: str
    port: int
    password_file: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def next(self, number: int) -> Place:
        """Return the place of the server with this number: at a port that is higher by it, or any port."""
        return Place(self.host, self.port + number if self.port else 0, self.password_file)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_place(text: str, *, anywhere: bool, password_file: str = "") -> Place:
    """Return the place that ``[HOST:]PORT`` means.

    Args:
        text: the host may be a name, an address, or an address of IPv6 in brackets; the port may be
            0 or ``*``.
        anywhere: allow a host that other machines can reach.
        password_file: empty for none.

    Raises:
        ValueError: it is no place, or other machines can reach it without `anywhere`.
    """
    host, separator, port = text.rpartition(":")
    host = (host[1:-1] if host.startswith("[") and host.endswith("]") else host) if separator else LOOPBACK
    if not host or (":" in host and not _is_address(host)):
        raise ValueError(f"{text!r} is no place for metrics: PORT or HOST:PORT is wanted, such as 9464")
    if port == "*":
        port = "0"
    if not (port.isascii() and port.isdigit()) or int(port) > MAX_PORT:
        raise ValueError(f"{text!r} has no port from 0 to {MAX_PORT}: PORT or HOST:PORT is wanted")
    place = Place(host, int(port), password_file)
    if not place.is_loopback and not anywhere:
        raise ValueError(
            f"metrics at {place} would be open to other machines, and nothing is encrypted: "
            f"omit the host, or set metrics-anywhere"
        )
    return place


def is_loopback(host: str) -> bool:
    """Return whether the name or address of a host means this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
