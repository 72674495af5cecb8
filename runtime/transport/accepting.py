"""Accept loop of stream listeners outside ZeroMQ: connector, relay, status socket, web page.

asyncio's accept loop logs a traceback for each failed `accept`, and tries again at once. Without
free descriptors it logs 10,000 tracebacks a second. This loop pauses when `accept` fails for lack
of descriptors or memory, and tries again every `RETRY_S`. It logs one line when a shortage begins,
and one when it ends. Clients that connect meanwhile wait in the kernel's queue.

A shortage ends when nothing has failed for `CALM_S`. At the limit, each client that leaves makes
room for one other, so without this delay the log would have two lines per client.
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
MAX_ACCEPTS = 64
"""Most connections accepted per event-loop iteration."""

CONNECTION_ERRORS = frozenset(
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
    """Accept loop of one listener on the running event loop, from construction to `close`.

    Args:
        listener: a listening, non-blocking socket. `close` closes it.
        make_protocol: called for each connection.
        name: name of the listener in the log.
        retry_s: seconds between two attempts during a shortage.
        calm_s: seconds without a failure after which a shortage ends.
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
        self._starting: dict[asyncio.Task[None], socket.socket] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_short = False
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Stop accepting; open connections stay open. May be called twice."""
        if self._listener.fileno() < 0:
            return
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._cancel_timer()
        for task, connection in tuple(self._starting.items()):
            task.cancel()
            connection.close()  # a task that never ran cannot close it

    def _accept(self) -> None:
        for _ in range(MAX_ACCEPTS):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in CONNECTION_ERRORS:
                    continue
                self._pause(error)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._start(connection))
            self._starting[task] = connection
            task.add_done_callback(self._started)

    async def _start(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except BaseException:
            connection.close()
            raise

    def _started(self, task: asyncio.Task[None]) -> None:
        del self._starting[task]

    def _pause(self, error: OSError) -> None:
        self._loop.remove_reader(self._listener)
        self._set_timer(self._retry_s, self._resume)
        if not self._is_short:
            self._is_short = True
            logger.warning("no connections are accepted on %s: %s", self._name, error.strerror)

    def _resume(self) -> None:
        try:
            os.close(os.dup(self._listener.fileno()))  # fails without a free descriptor
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
