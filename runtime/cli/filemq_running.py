"""Parts that `specwire filemq serve` and `subscribe` share: tap, status, reports, metrics."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from specwire.runtime.cli.capture_options import open_capture
from specwire.runtime.cli.metrics_options import read_metrics
from specwire.runtime.cli.metrics_showing import shown
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.reloading import Apply
from specwire.runtime.filemq.codec import find_dialect
from specwire.runtime.filemq.settings import PeerSettings
from specwire.runtime.filemq.status import Peer, PeerStatus, describe_done, describe_left, report
from specwire.runtime.log.text import show_json
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import address_in, locate_status_folder, open_status_folder
from specwire.runtime.transport.status_socket import StatusSocket

if TYPE_CHECKING:
    from specwire.runtime.capture import Tap
    from specwire.runtime.observe.view import Subject

ROLES = {"server": "filemq-server", "subscriber": "filemq-subscriber"}
"""Name of a peer's status socket, by its role in the status document."""

JOB_FAILED = 1
EXIT_STATUSES = "Exit status: 0 after SIGINT or SIGTERM; 1 when the job failed; 2 for usage and bad input."


def open_tap(settings: PeerSettings, name: str) -> AbstractContextManager[Tap | None]:
    """Open the tap of a capture, None without one; raises CaptureError."""
    dialect = find_dialect(settings.protocol)
    return open_capture(settings.capture, dialect.name, dialect.edition, name)


class PeerMonitor:
    """Reports, status and metrics of one running peer.

    Raises:
        ValueError, TransportError: the metrics cannot be shown where the settings say.
    """

    def __init__(self, settings: PeerSettings, log: PeerLog) -> None:
        metrics = settings.metrics
        self._place = read_metrics(
            metrics.address, anywhere=metrics.anywhere, password_file=metrics.password_file
        )
        self._settings, self._log = settings, log
        self._report_every_s = settings.report_every
        self._changed = asyncio.Event()

    @property
    def appliers(self) -> dict[str, Apply]:
        """Functions that apply settings while the peer runs."""
        return {"report_every": self._set_report_every, "quiet": self._log.set_quiet}

    def _set_report_every(self, seconds: float) -> None:
        self._report_every_s = seconds
        self._changed.set()

    @asynccontextmanager
    async def attend(self, peer: Peer) -> AsyncIterator[None]:
        """Log reports and answer for the peer during the block; then log what was left undone.

        Raises:
            TransportError: nothing can listen at the address of the metrics.
        """
        answering = await self._answer(peer) if self._settings.status else None
        reporting = asyncio.create_task(self._report(peer))
        try:
            async with shown(self._place, lambda: _subject(peer), self._log.line):
                yield
            for line in describe_left(peer.status()):
                self._log.line(line)
        finally:
            reporting.cancel()
            with suppress(asyncio.CancelledError):
                await reporting
            if answering is not None:
                await answering.close()

    def conclude(self, status: PeerStatus) -> None:
        """Log what was done in all."""
        self._log.line(describe_done(status))
        if self._settings.json:
            sys.stdout.write(show_json(msgspec.json.encode(status).decode()) + "\n")

    async def _answer(self, peer: Peer) -> StatusSocket | None:
        """Open the status socket; a peer without one still does its work."""
        folder = locate_status_folder(os.environ)
        try:
            open_status_folder(folder)
            address = address_in(folder, ROLES[_role(peer.status())], os.getpid())
            answering = StatusSocket(address.path, lambda: msgspec.json.encode(peer.status()))
            await answering.open()
        except TransportError as error:
            self._log.line(f"`specwire filemq status` will not find this: {error}")
            return None
        return answering

    async def _report(self, peer: Peer) -> None:
        while True:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._report_every_s or None)
            except TimeoutError:
                self._log.line(report(peer.status()))


def when_true(action: Callable[[], None]) -> Apply:
    """Return the function that performs `action` when a reload sets a flag."""

    def apply(flag: bool) -> None:
        if flag:
            action()

    return apply


async def is_started(start: Coroutine[Any, Any, None], stop: asyncio.Future[None]) -> bool:
    """Start a peer; False if it was asked to stop before it was ready, and has ended."""
    starting = asyncio.create_task(start)
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if starting.done() or not starting.cancel():
        await starting
        return True
    with suppress(asyncio.CancelledError):
        await starting
        return True
    return False


def _subject(peer: Peer) -> Subject:
    from specwire.runtime.observe.filemq import peer_subject

    return peer_subject(peer)


def _role(status: PeerStatus) -> str:
    return str(type(status).__struct_config__.tag)
