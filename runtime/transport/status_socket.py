"""UNIX socket that sends one document with the status of a process to each client, then hangs up.

Nothing is read from a connection, so a client cannot send requests. A client that does not read
holds one document of bounded size for up to `ANSWER_S`. At most `MAX_ANSWERS` are sent at a time;
further clients are disconnected.

The socket listens before it gets its name. So a name without a listener belongs to a dead process,
and may be removed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from specwire.runtime.transport.accepting import Acceptor
from specwire.runtime.transport.errors import TransportError

MAX_ANSWERS = 8
ANSWER_S = 5.0
MAX_DOCUMENT_OCTETS = 16 << 20
LONGEST_PATH_OCTETS = 107
"""What Linux takes as the path of a socket."""

BLOCK_OCTETS = 1 << 16


class NobodyListensError(Exception):
    """The process of this socket is dead."""


class StatusSocket:
    """Answers on `path` from `open` to `close`.

    Args:
        path: in a folder that only this user can enter.
        describe: returns the document; called for each connection, on the event loop.
    """

    def __init__(self, path: Path, describe: Callable[[], bytes]) -> None:
        self._path, self._describe = path, describe
        self._answers: set[_Answer] = set()
        self._acceptor: Acceptor | None = None

    async def open(self) -> None:
        """Listen; raises TransportError."""
        self._acceptor = Acceptor(_listen(self._path), self._answer, str(self._path))

    async def close(self) -> None:
        """Listen no more, hang up on everybody, and remove the socket."""
        if self._acceptor is None:
            return
        self._path.unlink(missing_ok=True)
        self._acceptor.close()
        for answer in list(self._answers):
            answer.hang_up()

    def _answer(self) -> asyncio.BaseProtocol:
        return _Answer(self._describe, self._answers)


class _Answer(asyncio.BaseProtocol):
    """One connection: writes, and closes when that is read."""

    def __init__(self, describe: Callable[[], bytes], under_way: set[_Answer]) -> None:
        self._describe, self._under_way = describe, under_way

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        if len(self._under_way) >= MAX_ANSWERS:
            transport.abort()
            return
        self._under_way.add(self)
        self._limit = asyncio.get_running_loop().call_later(ANSWER_S, transport.abort)
        document = self._describe()
        if len(document) <= MAX_DOCUMENT_OCTETS:
            transport.write(document)
        transport.close()  # before anything is read, and after everything is written

    def connection_lost(self, error: Exception | None) -> None:
        if self in self._under_way:
            self._under_way.remove(self)
            self._limit.cancel()

    def hang_up(self) -> None:
        """Let the rest of the document be."""
        self._transport.abort()


def _listen(path: Path) -> socket.socket:
    """Return a socket that listens and has the name `path`; raises TransportError."""
    unnamed = path.with_suffix(".new")
    if len(os.fsencode(unnamed)) > LONGEST_PATH_OCTETS:
        raise TransportError(f"{path} is too long for a socket: {LONGEST_PATH_OCTETS} octets are the most")
    try:
        listener = socket.socket(socket.AF_UNIX)
    except OSError as error:
        raise TransportError(f"cannot listen on {path}: {error.strerror}") from error
    try:
        unnamed.unlink(missing_ok=True)  # of a dead process that had our number
        listener.bind(str(unnamed))
        listener.listen(MAX_ANSWERS)
        unnamed.rename(path)
    except OSError as error:
        listener.close()
        raise TransportError(f"cannot listen on {path}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def ask_status(path: Path, *, timeout_s: float) -> bytes:
    """Return the document of the process that listens on `path`.

    Raises:
        NobodyListensError: the process is dead, or has just ended.
        TransportError: it does not answer in time, hangs up, or does not stop talking.
    """
    ends_at = time.monotonic() + timeout_s
    document = bytearray()
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            _limit(asking, ends_at)
            asking.connect(str(path))
            while block := asking.recv(BLOCK_OCTETS):
                document += block
                if len(document) > MAX_DOCUMENT_OCTETS:
                    raise TransportError(f"{path}: the answer has more than {MAX_DOCUMENT_OCTETS} octets")
                _limit(asking, ends_at)
        except (ConnectionRefusedError, FileNotFoundError) as error:
            raise NobodyListensError(str(path)) from error
        except TimeoutError as error:
            raise TransportError(f"{path}: no answer within {timeout_s:g} s") from error
        except OSError as error:
            raise TransportError(f"{path}: {error.strerror or error}") from error
    if not document:
        raise TransportError(f"{path}: no answer; too many ask at once, or it is ending")
    return bytes(document)


def remove_stale(path: Path) -> None:
    """Remove the socket of a dead process, where another has not done so before."""
    with suppress(OSError):
        path.unlink()


def _limit(asking: socket.socket, ends_at: float) -> None:
    left_s = ends_at - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    asking.settimeout(left_s)
