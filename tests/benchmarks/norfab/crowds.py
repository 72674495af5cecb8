"""Many workers or clients in one process, each with a socket of its own, as little as they can be.

    python -m tests.benchmarks.norfab.crowds workers ENDPOINT FIRST COUNT RESOURCES
    python -m tests.benchmarks.norfab.crowds clients ENDPOINT COUNT

Workers say OPEN with what they manage, READY, and a KEEPALIVE every 2.5 s; they answer each POST at once, with 201 and 200.
Clients post a job each for any worker, for a resource or for all when they are told (``{"target": T, "resource": R}`` a line), and say
how long it took until each had all its results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Any
from uuid import uuid4

import zmq

from tests.benchmarks.norfab.raw import say

SERVICE = b"crowd"
KEEPALIVE_S = 2.5


def connect(context: Any, poller: Any, endpoint: str, name: bytes) -> Any:
    """Return a DEALER of this name."""
    socket = context.socket(zmq.DEALER)
    socket.set_hwm(100_000)
    socket.identity = name
    socket.linger = 0
    socket.connect(endpoint)
    poller.register(socket, zmq.POLLIN)
    return socket


def work(endpoint: str, first: str, count: str, resources: str) -> None:
    """Be so many workers."""
    context, poller = zmq.Context(), zmq.Poller()
    context.max_sockets = 4096
    names: dict[Any, bytes] = {}
    for number in range(int(first), int(first) + int(count)):
        name = b"w%d" % number
        socket = connect(context, poller, endpoint, name)
        names[socket] = name
        managed = {"resources": [f"r{number}-{r}" for r in range(int(resources))]}
        socket.send_multipart([b"", b"NFPW01", b"0x00", json.dumps(managed, separators=(",", ":")).encode()])
        socket.send_multipart([b"", b"NFPW01", b"0x01", SERVICE])
    say(workers=len(names))
    alive = monotonic()
    while True:
        for socket, _ in poller.poll(200):
            answer(socket, names[socket])
        if monotonic() - alive > KEEPALIVE_S:
            alive = monotonic()
            for socket in names:
                socket.send_multipart([b"", b"NFPW01", b"0x02", SERVICE])


def answer(socket: Any, name: bytes) -> None:
    """Take one message."""
    _, _, command, *rest = socket.recv_multipart()
    if command == b"0x04":
        client, _, uuid, _ = rest
        head = [b"", b"NFPW01", b"0x05", client, b"", uuid]
        socket.send_multipart([*head, b"201", b'{"worker":"%s","status":"ACCEPTED"}' % name])
        socket.send_multipart([*head, b"200", b'{"%s":{"result":null,"failed":false,"errors":[]}}' % name])
    elif command == b"0x03":
        say(disconnected=name.decode())
        socket.send_multipart([b"", b"NFPW01", b"0x01", SERVICE])


def ask(endpoint: str, count: str) -> None:
    """Be so many clients."""
    context, poller = zmq.Context(), zmq.Poller()
    sockets = [connect(context, poller, endpoint, b"c%d" % number) for number in range(int(count))]
    say(clients=len(sockets))
    for line in sys.stdin:
        order = json.loads(line)
        say(took=post(poller, sockets[: order.get("clients")], order["target"], order.get("resource")))


def post(poller: Any, sockets: list[Any], target: str, resource: str | None) -> list[float]:
    """Post a job of each client, and return how long each took."""
    body = json.dumps({"task": "noop", "args": [], "kwargs": {}, "resources": [resource] if resource else []})
    begun: dict[Any, float] = {}
    for socket in sockets:
        uuid = uuid4().hex.encode()
        begun[socket] = perf_counter()
        socket.send_multipart([b"", b"NFPC01", b"0x04", SERVICE, target.encode(), uuid, body.encode()])
    missing = dict.fromkeys(sockets, -1)
    results = dict.fromkeys(sockets, 0)
    took: list[float] = []
    while len(took) < len(sockets):
        for socket, _ in poller.poll():
            frames = socket.recv_multipart()
            if frames[5] == b"202":
                missing[socket] = len(json.loads(frames[6])["workers"])
            elif frames[5] == b"200":
                results[socket] += 1
                if results[socket] == missing[socket]:
                    took.append(perf_counter() - begun[socket])
    return took


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {"workers": work, "clients": ask}
    roles[sys.argv[1]](*sys.argv[2:])
