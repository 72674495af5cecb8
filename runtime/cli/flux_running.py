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
from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.cli.metrics_showing import shown
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.flux.events import Event
from specwire.runtime.flux.narration import Level, Narrator, severity_of
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.severity import Severity
from specwire.runtime.flux.status import ROLE
from specwire.runtime.kernel.service import raise_descriptor_limit
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.serverlog import ServerLog
from specwire.runtime.log.stamp import Level as LogLevel
from specwire.runtime.log.stamp import Stamp
from specwire.runtime.observe.place import Place
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import address_in, locate_status_folder, open_status_folder
from specwire.runtime.transport.status_socket import StatusSocket

if TYPE_CHECKING:
    from specwire.runtime.observe.view import Subject

LEVELS: dict[Severity, LogLevel] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTICE: "info",
    Severity.INFO: "info",
    Severity.DEBUG: "debug",
}


class BrokerLog:
    """Lines on standard error, each with the time and the rank: brokers of an instance may share a terminal."""

    def __init__(self, rank: int, level: Level = Level.NORMAL, form: LogForm = LogForm.TEXT) -> None:
        self._level = level
        stamp = Stamp(ROLE, form, mark=f"[{rank}] ", about={"rank": rank})
        self._log = ServerLog(self._write, stamp, form)
        self._narrator = Narrator(lambda line, severity: self._log.narrated(line), time.monotonic, level)

    def line(self, text: str) -> None:
        """Write one line; a log that nobody reads any more does not end a broker."""
        self._log.line(text)

    def _write(self, line: str) -> None:
        with suppress(OSError):
            sys.stderr.write(f"{line}\n")

    def set_level(self, level: Level) -> None:
        """Tell what belongs to another level from now on."""
        self._level = self._narrator.level = level

    def note(self, text: str) -> None:
        """Write a line that is only worth it where everything is well told."""
        if self._level > Level.QUIET:
            self.line(text)

    def tell(self, event: Event) -> None:
        """Write what happened."""
        self._log.tell(event, self._narrator.tell, LEVELS[severity_of(event)])

    def end(self) -> None:
        """From now on neighbours and clients go because this broker goes."""
        self._narrator.end()

    def close(self) -> None:
        """Leave our loggers as they were."""
        self._log.close()


async def run_broker(
    broker: FluxBroker,
    log: BrokerLog,
    reloading: Reloading,
    *,
    until_eof: bool,
    answer_status: bool,
    metrics: Place | None = None,
    rundir: Path | None = None,
) -> None:
    """Run a broker until SIGINT or SIGTERM, or until standard input ends; raises TransportError.

    Args:
        metrics: where the broker shows itself, if anywhere.
        rundir: is removed where standard input has ended: who made it is gone.
    """
    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit(log.line)
    reloading.listen()
    ended = _stop_at_eof(stop) if until_eof else None
    async with broker:
        log.note(f"listening on {broker.uri}{f' and {broker.endpoint}' if broker.endpoint else ''}")
        reloading.begin()
        sys.stdout.write(f"{broker.uri}\n")
        sys.stdout.flush()
        ready.tell()
        answering = (
            await _answer(lambda: msgspec.json.encode(broker.status()), log) if answer_status else None
        )
        try:
            async with shown(metrics, lambda: _subject(broker), log.line):
                await stop
                log.note("stopping")
                log.end()
        finally:
            if answering is not None:
                await answering.close()
    if rundir is not None and ended is not None and ended.done():
        shutil.rmtree(rundir, ignore_errors=True)
    log.note("stopped")


def _subject(broker: FluxBroker) -> Subject:
    from specwire.runtime.observe.flux import broker_subject

    return broker_subject(broker)


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
