"""What is measured: one side of a transfer by our own peers, in a process of its own.

The client takes the SHA-1 of a file while it comes, unless it is told ``unchecked``; with ``sync`` it also has each
file on the disk before it is in its place. By default it does both.

    python -m tests.benchmarks.filemq.peers serve FOLDER
    python -m tests.benchmarks.filemq.peers subscribe ENDPOINT INBOX FILES SIZE [sync] [unchecked]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import FileReceived
from specwire.runtime.kernel.log import LogEvent
from tests.benchmarks.filemq.side import DEADLINE_S, Stopwatch, print_cost, print_endpoint


async def serve(folder: Path) -> None:
    """Serve `folder` until input ends."""
    async with FilemqServer([Publication(folder, "/")]) as server:
        begun_cpu_s = print_endpoint(server.endpoint)
        await asyncio.to_thread(sys.stdin.read)
    print_cost(begun_cpu_s)


async def subscribe(endpoint: str, inbox: Path, files: int, *, sync: bool, check: bool) -> None:
    """Receive so many files into `inbox`."""
    done = asyncio.Event()
    received = 0

    def on_event(event: LogEvent) -> None:
        nonlocal received
        received += isinstance(event, FileReceived)
        if received == files:
            done.set()

    client = FilemqClient(endpoint, inbox, ["/"], sync=sync, check=check, on_event=on_event)
    watch = Stopwatch()
    async with client, asyncio.timeout(DEADLINE_S):
        await done.wait()
        await asyncio.to_thread(watch.stop)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder]:
            asyncio.run(serve(Path(folder)))
        case ["subscribe", endpoint, inbox, files, _, *flags]:
            asyncio.run(
                subscribe(
                    endpoint, Path(inbox), int(files), sync="sync" in flags, check="unchecked" not in flags
                )
            )
