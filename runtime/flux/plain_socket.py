"""A client's connection to the local connector without a loop: it is read and written while somebody waits.

Both at once: a broker that does not read because nobody reads what it has sent must not stop us for ever.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from math import ceil, inf
from select import POLLIN, POLLOUT, poll

from specwire.generated.errors import DecodeError
from specwire.generated.flux import AnyMessage, StreamDecoder, frame
from specwire.runtime.flux.client_limits import LINGER_S, READ_OCTETS, RETRY_S
from specwire.runtime.flux.errors import ETIMEDOUT, FluxError
from specwire.runtime.flux.uri import explain_denial, explain_loss, explain_refusal


class PlainSocket:
    """A connection that the broker has authorised.

    Raises:
        FluxError: there is no broker, it does not want this client, or it says nothing for `timeout_s`.
    """

    def __init__(self, path: str, timeout_s: float | None, max_octets: int) -> None:
        self._path = path
        self._decoder = StreamDecoder(max_octets=max_octets)
        self._unsent = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._join(timeout_s)
        except BaseException:
            self._socket.close()
            raise
        self._poll = poll()

    def send(self, message: AnyMessage) -> None:
        """Send what there is room for, the rest while waiting; raises EncodeError, and FluxError where it is lost."""
        octets = frame(message)
        self._unsent += octets
        if len(self._unsent) == len(octets):
            self._write()

    def wait(self, deadline: float) -> Sequence[AnyMessage]:
        """Return the messages that come next, none where `deadline` (monotonic) passes; raises FluxError where it is lost."""
        while self._ready(deadline):
            self._write()
            if messages := self._read():
                return messages
        return ()

    def close(self) -> None:
        """Send what is left, if that does not take long, and close."""
        self._socket.settimeout(LINGER_S)
        with suppress(OSError):
            self._socket.sendall(self._unsent)
        self._socket.close()

    def _join(self, timeout_s: float | None) -> None:
        deadline = inf if timeout_s is None else time.monotonic() + timeout_s
        try:
            while not self._is_connected():
                if time.monotonic() > deadline:
                    raise TimeoutError
                time.sleep(RETRY_S)
            self._socket.settimeout(timeout_s)
            answer = self._socket.recv(1)
        except TimeoutError:
            raise FluxError(ETIMEDOUT, f"no answer from the broker in {timeout_s:g} s") from None
        except OSError as error:
            raise explain_refusal(self._path, error) from error
        if not answer:
            raise explain_loss(self._path, "the broker has closed it")
        if answer[0]:
            raise explain_denial(self._path, answer[0])
        self._socket.setblocking(False)

    def _is_connected(self) -> bool:
        """Try to connect; False where too many wait to be let in."""
        self._socket.setblocking(False)
        try:
            self._socket.connect(self._path)
        except BlockingIOError:
            return False
        return True

    def _ready(self, deadline: float) -> bool:
        """Wait until there is something to read, or room to write; False where `deadline` passes first."""
        self._poll.register(self._socket, POLLIN | (POLLOUT if self._unsent else 0))
        left_ms = None if deadline == inf else max(0, ceil((deadline - time.monotonic()) * 1000))
        return bool(self._poll.poll(left_ms))

    def _write(self) -> None:
        if not self._unsent:
            return
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            raise explain_loss(self._path, error.strerror or str(error)) from error
        del self._unsent[:sent]

    def _read(self) -> Sequence[AnyMessage]:
        try:
            octets = self._socket.recv(READ_OCTETS)
        except BlockingIOError:
            return ()
        except OSError as error:
            raise explain_loss(self._path, error.strerror or str(error)) from error
        if not octets:
            raise explain_loss(self._path, "the broker has closed it")
        try:
            return self._decoder.feed(octets)
        except DecodeError as error:
            raise explain_loss(self._path, f"what came is no message: {error}") from error
