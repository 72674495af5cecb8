"""What `serve` and `subscribe` do while their peer runs: answer for its status, report, and wait for the end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from specwire.runtime.cli.metrics_showing import shown
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.reloading import Take
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.reporting import describe_done, describe_left, report
from specwire.runtime.filemq.status import PeerStatus
from specwire.runtime.log.text import show_json
from specwire.runtime.observe.place import Place
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import address_in, locate_status_folder, open_status_folder
from specwire.runtime.transport.status_socket import StatusSocket

if TYPE_CHECKING:
    from specwire.runtime.observe.subject import Subject

ROLES = {"server": "filemq-server", "subscriber": "filemq-subscriber"}
"""How the sockets of these peers are named, by the role in the document."""

JOB_FAILED = 1


class Peer(Protocol):
    """A `FilemqServer` or a `FilemqClient`."""

    counters: Counters

    def status(self) -> PeerStatus:
        """Tell how it is."""


class Manner(msgspec.Struct):
    """How a peer behaves towards the person who runs it."""

    report_every_s: float
    as_json: bool
    answer_status: bool
    metrics: Place | None = None
    changed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


def takes_of(manner: Manner, log: PeerLog) -> dict[str, Take]:
    """Return what takes other settings while the peer runs."""

    def take_report_every(seconds: float) -> None:
        manner.report_every_s = seconds
        manner.changed.set()

    return {"report_every": take_report_every, "quiet": log.set_quiet}


@asynccontextmanager
async def attended(peer: Peer, manner: Manner, log: PeerLog) -> AsyncIterator[None]:
    """While this lasts, reports are written and the status is answered and shown; then, what was left is told.

    Raises:
        TransportError: there is no listening where the peer is to show itself.
    """
    describe = peer.status
    answering = await _answer(describe, log) if manner.answer_status else None
    reporting = asyncio.create_task(_report(describe, manner, log))
    try:
        async with shown(manner.metrics, lambda: _subject(peer), log.line):
            yield
        for line in describe_left(describe()):
            log.line(line)
    finally:
        reporting.cancel()
        with suppress(asyncio.CancelledError):
            await reporting
        if answering is not None:
            await answering.close()


async def is_started(start: Coroutine[Any, Any, None], stop: asyncio.Future[None]) -> bool:
    """Start a peer; False where it was asked to stop before it was ready, and nothing of it is left."""
    starting = asyncio.create_task(start)
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if starting.done() or not starting.cancel():
        await starting
        return True
    with suppress(asyncio.CancelledError):
        await starting
        return True
    return False


def conclude(status: PeerStatus, manner: Manner, log: PeerLog) -> None:
    """Tell what was done in all."""
    log.line(describe_done(status))
    if manner.as_json:
        sys.stdout.write(show_json(msgspec.json.encode(status).decode()) + "\n")


async def _answer(describe: Callable[[], PeerStatus], log: PeerLog) -> StatusSocket | None:
    """Open the socket; a peer that cannot be asked does its work all the same."""
    folder = locate_status_folder(os.environ)
    try:
        open_status_folder(folder)
        address = address_in(folder, ROLES[_role(describe())], os.getpid())
        answering = StatusSocket(address.path, lambda: msgspec.json.encode(describe()))
        await answering.open()
    except TransportError as error:
        log.line(f"`specwire filemq status` will not find this: {error}")
        return None
    return answering


def _subject(peer: Peer) -> Subject:
    from specwire.runtime.observe.subjects.filemq import peer_subject

    return peer_subject(peer)


def _role(status: PeerStatus) -> str:
    return str(type(status).__struct_config__.tag)


async def _report(describe: Callable[[], PeerStatus], manner: Manner, log: PeerLog) -> None:
    while True:
        manner.changed.clear()
        try:
            await asyncio.wait_for(manner.changed.wait(), manner.report_every_s or None)
        except TimeoutError:
            log.line(report(describe()))
