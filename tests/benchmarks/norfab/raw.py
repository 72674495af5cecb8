"""Peers of a relay that do nothing but send and receive, and the barest relay.

    python -m tests.benchmarks.norfab.raw relay
    python -m tests.benchmarks.norfab.raw worker ENDPOINT
    python -m tests.benchmarks.norfab.raw client ENDPOINT

The worker answers each POST with one RESPONSE of status 200. The client keeps `window` jobs under way and counts results:
``{"jobs": COUNT, "window": W}`` a line. The relay keeps nothing and looks at nothing but where a message goes.

The relay is pyzmq as everybody writes it. The ends, which are the same whatever is between them, take their messages in C
where that was compiled (`specwire.runtime.transport.messages`), all that have come before they say anything: they share
two cores with what is measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import Any

import zmq

from specwire.runtime.transport.messages import Messages

SERVICE = b"bench"
KEEPALIVE_S = 1.0
MAX_FRAMES = 16
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


class End:
    """A DEALER of this name."""

    def __init__(self, endpoint: str, name: bytes) -> None:
        self._socket = zmq.Context().socket(zmq.DEALER)
        self._socket.set_hwm(100_000)
        self._socket.setsockopt(zmq.ROUTING_ID, name)
        self._socket.connect(endpoint)
        self._messages = Messages(self._socket, MAX_FRAMES, False)

    def send(self, frames: list[bytes]) -> None:
        """Send a message; raises RuntimeError where there is no room for it."""
        if not self._messages.send(frames):
            raise RuntimeError("what is between the ends takes no more")

    def receive(self, timeout_s: float | None = None) -> list[list[bytes]]:
        """Return the frames of all messages that have come, one at least unless none comes in time."""
        came = list(iter(self._messages.receive, []))
        if came or not self._socket.poll(None if timeout_s is None else int(1000 * timeout_s)):
            return came
        return list(iter(self._messages.receive, []))


def work(endpoint: str) -> None:
    """Answer jobs."""
    end = End(endpoint, b"raw")
    end.send([b"", b"NFPW01", b"0x01", SERVICE])
    say(worker="raw")
    alive = monotonic()
    while True:
        for frames in end.receive(KEEPALIVE_S):
            _, _, command, *rest = frames
            if command == b"0x04":
                client, _, uuid, _ = rest
                end.send([b"", b"NFPW01", b"0x05", client, b"", uuid, b"200", RESULT])
            elif command == b"0x06":
                client, _, uuid, _ = rest
                end.send([b"", b"NFPW01", b"0x05", client, b"", uuid, b"300", b'{"worker":"raw"}'])
        if monotonic() - alive > KEEPALIVE_S:
            alive = monotonic()
            end.send([b"", b"NFPW01", b"0x02", SERVICE])


def ask(endpoint: str) -> None:
    """Post jobs."""
    end = End(endpoint, b"rawclient")
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
                end.send([b"", b"NFPC01", b"0x04", SERVICE, b"all", uuid, BODY])
                posted += 1
            for frames in end.receive():
                done += len(frames) > 5 and frames[2] == b"0x05" and frames[5] == b"200"
        say(seconds=perf_counter() - begun)


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {"relay": relay, "worker": work, "client": ask}
    roles[sys.argv[1]](*sys.argv[2:])
