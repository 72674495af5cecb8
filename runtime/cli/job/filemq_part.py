"""A FILEMQ server and two clients: a folder with files is distributed while it changes.

One file is changed, one deleted and one added during the transfer. The part ends when both inboxes
equal the published folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from specwire.generated import filemq
from specwire.runtime.cli.job.taps import Taps
from specwire.runtime.cli.job.workspace import change_files
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import Counters, FileReceived
from specwire.runtime.kernel.log import LogEvent, Refused

SERVER = "filemq-server"
CLIENTS = ("filemq-client-1", "filemq-client-2")
CHANGE_AFTER = 20
"""Number of received files after which the published folder is changed."""

Progress = Callable[[int, int], None]
"""Called with the number of files received so far, and the number to receive."""


class Moved(msgspec.Struct, frozen=True):
    """Counters of one peer: messages, octets, content octets and chunks, in both directions."""

    name: str
    messages: int
    octets: int
    content_octets: int
    chunks: int


class FilemqResult(msgspec.Struct, frozen=True):
    """Counters of the server and the clients, refused messages, and duration in seconds."""

    peers: tuple[Moved, ...]
    refusals: tuple[str, ...]
    seconds: float


async def run_filemq(
    published: Path, inboxes: dict[str, Path], taps: Taps, *, timeout_s: float, progress: Progress
) -> FilemqResult:
    """Distribute `published` to the inboxes, given by client name.

    Raises:
        TimeoutError: an inbox did not equal the published folder `timeout_s` seconds after the
            change; the text names differences.
    """
    began = asyncio.get_running_loop().time()
    refusals: list[str] = []
    received = total = 0
    changing = asyncio.Event()

    def on_event(event: LogEvent) -> None:
        nonlocal received
        if isinstance(event, Refused):
            refusals.append(f"{event.name}: {event.reason}")
        if isinstance(event, FileReceived):
            received += 1
            progress(received, max(total, received))
            if received >= CHANGE_AFTER:
                changing.set()

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            FilemqServer(
                [Publication(published, "/")],
                tap=taps.open("filemq", SERVER, filemq.EDITION),
                on_event=on_event,
            )
        )
        total = len(server.digests()) * len(inboxes)
        clients: dict[str, FilemqClient] = {}
        for name, inbox in inboxes.items():
            tap = taps.open("filemq", name, filemq.EDITION)
            clients[name] = await stack.enter_async_context(
                FilemqClient(server.endpoint, inbox, ["/"], tap=tap, on_event=on_event)
            )
        await changing.wait()
        change_files(published)
        await server.rescan()
        for client in clients.values():
            await client.until_equal(server.digests(), timeout_s=timeout_s)
    counters = {SERVER: server.counters} | {name: client.counters for name, client in clients.items()}
    return FilemqResult(
        peers=tuple(_moved(name, counted) for name, counted in counters.items()),
        refusals=tuple(refusals),
        seconds=round(asyncio.get_running_loop().time() - began, 3),
    )


def _moved(name: str, counters: Counters) -> Moved:
    return Moved(
        name=name,
        messages=counters.messages_in + counters.messages_out,
        octets=counters.octets_in + counters.octets_out,
        content_octets=counters.content_octets,
        chunks=counters.chunks,
    )
