"""What `specwire flux broker` does while its broker runs: tell, answer for the status, and wait for the end."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.flux.events import Event
from specwire.runtime.flux.narration import Level, Narrator
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.status import ROLE
from specwire.runtime.log.lines import OURS, take_over
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import address_in, locate_status_folder, open_status_folder
from specwire.runtime.transport.status_socket import StatusSocket


class BrokerLog:
    """Lines on standard error, each with the time and the rank: brokers of an instance may share a terminal."""

    def __init__(self, rank: int, level: Level = Level.NORMAL) -> None:
        self._rank, self._level = rank, level
        self._narrator = Narrator(lambda line, severity: self.line(line), time.monotonic, level)
        self._handler = take_over(self.line)

    def line(self, text: str) -> None:
        """Write one line; a log that nobody reads any more does not end a broker."""
        with suppress(OSError):
            sys.stderr.write(f"{time.strftime('%H:%M:%S')} [{self._rank}] {text}\n")

    def note(self, text: str) -> None:
        """Write a line that is only worth it where everything is well told."""
        if self._level > Level.QUIET:
            self.line(text)

    def tell(self, event: Event) -> None:
        """Write what happened."""
        self._narrator.tell(event)

    def end(self) -> None:
        """From now on neighbours and clients go because this broker goes."""
        self._narrator.end()

    def close(self) -> None:
        """Leave our loggers as they were."""
        OURS.removeHandler(self._handler)


async def run_broker(
    broker: FluxBroker, log: BrokerLog, *, until_eof: bool, answer_status: bool, rundir: Path | None = None
) -> None:
    """Run a broker until SIGINT or SIGTERM, or until standard input ends; raises TransportError.

    Args:
        rundir: is removed where standard input has ended: who made it is gone.
    """
    stop = stop_requested()
    ended = _stop_at_eof(stop) if until_eof else None
    async with broker:
        log.note(f"listening on {broker.uri}{f' and {broker.endpoint}' if broker.endpoint else ''}")
        sys.stdout.write(f"{broker.uri}\n")
        sys.stdout.flush()
        answering = (
            await _answer(lambda: msgspec.json.encode(broker.status()), log) if answer_status else None
        )
        try:
            await stop
            log.note("stopping")
            log.end()
        finally:
            if answering is not None:
                await answering.close()
    if rundir is not None and ended is not None and ended.done():
        shutil.rmtree(rundir, ignore_errors=True)
    log.note("stopped")


def _stop_at_eof(stop: asyncio.Future[None]) -> asyncio.Future[None]:
    """Return what is done when standard input ends, and stop then."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    ended = loop.create_future()

    def look() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            ended.set_result(None)
            if not stop.done():
                stop.set_result(None)

    loop.add_reader(descriptor, look)
    return ended


async def _answer(describe: Callable[[], bytes], log: BrokerLog) -> StatusSocket | None:
    """Open the status socket; a broker that cannot be asked does its work all the same."""
    folder = locate_status_folder(os.environ)
    try:
        open_status_folder(folder)
        answering = StatusSocket(address_in(folder, ROLE, os.getpid()).path, describe)
        await answering.open()
    except TransportError as error:
        log.line(f"nobody can ask for the status: {error}")
        return None
    return answering
