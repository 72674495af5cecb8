"""Accept loop of every stream listener that is not ZeroMQ: connector, relay, status socket, web page.

asyncio's own accept loop logs a traceback for each failed `accept`, and tries again at once: without
descriptors that is 10,000 tracebacks a second. This one pauses when `accept` fails for lack of
descriptors or memory, tries again every `RETRY_S`, and logs one line when a shortage begins and one
when it is over. Clients that connect meanwhile wait in the kernel's queue.

A shortage is over when nothing has failed for `CALM_S`. At the limit, each client that leaves makes
room for one, so without this the log would have two lines for each.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable

logger = logging.getLogger(__name__)

RETRY_S = 0.25
CALM_S = 5.0
AT_A_TIME = 64
"""Most connections accepted per event-loop iteration."""

GONE = frozenset(
    (
        errno.ECONNABORTED,
        errno.EPERM,  # refused by a firewall
        errno.EPROTO,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENOPROTOOPT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EOPNOTSUPP,
        errno.ENONET,
    )
)
"""Errors of the pending connection, not of the listener: accept(2), "Error handling"."""

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class Acceptor:
    """Accepts connections of `listener`, on the running event loop, from construction to `close`.

    Args:
        listener: a listening, non-blocking socket. `close` closes it.
        make_protocol: called for each connection.
        name: of the listener, for the log.
        retry_s, calm_s: see above.
    """

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: ProtocolFactory,
        name: str,
        *,
        retry_s: float = RETRY_S,
        calm_s: float = CALM_S,
    ) -> None:
        self._listener, self._make_protocol, self._name = listener, make_protocol, name
        self._retry_s, self._calm_s = retry_s, calm_s
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_short = False
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept nothing more; connections stay open. May be called twice."""
        if self._listener.fileno() < 0:
            return
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._cancel_timer()
        for task in self._beginning:
            task.cancel()

    def _accept(self) -> None:
        for _ in range(AT_A_TIME):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in GONE:
                    continue
                self._pause(error)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._begin(connection))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except BaseException:
            connection.close()
            raise

    def _pause(self, error: OSError) -> None:
        self._loop.remove_reader(self._listener)
        self._set_timer(self._retry_s, self._resume)
        if not self._is_short:
            self._is_short = True
            logger.warning("no connections are accepted on %s: %s", self._name, error.strerror)

    def _resume(self) -> None:
        try:
            os.close(os.dup(self._listener.fileno()))  # tests for a free descriptor even when no client waits
        except OSError:
            self._set_timer(self._retry_s, self._resume)
            return
        self._set_timer(self._calm_s, self._end_shortage)
        self._loop.add_reader(self._listener, self._accept)

    def _end_shortage(self) -> None:
        self._is_short = False
        logger.warning("connections are accepted again on %s", self._name)

    def _set_timer(self, after_s: float, callback: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(after_s, callback)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
