"""Octet counts and shutdown of TCP connections that libzmq owns.

libzmq may close a descriptor at any time, and the kernel gives the number to the next file that is
opened. So a number alone does not identify a connection: `shut_down` first compares the peer's
address, on a duplicate that nobody else closes.

`TcpOctets` needs Linux 4.19 (2018), the first with a count of sent octets in TCP_INFO.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
import struct
import termios
from collections.abc import Collection
from contextlib import suppress

import msgspec

_INFO = struct.Struct("=128xQ64xQ")
"""Fields of `struct tcp_info`: octets received in order, and octets sent."""

_UNREAD = struct.Struct("=i")
_RESET = struct.pack("=ii", 1, 0)
_libc = ctypes.CDLL(None)


class TcpOctets(msgspec.Struct, frozen=True):
    """Octet counts of one connection. `received` includes `unread`, which libzmq has not read."""

    received: int
    sent: int
    unread: int


def read_octets(descriptor: int) -> TcpOctets | None:
    """Return the counts; None if the descriptor is not, or no longer, a TCP connection."""
    info, size = ctypes.create_string_buffer(_INFO.size), ctypes.c_uint32(_INFO.size)
    if _libc.getsockopt(descriptor, socket.IPPROTO_TCP, socket.TCP_INFO, info, ctypes.byref(size)):
        return None
    if size.value < _INFO.size:
        return None
    received, sent = _INFO.unpack(info.raw)
    try:  # read last: octets that arrive in between count as unread, so none counts twice
        unread = _UNREAD.unpack(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(_UNREAD.size)))[0]
    except OSError:
        return None
    return TcpOctets(received, sent, unread)


def peer_address(descriptor: int, port: int | None = None) -> str | None:
    """Return ``HOST:PORT`` of the peer; None if this is not a TCP connection to our `port`."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        return _peer_of(connection, None if port is None else {port})
    return None


def shut_down(descriptor: int, peer: str) -> bool:
    """Shut down the connection if its peer still is `peer`; return whether it was.

    libzmq closes the descriptor after it has read the remaining octets, and the peer gets a reset.
    Without the reset, a peer that only writes would wait for room in the window.
    """
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        if _peer_of(connection) == peer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.shutdown(socket.SHUT_RDWR)
            return True
    return False


def find_connections(ports: Collection[int]) -> dict[int, str]:
    """Return the peers of all connections to one of our `ports`, by descriptor.

    Raises:
        OSError: there is no free descriptor to search with.
    """
    found = {}
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
            if (peer := _peer_of(connection, ports)) is not None:
                found[descriptor] = peer
    return found


def _peer_of(connection: socket.socket, ports: Collection[int] | None = None) -> str | None:
    """Return ``HOST:PORT`` of the peer, or None as above; raises OSError if it is not connected."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return None
    if ports is not None and connection.getsockname()[1] not in ports:
        return None
    host, port, *_ = connection.getpeername()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class ResidentMemory:
    """Resident memory of this process (VmRSS). A descriptor is open from `read` to `close`."""

    def __init__(self) -> None:
        self._file = -1

    def read(self) -> int | None:
        """Return the octets; None if there is no free descriptor."""
        try:
            if self._file < 0:
                self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._file, 256, 0).split()[1]) * resource.getpagesize()
        except OSError:
            return None

    def close(self) -> None:
        """Close the descriptor."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def trim_heap() -> None:
    """Return freed memory to the system, which glibc keeps. Other C libraries need no call."""
    with suppress(AttributeError):
        _libc.malloc_trim(0)
