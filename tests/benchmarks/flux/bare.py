"""The yardstick: bare sockets in place of brokers, each in a process of its own until its standard input ends.

`local` is an asyncio server on a UNIX socket: it cuts the stream into messages and their parts, and for each request it
writes the octets of a response, or passes an event on to the other connections, one write for each message.

`relay` is a stop in the tree, a loop around `zmq.Poller`: what comes on the UNIX socket, cut into parts, goes down as
one multipart message with the same route frames as between brokers, and back the same way. The rank that is asked
exchanges payload and header for those of the answer. CURVE is what brokers have; nothing is looked at but the rank.

    python -m tests.benchmarks.flux.bare local PATH
    python -m tests.benchmarks.flux.bare relay RANK FOLDER SIZE
"""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import cast

import zmq

from specwire.runtime.transport.keys import KeyPair, load_keys
from tests.benchmarks.flux.framing import ANSWER, ANSWER_HEAD, REQUESTS, cut, join, nodeid_of

READ_OCTETS = 64 * 1024
AT_A_TIME = 64
READY = "ready"
RESPONSE = join([*REQUESTS[0][:-2], ANSWER, ANSWER_HEAD])
EVENT_TYPE = 4
UUID = "00000000-0000-4000-8000-{:012}"
"""As long as the uuids of brokers and clients are."""

ROUTES = [UUID.format(100).encode(), UUID.format(101).encode()]
"""What the connector adds: its own and the client's."""


class Connection(asyncio.Protocol):
    """One client of `local`."""

    def __init__(self, all_: set[asyncio.Transport]) -> None:
        self._all, self._buffer = all_, bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._all.add(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._all.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for parts in cut(self._buffer):
            if parts[-1][2] == EVENT_TYPE:
                self._pass_on(join(parts))
            else:
                self._transport.write(RESPONSE)

    def _pass_on(self, octets: bytes) -> None:
        for transport in self._all:
            if transport is not self._transport:
                transport.write(octets)


async def serve_local(path: str) -> None:
    """Answer on a UNIX socket."""
    clients: set[asyncio.Transport] = set()
    server = await asyncio.get_running_loop().create_unix_server(lambda: Connection(clients), path)
    print(READY, file=sys.stderr, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


class Relay:
    """A stop on the way down a chain."""

    def __init__(self, rank: int, folder: Path, size: int) -> None:
        self._rank, self._context = rank, zmq.Context()
        keys = load_keys(folder / "keys" / "instance.key_secret")
        self._uuid, self._child = UUID.format(rank).encode(), UUID.format(rank + 1).encode()
        self._poller = zmq.Poller()
        self._poller.register(sys.stdin.fileno(), zmq.POLLIN)
        self._up: zmq.Socket[bytes] | None = None
        self._down: zmq.Socket[bytes] | None = None
        if rank + 1 < size:
            self._down = self._make(zmq.ROUTER, keys)
            self._down.curve_server = True
            self._down.bind(f"ipc://{folder}/bare-{rank}")
        if rank:
            self._up = self._make(zmq.DEALER, keys)
            self._up.curve_serverkey = keys.public.encode()
            self._up.routing_id = self._uuid
            self._up.connect(f"ipc://{folder}/bare-{rank - 1}")
            self._up.send_multipart([b"hello"])
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(folder / "bare"))
            self._listener.listen()
            self._poller.register(self._listener, zmq.POLLIN)
        self._client: socket.socket | None = None
        self._clients: dict[int, socket.socket] = {}
        self._buffer = bytearray()

    def run(self) -> None:
        """Pass messages until standard input ends."""
        if self._down is not None:
            self._down.recv_multipart()  # the child's hello
        print(READY, file=sys.stderr, flush=True)
        while True:
            for ready, _ in self._poller.poll():
                if ready == sys.stdin.fileno():
                    self._context.destroy(linger=0)
                    return
                if isinstance(ready, zmq.Socket):
                    self._drain(ready)
                elif ready == self._listener.fileno():
                    self._client, _ = self._listener.accept()
                    self._clients[self._client.fileno()] = self._client
                    self._poller.register(self._client, zmq.POLLIN)
                else:
                    self._read(self._clients[ready])

    def _make(self, kind: int, keys: KeyPair) -> zmq.Socket[bytes]:
        made = self._context.socket(kind)
        made.curve_publickey, made.curve_secretkey = keys.public.encode(), keys.secret.encode()
        self._poller.register(made, zmq.POLLIN)
        return made

    def _drain(self, ready: zmq.Socket[bytes]) -> None:
        try:
            for _ in range(AT_A_TIME):
                frames = ready.recv_multipart(zmq.NOBLOCK)
                if ready is self._down:
                    self._from_below(frames)
                else:
                    self._from_above(frames)
        except zmq.Again:
            return

    def _from_above(self, frames: list[bytes]) -> None:
        if self._up is not None and nodeid_of(frames) == self._rank:
            self._up.send_multipart([*frames[:-2], ANSWER, ANSWER_HEAD])
        elif self._down is not None:
            self._down.send_multipart([self._child, self._uuid, *frames])

    def _from_below(self, frames: list[bytes]) -> None:
        if self._up is not None:
            self._up.send_multipart(frames[2:])
        elif self._client is not None:
            self._client.sendall(join(frames[4:]))

    def _read(self, client: socket.socket) -> None:
        octets = client.recv(READ_OCTETS)
        if not octets:
            self._poller.unregister(client)
            del self._clients[client.fileno()]
            client.close()
            return
        self._buffer += octets
        assert self._down is not None
        for parts in cut(self._buffer):
            self._down.send_multipart([self._child, self._uuid, *ROUTES, *parts])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["local", path]:
            asyncio.run(serve_local(path))
        case ["relay", rank, folder, size]:
            Relay(int(rank), Path(folder), int(size)).run()
