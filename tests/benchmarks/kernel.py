"""Measure the kernel's host with an engine that only echoes, against a bare pyzmq loop: ``make bench``.

Each server is a process of its own, and the same bare client drives it over TCP on loopback: with
`WINDOW` messages in flight for the rate, and with one at a time for the round trip. The two servers take
turns, and the best round of each counts.

    python -m tests.benchmarks.kernel [--quick] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

import zmq
from rich.console import Console
from rich.table import Table

from specwire.generated import zre
from specwire.runtime.kernel.effects import HostEffect, Send, Stop
from specwire.runtime.kernel.engine import PackageCodec
from specwire.runtime.kernel.events import Event, MessageReceived, Stopping
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.service import HostSettings, ListenerSettings

WINDOW = 64
KINDS = ("bare", "kernel")
MIN_RATE = 0.5
"""Least rate of the kernel, as a share of that of the bare loop."""
MAX_ADDED_US = 60
"""Most microseconds that the kernel adds to the median round trip."""


class Echo:
    """Engine that sends each message back."""

    def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
        """Send a message back."""
        match event:
            case MessageReceived(peer=peer, message=message):
                return (Send(peer, message),)
            case Stopping(reason=reason):
                return (Stop(reason),)
        return ()

    def deadline(self) -> float | None:
        """Return None: nothing depends on the time."""
        return None


async def serve_kernel() -> None:
    """Echo with the kernel until standard input ends."""
    listener = ListenerSettings(endpoint="tcp://127.0.0.1:*")
    settings = HostSettings(listeners={"front": listener})
    async with Host(Echo(), PackageCodec(zre), settings, on_event=print) as host:
        print(host.status().endpoints["front"], flush=True)
        await asyncio.to_thread(sys.stdin.read)


def serve_bare() -> None:
    """Echo with a bare socket, until the process is ended; decode and encode as the kernel does."""
    socket = zmq.Context().socket(zmq.ROUTER)
    socket.bind("tcp://127.0.0.1:*")
    print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
    while True:
        peer, *frames = socket.recv_multipart()
        socket.send_multipart([peer, *zre.decode(frames).encode()])


@contextmanager
def server(kind: str) -> Iterator[str]:
    """Run a server in a process of its own; yield its endpoint."""
    command = [sys.executable, "-m", "tests.benchmarks.kernel", "serve", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it is a pipe"
        yield process.stdout.readline().strip()
        process.kill()


def drive(endpoint: str, messages: int) -> tuple[float, float]:
    """Return messages a second with `WINDOW` in flight, and the median round trip in microseconds."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.connect(endpoint)
    frames = zre.Whisper(sequence=1, content=(bytes(100),)).encode()
    for _ in range(100):
        socket.send_multipart(frames)
        socket.recv_multipart()
    round_trips = []
    for _ in range(messages // 10):
        begun = perf_counter()
        socket.send_multipart(frames)
        socket.recv_multipart()
        round_trips.append(perf_counter() - begun)
    begun = perf_counter()
    for _ in range(WINDOW):
        socket.send_multipart(frames)
    for number in range(messages):
        socket.recv_multipart()
        if number < messages - WINDOW:
            socket.send_multipart(frames)
    rate = messages / (perf_counter() - begun)
    context.destroy(linger=0)
    return rate, median(round_trips) * 1e6


def measure(messages: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the best rate and the best median round trip of each kind."""
    runs: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            with server(kind) as endpoint:
                runs[kind].append(drive(endpoint, messages))
    return {kind: (max(rate for rate, _ in rows), min(us for _, us in rows)) for kind, rows in runs.items()}


def main() -> int:
    """Measure and print; return the exit status, 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer messages, one round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    best = measure(5_000 if options.quick else 50_000, 1 if options.quick else 3)
    share, added = best["kernel"][0] / best["bare"][0], best["kernel"][1] - best["bare"][1]
    if options.json:
        print(json.dumps({"best": best, "share": share, "added_us": added}))
    else:
        table = Table("server", "messages/s", "x bare", "p50 round trip, µs")
        for kind, (rate, us) in best.items():
            table.add_row(kind, f"{rate:,.0f}", f"{rate / best['bare'][0]:.2f}", f"{us:.0f}")
        Console(stderr=False).print(table)
    return 0 if share >= MIN_RATE and added <= MAX_ADDED_US else 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", "bare"]:
            serve_bare()
        case ["serve", "kernel"]:
            asyncio.run(serve_kernel())
        case _:
            sys.exit(main())
