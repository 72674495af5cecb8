"""The UNIX socket that clients find a broker by: how it is made, and taken away.

Its folder is made with mode 0700 where there is none, and that is the fence: the socket itself may be connected to
by whoever reaches it, so that a guest who may not use the broker hears so (see `connector`). A socket that was left
behind is replaced; one that somebody listens on is not. It is bound, then opened to others, then listened on, so
nobody connects too early.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from errno import EEXIST
from typing import NamedTuple

from specwire.runtime.flux.uri import SCHEME, fault_in_path
from specwire.runtime.transport.errors import TransportError

BACKLOG = 1024
FOLDER_MODE = 0o700
SOCKET_MODE = 0o666
_CREDENTIALS = struct.Struct("3i")


class Peer(NamedTuple):
    """Who is at the other end, as the kernel saw it when they connected."""

    pid: int
    uid: int


class LocalSocket:
    """A listening socket at `path`; the file goes with `close`, unless another has taken its place.

    Raises:
        TransportError: there can be no socket there, or somebody listens on it already.
    """

    def __init__(self, path: str) -> None:
        if fault := fault_in_path(path):
            raise TransportError(f"cannot listen on {SCHEME}{path}: it {fault}")
        self.path = path
        try:
            self.socket = _listen(path)
            self._identity = _identity(path)
        except OSError as error:
            raise TransportError(f"cannot listen on {SCHEME}{path}: {error.strerror or error}") from error

    def close(self) -> None:
        """Listen no more; may be called twice."""
        if self._identity is not None and _identity(self.path) == self._identity:
            os.unlink(self.path)
        self._identity = None
        self.socket.close()


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end of an accepted connection."""
    octets = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(octets)
    return Peer(pid, uid)


def _listen(path: str) -> socket.socket:
    os.makedirs(os.path.dirname(path) or ".", mode=FOLDER_MODE, exist_ok=True)
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.bind(path)
        os.chmod(path, SOCKET_MODE)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _remove_stale(path: str) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(EEXIST, "there is something else than a socket")
    if _is_listened_on(path):
        raise FileExistsError(EEXIST, "another broker listens there")
    os.unlink(path)


def _is_listened_on(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
        except BlockingIOError:
            return True  # so many want to connect that there is a queue
    return True


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
