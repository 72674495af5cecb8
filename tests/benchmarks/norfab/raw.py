"""Peers of a relay that do nothing but send and receive, and the barest relay, all in pyzmq.

    python -m tests.benchmarks.norfab.raw relay
    python -m tests.benchmarks.norfab.raw worker ENDPOINT
    python -m tests.benchmarks.norfab.raw client ENDPOINT

The worker answers each POST with one RESPONSE of status 200. The client keeps `window` jobs under way and counts results:
``{"jobs": COUNT, "window": W}`` a line. The relay keeps nothing and looks at nothing but where a message goes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Any

import zmq

SERVICE = b"bench"
KEEPALIVE_S = 1.0
BODY = b'{"task":"noop","kwargs":{},"args":[],"timeout":300}'
RESULT = b'{"raw":{"result":null,"failed":false,"errors":[],"messages":[],"status":"completed"}}'


def say(**said: Any) -> None:
    """Write a line of JSON."""
    print(json.dumps(said), flush=True)


def relay() -> None:
    """Pass jobs to the one worker and its answers to the clients."""
    socket: Any = zmq.Context().socket(zmq.ROUTER)
    socket.set_hwm(100_000)
    socket.bind("tcp://127.0.0.1:*")
    say(endpoint=socket.last_endpoint.decode())
    worker = b""
    while True:
        peer, _, header, command, *rest = socket.recv_multipart()
        if header == b"NFPC01":
            *_, uuid, body = rest
            socket.send_multipart([worker, b"", b"NFPB01", command, peer, b"", uuid, body])
        elif command == b"0x01":
            worker = peer
        elif command == b"0x05":
            client, _, uuid, status, body = rest
            socket.send_multipart([client, b"", b"NFPB01", command, SERVICE, uuid, status, body])


def work(endpoint: str) -> None:
    """Answer jobs."""
    socket: Any = zmq.Context().socket(zmq.DEALER)
    socket.set_hwm(100_000)
    socket.identity = b"raw"
    socket.connect(endpoint)
    socket.send_multipart([b"", b"NFPW01", b"0x01", SERVICE])
    say(worker="raw")
    alive = monotonic()
    while True:
        if socket.poll(1000 * KEEPALIVE_S):
            _, _, command, *rest = socket.recv_multipart()
            if command == b"0x04":
                client, _, uuid, _ = rest
                socket.send_multipart([b"", b"NFPW01", b"0x05", client, b"", uuid, b"200", RESULT])
            elif command == b"0x06":
                client, _, uuid, _ = rest
                socket.send_multipart(
                    [b"", b"NFPW01", b"0x05", client, b"", uuid, b"300", b'{"worker":"raw"}']
                )
        if monotonic() - alive > KEEPALIVE_S:
            alive = monotonic()
            socket.send_multipart([b"", b"NFPW01", b"0x02", SERVICE])


def ask(endpoint: str) -> None:
    """Post jobs."""
    socket: Any = zmq.Context().socket(zmq.DEALER)
    socket.set_hwm(100_000)
    socket.identity = b"rawclient"
    socket.connect(endpoint)
    say(client="raw")
    posted = 0
    for line in sys.stdin:
        order = json.loads(line)
        jobs, window = order["jobs"], order["window"]
        done, last = 0, posted + jobs
        begun = perf_counter()
        while done < jobs:
            while posted < last and posted - (last - jobs) - done < window:
                uuid = b"%032x" % posted
                socket.send_multipart([b"", b"NFPC01", b"0x04", SERVICE, b"all", uuid, BODY])
                posted += 1
            frames = socket.recv_multipart()
            done += frames[2] == b"0x05" and frames[5] == b"200"
        say(seconds=perf_counter() - begun)


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {"relay": relay, "worker": work, "client": ask}
    roles[sys.argv[1]](*sys.argv[2:])
