"""Measure FILEMQ peers against bare ZeroMQ sockets, each side in a process of its own: ``make bench``.

Three transfers over TCP on loopback: one large file, many small ones, and one file to many clients. The yardstick is
a loop of bare pyzmq sockets that sends the same octets in the same sizes and writes the same files, with no
protocol, no digest, no check and no wait for the disk, in the same run. Our clients digest each file while it comes;
by default they also have it on the disk before it is in its place, and each transfer is measured without that too. Files are in the page cache; a peer's memory is the largest
resident set of its process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha1
from pathlib import Path
from time import perf_counter
from typing import Any

import zmq
from rich.console import Console
from rich.table import Table

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import Event, FileReceived

MEGABYTE = 10**6
BARE_CHUNK_OCTETS = 1 << 20
BARE_HIGH_WATER = 8
SMALL_OCTETS = 1000
DEADLINE_S = 300.0
GATE = 0.8


@dataclass(frozen=True)
class Result:
    """One transfer: octets and files of all clients, seconds from the first request to the last file in its place."""

    case: str
    octets: int
    files: int
    seconds: float
    bare_seconds: float
    client_kib: int
    server_kib: int

    @property
    def ratio(self) -> float:
        """Speed in relation to the bare sockets'."""
        return self.bare_seconds / self.seconds


# ---- one side each, in a process of its own: prints what it is told to print as JSON


def serve(folder: Path) -> None:
    """Serve `folder` until standard input ends; prints the endpoint first, the memory last."""

    async def run() -> None:
        async with FilemqServer([Publication(folder, "/")]) as server:
            print(json.dumps(server.endpoint), flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())
    _print_memory()


def subscribe(endpoint: str, inbox: Path, files: int, *, sync: bool) -> None:
    """Receive so many files into `inbox`; prints seconds and memory."""

    async def run() -> float:
        done = asyncio.Event()
        received = 0

        def on_event(event: Event) -> None:
            nonlocal received
            received += isinstance(event, FileReceived)
            if received == files:
                done.set()

        client = FilemqClient(endpoint, inbox, ["/"], sync=sync, on_event=on_event)
        begun = perf_counter()
        async with client, asyncio.timeout(DEADLINE_S):
            await done.wait()
            return perf_counter() - begun

    print(json.dumps({"seconds": asyncio.run(run()), "kib": _memory_kib()}), flush=True)


def serve_bare(folder: Path) -> None:
    """Send every file of `folder` to each client that asks, as fast as its queue takes it."""
    names = sorted(folder.iterdir())
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.set_hwm(BARE_HIGH_WATER)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    socket.bind("tcp://127.0.0.1:*")
    print(json.dumps(socket.getsockopt_string(zmq.LAST_ENDPOINT)), flush=True)
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
                socket.send_multipart(message, zmq.NOBLOCK, copy=len(message[-1]) < 65536)
            except zmq.Again:
                held[peer] = message
    context.destroy(linger=0)
    _print_memory()


def _pieces(names: list[Path]) -> Iterator[list[bytes]]:
    for name in names:
        with name.open("rb", buffering=0) as stream:
            while chunk := stream.read(BARE_CHUNK_OCTETS):
                yield [name.name.encode(), chunk]


def subscribe_bare(endpoint: str, inbox: Path, files: int, size: int) -> None:
    """Write `files` files of `size` octets; prints seconds and memory."""
    inbox.mkdir()
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.set_hwm(BARE_HIGH_WATER)
    socket.connect(endpoint)
    begun = perf_counter()
    socket.send(b"")
    for _ in range(files):
        name = socket.recv()
        with (inbox / os.fsdecode(name)).open("wb", buffering=0) as stream:
            left = size
            while left:
                chunk = socket.recv(copy=False)
                left -= stream.write(chunk.buffer)
                if left:
                    socket.recv()
    seconds = perf_counter() - begun
    context.destroy(linger=0)
    print(json.dumps({"seconds": seconds, "kib": _memory_kib()}), flush=True)


def _memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _print_memory() -> None:
    print(json.dumps({"kib": _memory_kib()}), flush=True)


# ---- the measurement


