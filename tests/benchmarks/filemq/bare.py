"""The yardstick: one side of a transfer on bare pyzmq sockets, in a process of its own.

The server sends every file, piece by piece, to each client that asks; the client writes them. No protocol, no name
is judged, nothing is checked, nothing is written aside. On request a client also waits for the disk before the
next file, or takes the SHA-1 of what comes while it comes: so what our peers promise can be priced.

    python -m tests.benchmarks.filemq.bare serve FOLDER
    python -m tests.benchmarks.filemq.bare subscribe ENDPOINT INBOX FILES SIZE [sync] [digest]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

import zmq

from tests.benchmarks.filemq.side import Stopwatch, print_cost, print_endpoint

CHUNK_OCTETS = 1 << 20
HIGH_WATER = 8
COPY_LIMIT_OCTETS = 65536


def serve(folder: Path) -> None:
    """Send every file of `folder` to each client that asks, as fast as its queue takes it, until input ends."""
    names = sorted(folder.iterdir())
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.set_hwm(HIGH_WATER)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.bind("tcp://127.0.0.1:*")
    begun_cpu_s = print_endpoint(socket.getsockopt_string(zmq.LAST_ENDPOINT))
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    streams: dict[bytes, Iterator[list[bytes]]] = {}
    held: dict[bytes, list[bytes]] = {}
    while True:
        ready = dict(poller.poll(None if not streams else 0))
        if sys.stdin.fileno() in ready:
            break
        if socket in ready:
            peer, _ = socket.recv_multipart()
            streams[peer] = _pieces(names)
        for peer in list(streams):
            message = held.pop(peer, None) or next(streams[peer], None)
            if message is None:
                del streams[peer]
                continue
            try:
                socket.send(peer, zmq.SNDMORE | zmq.NOBLOCK)
                socket.send_multipart(message, zmq.NOBLOCK, copy=len(message[-1]) < COPY_LIMIT_OCTETS)
            except zmq.Again:
                held[peer] = message
    context.destroy(linger=0)
    print_cost(begun_cpu_s)


def _pieces(names: list[Path]) -> Iterator[list[bytes]]:
    for name in names:
        with name.open("rb", buffering=0) as stream:
            while chunk := stream.read(CHUNK_OCTETS):
                yield [name.name.encode(), chunk]


def subscribe(endpoint: str, inbox: Path, files: int, size: int, *, sync: bool, digest: bool) -> None:
    """Write `files` files of `size` octets."""
    inbox.mkdir()
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.set_hwm(HIGH_WATER)
    watch = Stopwatch()
    socket.connect(endpoint)
    socket.send(b"")
    for _ in range(files):
        name = socket.recv()
        sum_ = sha1(usedforsecurity=False)
        with (inbox / os.fsdecode(name)).open("wb", buffering=0) as stream:
            left = size
            while left:
                chunk = socket.recv(copy=False)
                left -= stream.write(chunk.buffer)
                if digest:
                    sum_.update(chunk.buffer)
                if left:
                    socket.recv()
            if sync:
                os.fsync(stream.fileno())
    watch.stop()
    context.destroy(linger=0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder]:
            serve(Path(folder))
        case ["subscribe", endpoint, inbox, files, size, *flags]:
            subscribe(
                endpoint, Path(inbox), int(files), int(size), sync="sync" in flags, digest="digest" in flags
            )
