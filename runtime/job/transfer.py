"""One FILEMQ server and two clients on loopback, every message of every peer captured.

The folder is changed while the clients receive it: a file changed, one deleted, one added. The transfer is
over when both inboxes hold what the server publishes, and fails when they do not in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import msgspec

from specwire.generated import filemq
from specwire.runtime.capture import Tap
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import Event, FileReceived, Refused
from specwire.runtime.job.files import change_files

CLIENTS = ("client-1", "client-2")
CHANGE_AFTER = 20
"""Files that the first client has received when the folder is changed: the transfer is under way by then."""

Progress = Callable[[int, int], None]
"""Told how many files have arrived in all inboxes, and how many are to."""


class Peer(msgspec.Struct, frozen=True):
    """What one peer did: its counters, and what its tap recorded and had to drop."""

    name: str
    messages_in: int
    messages_out: int
    octets: int
    content_octets: int
    chunks: int
    recorded: int
    dropped: int
    refusals: tuple[str, ...]


class Transfer(msgspec.Struct, frozen=True):
    """What the peers did, and how long it took in seconds."""

    peers: tuple[Peer, ...]
    seconds: float


async def transfer(
    published: Path, inboxes: dict[str, Path], capture: Path, *, timeout_s: float, progress: Progress
) -> Transfer:
    """Distribute `published` to the inboxes (folder by client name), capturing to `capture`.

    Raises:
        TimeoutError: an inbox was not equal to the publication after `timeout_s` seconds.
    """
    begun = asyncio.get_running_loop().time()
    refusals: dict[str, list[str]] = {name: [] for name in ("server", *inboxes)}
    under_way = asyncio.Event()
    received = 0
    total = 0

    def watch(name: str) -> Callable[[Event], None]:
        def on_event(event: Event) -> None:
            nonlocal received
            if isinstance(event, Refused):
                refusals[name].append(f"{event.name}: {event.reason}")
            if isinstance(event, FileReceived):
                received += 1
                progress(received, max(total, received))
                if received >= CHANGE_AFTER:
                    under_way.set()

        return on_event

    with ExitStack() as taps_open:
        taps = {name: taps_open.enter_context(_open_tap(capture, name)) for name in refusals}
        async with AsyncExitStack() as peers_open:
            server = await peers_open.enter_async_context(
                FilemqServer([Publication(published, "/")], tap=taps["server"], on_event=watch("server"))
            )
            total = len(server.digests()) * len(inboxes)
            clients = {
                name: await peers_open.enter_async_context(
                    FilemqClient(server.endpoint, inbox, ["/"], tap=taps[name], on_event=watch(name))
                )
                for name, inbox in inboxes.items()
            }
            await asyncio.wait_for(under_way.wait(), timeout_s)
            change_files(published)
            await server.rescan()
            async with asyncio.TaskGroup() as group:
                for client in clients.values():
                    group.create_task(client.until_equal(server.digests(), timeout_s=timeout_s))
        seconds = asyncio.get_running_loop().time() - begun
    counters = {"server": server.counters} | {name: client.counters for name, client in clients.items()}
    peers = tuple(
        Peer(
            name=name,
            messages_in=counted.messages_in,
            messages_out=counted.messages_out,
            octets=counted.octets_in + counted.octets_out,
            content_octets=counted.content_octets,
            chunks=counted.chunks,
            recorded=taps[name].recorded,
            dropped=taps[name].dropped,
            refusals=tuple(refusals[name]),
        )
        for name, counted in counters.items()
    )
    return Transfer(peers, round(seconds, 3))


def _open_tap(capture: Path, name: str) -> Tap:
    return Tap.open(capture, protocol="filemq", name=name, edition=filemq.EDITION)