def measure(case: str, *, size: int, files: int, clients: int, work: Path) -> list[Result]:
    """Transfer `files` files of `size` octets to `clients` clients at once, with bare sockets and with our peers."""
    folder = work / "published"
    folder.mkdir()
    content = os.urandom(min(size, 8 * MEGABYTE))
    for number in range(files):
        with (folder / f"file-{number:06}").open("wb") as stream:
            for begin in range(0, size, len(content)):
                stream.write(content[: min(len(content), size - begin)])
    bare, _ = _run("bare", folder, work, size=size, files=files, clients=clients)
    results = []
    for kind, words in (("peers", ""), ("unsynced", ", not synced")):
        ours, server_kib = _run(kind, folder, work, size=size, files=files, clients=clients)
        results.append(
            Result(
                case=case + words,
                octets=size * files * clients,
                files=files * clients,
                seconds=max(row["seconds"] for row in ours),
                bare_seconds=max(row["seconds"] for row in bare),
                client_kib=max(row["kib"] for row in ours),
                server_kib=server_kib,
            )
        )
    return results


def _run(
    kind: str, folder: Path, work: Path, *, size: int, files: int, clients: int
) -> tuple[list[dict[str, Any]], int]:
    # What was written before is on the disk, and nothing is deleted between two runs: the next one would pay for it.
    os.sync()
    with _child(f"serve-{kind}", str(folder)) as server:
        assert server.stdout is not None
        endpoint = json.loads(server.stdout.readline())
        inboxes = [work / f"{kind}-{number}" for number in range(clients)]
        children = [
            subprocess.Popen(
                [sys.executable, __file__, f"subscribe-{kind}", endpoint, str(inbox), str(files), str(size)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for inbox in inboxes
        ]
        rows = [json.loads(child.communicate(timeout=DEADLINE_S)[0]) for child in children]
        assert server.stdin is not None
        server.stdin.close()
        memory = json.loads(server.stdout.readline())["kib"]
    for inbox in inboxes:
        _check(folder, inbox)
    return rows, memory


@contextmanager
def _child(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def _check(folder: Path, inbox: Path) -> None:
    """After the clock has stopped: every file is there, whole."""
    for file in folder.iterdir():
        copy = inbox / file.name
        if _digest(copy) != _digest(file):
            raise SystemExit(f"{copy} is not what was sent")


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        digest = sha1(usedforsecurity=False)
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the large file")
    parser.add_argument("--files", type=int, default=10_000, help="number of small files")
    parser.add_argument("--clients", type=int, default=50, help="number of clients of one server")
    asked = parser.parse_args()
    cases = {
        f"one file of {asked.megabytes} MB": (asked.megabytes * MEGABYTE, 1, 1),
        f"{asked.files:,} files of 1 kB": (SMALL_OCTETS, asked.files, 1),
        f"one file of {asked.megabytes // asked.clients} MB to {asked.clients} clients": (
            asked.megabytes // asked.clients * MEGABYTE,
            1,
            asked.clients,
        ),
    }
    results: list[Result] = []
    for case, (size, files, clients) in cases.items():
        with tempfile.TemporaryDirectory() as work:
            results += measure(case, size=size, files=files, clients=clients, work=Path(work))
    if asked.json:
        json.dump([asdict(row) | {"ratio": row.ratio} for row in results], sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    table = Table(title="FILEMQ peers against bare sockets that write the same files", title_justify="left")
    table.add_column("transfer")
    for head in ("MB/s", "files/s", "x bare", f"≥ {GATE}", "client MiB", "server MiB"):
        table.add_column(head, justify="right")
    for r in results:
        table.add_row(
            r.case,
            f"{r.octets / r.seconds / MEGABYTE:,.0f}",
            f"{r.files / r.seconds:,.0f}",
            f"{r.ratio:.2f}",
            "yes" if r.ratio >= GATE else "no",
            f"{r.client_kib / 1024:.0f}",
            f"{r.server_kib / 1024:.0f}",
        )
    Console(width=110).print(table)


def _dispatch() -> None:
    match sys.argv[1:]:
        case ["serve-peers" | "serve-unsynced", folder]:
            serve(Path(folder))
        case ["serve-bare", folder]:
            serve_bare(Path(folder))
        case ["subscribe-peers" | "subscribe-unsynced" as kind, endpoint, inbox, files, _]:
            subscribe(endpoint, Path(inbox), int(files), sync=kind == "subscribe-peers")
        case ["subscribe-bare", endpoint, inbox, files, size]:
            subscribe_bare(endpoint, Path(inbox), int(files), int(size))
        case _:
            main()


if __name__ == "__main__":
    _dispatch()
