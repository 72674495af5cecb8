"""What is measured: one side of a transfer by our own peers, in a process of its own.

The client always takes the SHA-1 of a file while it comes; with ``sync`` it also has each file on the disk before it
is in its place, which is what it does by default.

    python -m tests.benchmarks.filemq.peers serve FOLDER
    python -m tests.benchmarks.filemq.peers subscribe ENDPOINT INBOX FILES SIZE [sync]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import Event, FileReceived
from tests.benchmarks.filemq.side import DEADLINE_S, Stopwatch, print_cost, print_endpoint


async def serve(folder: Path) -> None:
    """Serve `folder` until input ends."""
    async with FilemqServer([Publication(folder, "/")]) as server:
        begun_cpu_s = print_endpoint(server.endpoint)
        await asyncio.to_thread(sys.stdin.read)
    print_cost(begun_cpu_s)


async def subscribe(endpoint: str, inbox: Path, files: int, *, sync: bool) -> None:
    """Receive so many files into `inbox`."""
    done = asyncio.Event()
    received = 0

    def on_event(event: Event) -> None:
        nonlocal received
        received += isinstance(event, FileReceived)
        if received == files:
            done.set()

    client = FilemqClient(endpoint, inbox, ["/"], sync=sync, on_event=on_event)
    with Stopwatch() as watch:
        async with client, asyncio.timeout(DEADLINE_S):
            await done.wait()
            watch.stop()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder]:
            asyncio.run(serve(Path(folder)))
        case ["subscribe", endpoint, inbox, files, _, *flags]:
            asyncio.run(subscribe(endpoint, Path(inbox), int(files), sync="sync" in flags))
