"""Counts of TCP connections that libzmq owns, from the kernel, and a way to end one.

libzmq may close a descriptor at any time, and the kernel gives the number to the next file that is
opened. So a number alone proves nothing: `shut_down` compares the peer's address first, on a
duplicate that nobody else closes.

`TcpOctets` needs Linux 4.19 (2018), whose TCP_INFO counts the octets that were sent.
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
"""In `struct tcp_info`: octets that were received in order, and octets that were sent."""

_UNREAD = struct.Struct("=i")
_RESET = struct.pack("=ii", 1, 0)
_libc = ctypes.CDLL(None)


class TcpOctets(msgspec.Struct, frozen=True):
    """Octets of one connection; `unread` are those of `received` that libzmq has not read yet."""

    received: int
    sent: int
    unread: int


def read_octets(descriptor: int) -> TcpOctets | None:
    """Return the counts; None where the descriptor is not a TCP connection (any more)."""
    info, size = ctypes.create_string_buffer(_INFO.size), ctypes.c_uint32(_INFO.size)
    if _libc.getsockopt(descriptor, socket.IPPROTO_TCP, socket.TCP_INFO, info, ctypes.byref(size)):
        return None
    if size.value < _INFO.size:
        return None
    received, sent = _INFO.unpack(info.raw)
    try:  # after the others: octets that arrive in between count as unread, so none counts twice
        unread = _UNREAD.unpack(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(_UNREAD.size)))[0]
    except OSError:
        return None
    return TcpOctets(received, sent, unread)


def peer_address(descriptor: int, port: int | None = None) -> str | None:
    """Return ``HOST:PORT`` of the peer; None if this is no TCP connection, or not one at `port`."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        return _peer_of(connection, None if port is None else {port})
    return None


def shut_down(descriptor: int, peer: str) -> bool:
    """End the connection in both directions if it still is that of `peer`; return whether it was.

    libzmq closes when it has read what had come. The peer gets a reset then; without it, a peer
    that only writes would wait for room in the window of a connection that has ended.
    """
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        if _peer_of(connection) == peer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.shutdown(socket.SHUT_RDWR)
            return True
    return False


def find_connections(ports: Collection[int]) -> dict[int, str]:
    """Return the peers of all connections that came in at one of `ports`, by descriptor.

    Raises:
        OSError: there is no descriptor left to look with.
    """
    found = {}
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
            if (peer := _peer_of(connection, ports)) is not None:
                found[descriptor] = peer
    return found


def _peer_of(connection: socket.socket, ports: Collection[int] | None = None) -> str | None:
    """Raises OSError where nobody is connected."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return None
    if ports is not None and connection.getsockname()[1] not in ports:
        return None
    host, port, *_ = connection.getpeername()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class ResidentMemory:
    """Resident memory of this process (VmRSS); has a descriptor from the first `read` to `close`."""

    def __init__(self) -> None:
        self._file = -1

    def read(self) -> int | None:
        """Return the octets; None where there is no descriptor left to ask with."""
        try:
            if self._file < 0:
                self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._file, 256, 0).split()[1]) * resource.getpagesize()
        except OSError:
            return None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def trim_heap() -> None:
    """Return freed memory to the system, as glibc keeps it; other C libraries need no call."""
    with suppress(AttributeError):
        _libc.malloc_trim(0)
