"""Running broker of `specwire norfab broker`: log, accounting log, status socket, and shutdown."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.cli.metrics_showing import shown
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.kernel.service import raise_descriptor_limit
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.serverlog import ServerLog
from specwire.runtime.log.stamp import Stamp
from specwire.runtime.norfab.security.accounting import NAME, AccountingLog
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.serve.events import BrokerEvent
from specwire.runtime.norfab.serve.handlers import LOG_LINES
from specwire.runtime.norfab.serve.narration import Narrator, level_of
from specwire.runtime.norfab.serve.status import ROLE
from specwire.runtime.observe.place import Place
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import address_in, locate_status_folder, open_status_folder
from specwire.runtime.transport.status_socket import StatusSocket

if TYPE_CHECKING:
    from specwire.runtime.observe.view import Subject


class BrokerLog:
    """Log lines on standard error, with the time, and the accounting log.

    Args:
        jobs: log each job.
        form: text or JSON.
    """

    def __init__(self, *, jobs: bool, form: LogForm = LogForm.TEXT) -> None:
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._log = ServerLog(self._write, Stamp(ROLE, form), form)
        self._narrator = Narrator(self._log.narrated, time.monotonic, jobs=jobs)
        self._accounts: AccountingLog | None = None

    def line(self, text: str) -> None:
        """Write one line. A closed standard error does not end the broker."""
        self._log.line(text)

    def _write(self, line: str) -> None:
        self._lines.append(line)
        with suppress(OSError):
            sys.stderr.write(line + "\n")

    def set_jobs(self, jobs: bool) -> None:
        """Tell of each job from now on, or of none."""
        self._narrator.jobs = jobs

    def newest(self) -> list[str]:
        """Return the last lines."""
        return [*self._lines]

    def keep_accounts(self, folder: Path, broker: NorfabBroker) -> None:
        """Write from now on who ran what."""
        self._accounts = AccountingLog(
            folder / NAME, lambda uuid: broker.engine.jobs.by_uuid.get(uuid), self.line
        )

    def tell(self, event: BrokerEvent) -> None:
        """Log an event."""
        self._log.tell(event, self._narrator.tell, level_of(event))
        if self._accounts is not None:
            self._accounts.note(event)

    def flush(self) -> None:
        """Write the accounting lines of a batch of events."""
        if self._accounts is not None:
            self._accounts.flush()

    def close(self) -> None:
        """Flush the accounting log, and restore our loggers."""
        self._log.close()
        if self._accounts is not None:
            self._accounts.close()


async def run_broker(
    broker: NorfabBroker,
    log: BrokerLog,
    reloading: Reloading,
    *,
    answer_status: bool,
    metrics: Place | None = None,
) -> None:
    """Run a broker until SIGINT or SIGTERM, or until its management ends it.

    Args:
        metrics: address of the metrics page, if there is one.

    Raises:
        StoreError, TransportError: the broker cannot start or restart.
    """
    stop = stop_requested()
    raise_descriptor_limit(log.line)
    ready = Readiness()
    reloading.listen()
    async with broker:
        reloading.begin()
        sys.stdout.write("\n".join(broker.endpoints + broker.back) + "\n")
        sys.stdout.flush()
        answering = await _answer(broker, log.line) if answer_status else None
        ready.tell()
        ended = asyncio.ensure_future(broker.finished())
        try:
            async with shown(metrics, lambda: _subject(broker), log.line):
                await asyncio.wait((stop, ended), return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                ended.result()
        finally:
            ended.cancel()
            if answering is not None:
                await answering.close()


def _subject(broker: NorfabBroker) -> Subject:
    from specwire.runtime.observe.norfab import broker_subject

    return broker_subject(broker)


async def _answer(broker: NorfabBroker, tell: Callable[[str], None]) -> StatusSocket | None:
    """Open the status socket; a broker that cannot be asked does its work all the same."""
    folder = locate_status_folder(os.environ)
    try:
        open_status_folder(folder)
        path = address_in(folder, ROLE, os.getpid()).path
        answering = StatusSocket(path, lambda: msgspec.json.encode(broker.status()))
        await answering.open()
    except TransportError as error:
        tell(f"nobody can ask for the status: {error}")
        return None
    return answering
