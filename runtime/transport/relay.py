"""Relay of stream connections to another endpoint.

Each client connection has a separate connection to the target, which opens and closes with it. So
both peers see the same identities, handshakes, losses and backpressure as without a relay. The
relay keeps only octets that one side has not taken yet; meanwhile it does not read the other side.

A `Watcher` sees the octets of a connection. It may replace them, send octets, and pause one side.
An exception that it raises closes its connection, and no other.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from specwire.runtime.transport.accepting import Acceptor
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.port import describe_refusal, require_free
from specwire.runtime.transport.tcp_listener import BACKLOG, listen_on

logger = logging.getLogger(__name__)

CONNECT_S = 10.0
LINGER_S = 2.0
"""What a side gets to take what is left for it when the other has ended."""

MAX_CONNECTIONS = 1000
WAITING_OCTETS = 1 << 20
"""Octets that wait for one side before the other is not read any more."""


class Watcher(Protocol):
    """Sees one connection."""

    def pass_on(self, octets: bytes, *, from_opener: bool) -> bytes:
        """Take octets as they came and return those that go on in their place."""


class Passage(Protocol):
    """What a watcher may do to its connection, beside what `Watcher.pass_on` returns."""

    @property
    def address(self) -> str:
        """Who opened the connection."""

    def send(self, octets: bytes, *, to_opener: bool) -> None:
        """Send to one side what does not come from the other."""

    def hold(self, held: bool, *, opener: bool) -> None:
        """Read no more of one side, or read it again."""

    def end(self) -> None:
        """End the connection at both sides, once what was sent has left."""


Watch = Callable[[Passage], Watcher]
"""Gives the watcher of a connection that has come about."""


class Between(Protocol):
    """What stands between peers, as it is started, ended and looked at; `Relay` says what each is."""

    endpoint: str
    target: str
    connections: int
    refused: int

    @property
    def open_connections(self) -> int:
        """Connections that there are now."""

    async def open(self) -> None:
        """Listen; raises TransportError."""

    async def close(self) -> None:
        """Listen no more and end all connections."""


class Relay:
    """Listens on `endpoint` from `open` to `close`, and connects to `target` for everybody who comes.

    Args:
        endpoint: ``tcp://HOST:PORT``, the port may be ``*``, or ``ipc://PATH``.
        target: the same for the other side.
        watch: called for each connection.
        max_connections: of who comes beyond them the connection is closed at once.

    Attributes:
        endpoint: as it is, with the port, once it is open.
        connections: how many were made so far.
        refused: how many were closed at once, because there were too many or the other side could not be reached.
    """

    def __init__(
        self, endpoint: str, target: str, watch: Watch, *, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        for place, listening in ((endpoint, True), (target, False)):
            if fault := fault_in_endpoint(place, listening=listening):
                raise TransportError(f"{place} {fault}")
        if ";" in target:
            raise TransportError(
                f"{target} names an address to connect from: leave it out, a relay has no use for it"
            )
        self.endpoint, self.target = endpoint, target
        self.connections = self.refused = 0
        self._watch, self._max = watch, max_connections
        self._acceptor: Acceptor | None = None
        self._open: set[_Side] = set()
        self._reaching: set[asyncio.Task[None]] = set()
        self._said = ""

    @property
    def open_connections(self) -> int:
        """Connections that there are now."""
        return len(self._open)

    async def open(self) -> None:
        """Listen; raises TransportError."""
        scheme, _, address = self.endpoint.partition("://")
        if scheme == "ipc":
            listener = _listen_at(address, self.endpoint)
        else:
            require_free(self.endpoint)
            host, port = _host_and_port(address)
            family = socket.AF_INET6 if ":" in host else socket.AF_INET  # as libzmq does
            listener = listen_on(host, port, family=family, endpoint=self.endpoint)
            self.endpoint = f"tcp://{address.rpartition(':')[0]}:{listener.getsockname()[1]}"
        self._acceptor = Acceptor(listener, self._accept, self.endpoint)

    async def close(self) -> None:
        """Listen no more and end all connections."""
        if self._acceptor is None:
            return
        self._acceptor.close()
        for task in list(self._reaching):
            task.cancel()
        for side in list(self._open):
            side.abort()
        await asyncio.gather(*self._reaching, return_exceptions=True)
        scheme, _, address = self.endpoint.partition("://")
        if scheme == "ipc" and not address.startswith("@"):
            Path(address).unlink(missing_ok=True)

    def _accept(self) -> asyncio.BaseProtocol:
        return _Side(self._welcome, self._forget)

    def _welcome(self, opener: _Side) -> None:
        if len(self._open) >= self._max:
            self._refuse(opener, f"there are {self._max} connections already")
            return
        self._open.add(opener)
        task = asyncio.get_running_loop().create_task(self._reach(opener))
        self._reaching.add(task)
        task.add_done_callback(self._reaching.discard)

    async def _reach(self, opener: _Side) -> None:
        """Connect to the other side for who has come."""
        loop = asyncio.get_running_loop()
        scheme, _, address = self.target.partition("://")
        try:
            async with asyncio.timeout(CONNECT_S):
                if scheme == "ipc":
                    _, side = await loop.create_unix_connection(_Side, _socket_path(address))
                else:
                    host, port = _host_and_port(address)
                    _, side = await loop.create_connection(_Side, host, port)
        except (OSError, TimeoutError) as error:
            reason = "it does not answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
            self._refuse(opener, f"{self.target} cannot be reached: {reason}")
            return
        self.connections += 1
        self._said = ""
        _join(_Pair(opener, side), self._watch)

    def _refuse(self, opener: _Side, reason: str) -> None:
        self.refused += 1
        opener.abort()
        if reason != self._said:
            self._said = reason
            logger.warning("a connection was closed: %s", reason)

    def _forget(self, side: _Side) -> None:
        self._open.discard(side)


class _Pair:
    """The two connections of a passage."""

    def __init__(self, opener: _Side, target: _Side) -> None:
        self.address = opener.address
        self.opener, self.target = opener, target

    def send(self, octets: bytes, *, to_opener: bool) -> None:
        """See `Passage.send`."""
        (self.opener if to_opener else self.target).write(octets)

    def hold(self, held: bool, *, opener: bool) -> None:
        """See `Passage.hold`."""
        (self.opener if opener else self.target).hold_back("asked", held)

    def end(self) -> None:
        """See `Passage.end`."""
        self.opener.finish()
        self.target.finish()


def _join(pair: _Pair, watch: Watch) -> None:
    opener, target = pair.opener, pair.target
    if opener.over or target.over:
        opener.abort()
        target.abort()
        return
    watcher = watch(pair)
    opener.other, target.other = target, opener
    opener.take = lambda octets: watcher.pass_on(octets, from_opener=True)
    target.take = lambda octets: watcher.pass_on(octets, from_opener=False)
    for side in (opener, target):
        side.hold_back("alone", False)


class _Side(asyncio.Protocol):
    """One of the two connections of a pair."""

    def __init__(
        self,
        when_made: Callable[[_Side], None] | None = None,
        when_lost: Callable[[_Side], None] | None = None,
    ) -> None:
        self._when_made, self._when_lost = when_made, when_lost
        self.other: _Side | None = None
        self.take: Callable[[bytes], bytes] = bytes
        self.address = ""
        self.over = False
        self._held: set[str] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._held.add("alone")
        # Not at once: early releases of Python 3.11 begin to read after this call, paused or not.
        asyncio.get_running_loop().call_soon(self.hold_back, "alone", True)
        transport.set_write_buffer_limits(high=WAITING_OCTETS)
        name = transport.get_extra_info("peername")
        self.address = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "local"
        if self._when_made is not None:
            self._when_made(self)

    def data_received(self, octets: bytes) -> None:
        if self.other is None:
            return  # it is being refused
        try:
            passed = self.take(octets)
        except Exception:
            logger.exception("a connection of %s is ended", self.address)
            self.abort()
            self.other.abort()
            return
        if passed:
            self.other.write(passed)

    def eof_received(self) -> bool:
        """Both sides of ZMTP speak until both end: who has said all has ended."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.over = True
        if self.other is not None and not self.other.over:
            self.other.finish()
        if self._when_lost is not None:
            self._when_lost(self)

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.hold_back("full", True)

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.hold_back("full", False)

    def write(self, octets: bytes) -> None:
        """Send when there is room."""
        if not self.over:
            self._transport.write(octets)

    def hold_back(self, reason: str, held: bool) -> None:
        """Read no more while there is a reason not to."""
        (self._held.add if held else self._held.discard)(reason)
        if self.over:
            return
        if self._held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def finish(self) -> None:
        """Send what is left, for a time, and end."""
        self._transport.close()
        asyncio.get_running_loop().call_later(LINGER_S, self.abort)

    def abort(self) -> None:
        """End at once."""
        self._transport.abort()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return "0.0.0.0" if host == "*" else host.strip("[]"), 0 if port == "*" else int(port)


def _socket_path(address: str) -> str:
    """The path of a UNIX socket; ``@NAME`` is one without a file."""
    return f"\0{address[1:]}" if address.startswith("@") else address


def _listen_at(address: str, endpoint: str) -> socket.socket:
    """Return a UNIX socket that listens at `address`; raises TransportError."""
    _remove_stale(address)
    try:
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(_socket_path(address))
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise TransportError(describe_refusal(endpoint, error.errno, error.strerror or str(error))) from error
    listener.setblocking(False)
    return listener


def _remove_stale(address: str) -> None:
    """Remove a socket that a dead process has left, as libzmq does."""
    path = Path(address)
    with suppress(OSError):
        if not address.startswith("@") and path.is_socket():
            path.unlink()
