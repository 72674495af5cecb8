"""Keeps a catalogue up to date: a first scan, the system's notifications, and a rescan from time to time.

The notifications (the `watchfiles` library) may be lost: the system's queue overflows, a folder is filled before it
is watched, a network file system sends none. So every `rescan_s` the folder is walked as well. All looking at
folders happens in one thread of its own, one look after the other; the changes are taken over on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from watchfiles import awatch

from specwire.runtime.filemq.names import MAX_NAME_OCTETS
from specwire.runtime.filemq.publication import Change, Publication

logger = logging.getLogger(__name__)

RESCAN_S = 30.0
STEP_MS = 30
GATHER_MS = 150
"""A burst of changes is looked at after it was quiet for STEP_MS, and after GATHER_MS at the latest."""

ON_CHANGES = Callable[[Publication, list[Change]], None]


class Watcher:
    """Watches the publications of one server.

    Args:
        on_changes: called on the event loop with a publication and its changes, whenever there are any.
        longest_name_octets: what the name of a published file may have.
    """

    def __init__(
        self,
        publications: Sequence[Publication],
        on_changes: ON_CHANGES,
        *,
        rescan_s: float = RESCAN_S,
        longest_name_octets: int = MAX_NAME_OCTETS,
    ) -> None:
        self._publications = publications
        self._on_changes = on_changes
        self._rescan_s, self._longest_name_octets = rescan_s, longest_name_octets
        self._stop = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="filemq-scan")
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Scan once, and watch from then on; what changes during the scan is noticed too. Raises OSError."""
        for publication in self._publications:
            publication.open(longest_octets=self._longest_name_octets)
            self._tasks.append(asyncio.create_task(self._watch(publication)))
        await asyncio.sleep(0)  # lets each watch begin, before the scan looks at anything
        await self.rescan()
        self._tasks.append(asyncio.create_task(self._rescan_on_time()))

    async def rescan(self) -> None:
        """Walk through every folder now."""
        for publication in self._publications:
            await self._look(publication, publication.scan)

    async def look_again(self, publication: Publication, name: str) -> None:
        """Look at one file now."""
        await self._look(publication, partial(publication.examine_name, name))

    async def close(self) -> None:
        """Stop watching, and close the publications."""
        self._stop.set()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.to_thread(self._thread.shutdown)
        for publication in self._publications:
            publication.close()

    async def _watch(self, publication: Publication) -> None:
        try:
            async for changes in awatch(
                publication.folder,
                watch_filter=None,
                debounce=GATHER_MS,
                step=STEP_MS,
                stop_event=self._stop,
                ignore_permission_denied=True,
            ):
                places = {place for _, place in changes}
                await self._look(publication, partial(publication.examine, places))
        except (OSError, RuntimeError) as error:
            # The number of watches is limited by the system; the rescan still finds every change.
            logger.warning("%s is not watched, only rescanned: %s", publication.folder, error)

    async def _rescan_on_time(self) -> None:
        while not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), self._rescan_s)
                return
            await self.rescan()

    async def _look(self, publication: Publication, look: Callable[[], list[Change]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            changes = await loop.run_in_executor(self._thread, look)
        except OSError as error:
            logger.warning("%s cannot be looked at: %s", publication.folder, error)
            return
        if changes:
            self._on_changes(publication, changes)
