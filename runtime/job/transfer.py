"""One FILEMQ server and two clients on loopback, every message of every peer captured.

The folder is changed while the clients receive it: a file changed, one deleted, one added. The transfer is
over when both inboxes hold what the server publishes, and fails when they do not in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import msgspec

from specwire.generated import filemq
from specwire.runtime.capture import Tap
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.events import Event, FileReceived, Refused
from specwire.runtime.job.files import change_files

SERVER = "server"
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


class _Watch:
    """What the peers tell while they run: files that arrived, and what was refused."""

    def __init__(self, names: Iterable[str], progress: Progress) -> None:
        self.refusals: dict[str, list[str]] = {name: [] for name in names}
        self.under_way = asyncio.Event()
        self.total = 0
        self._received = 0
        self._progress = progress

    def listener(self, name: str) -> Callable[[Event], None]:
        """Return the callback for the events of one peer."""

        def on_event(event: Event) -> None:
            if isinstance(event, Refused):
                self.refusals[name].append(f"{event.name}: {event.reason}")
            if isinstance(event, FileReceived):
                self._received += 1
                self._progress(self._received, max(self.total, self._received))
                if self._received >= CHANGE_AFTER:
                    self.under_way.set()

        return on_event


async def transfer(
    published: Path, inboxes: dict[str, Path], capture: Path, *, timeout_s: float, progress: Progress
) -> Transfer:
    """Distribute `published` to the inboxes (folder by client name), capturing to `capture`.

    Raises:
        TimeoutError: an inbox was not equal to the publication after `timeout_s` seconds.
    """
    begun = asyncio.get_running_loop().time()
    watch = _Watch([SERVER, *inboxes], progress)
    with ExitStack() as taps_open:
        taps = {name: taps_open.enter_context(_open_tap(capture, name)) for name in watch.refusals}
        async with AsyncExitStack() as peers_open:
            server = await peers_open.enter_async_context(
                FilemqServer([Publication(published, "/")], tap=taps[SERVER], on_event=watch.listener(SERVER))
            )
            watch.total = len(server.digests()) * len(inboxes)
            clients = {
                name: await peers_open.enter_async_context(
                    FilemqClient(server.endpoint, inbox, ["/"], tap=taps[name], on_event=watch.listener(name))
                )
                for name, inbox in inboxes.items()
            }
            await asyncio.wait_for(watch.under_way.wait(), timeout_s)
            change_files(published)
            await server.rescan()
            async with asyncio.TaskGroup() as group:
                for client in clients.values():
                    group.create_task(client.until_equal(server.digests(), timeout_s=timeout_s))
        seconds = asyncio.get_running_loop().time() - begun
    counters = {SERVER: server.counters} | {name: client.counters for name, client in clients.items()}
    peers = (_peer(name, counters[name], taps[name], watch.refusals[name]) for name in counters)
    return Transfer(tuple(peers), round(seconds, 3))


def _peer(name: str, counters: Counters, tap: Tap, refusals: list[str]) -> Peer:
    return Peer(
        name=name,
        messages_in=counters.messages_in,
        messages_out=counters.messages_out,
        octets=counters.octets_in + counters.octets_out,
        content_octets=counters.content_octets,
        chunks=counters.chunks,
        recorded=tap.recorded,
        dropped=tap.dropped,
        refusals=tuple(refusals),
    )


def _open_tap(capture: Path, name: str) -> Tap:
    return Tap.open(capture, protocol="filemq", name=name, edition=filemq.EDITION)
