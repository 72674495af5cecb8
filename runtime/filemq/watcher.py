"""Keeps a catalogue up to date: a first scan, and then a `Lookout` for each publication.

All looking at folders happens in one thread of its own, one look after the other; the changes are taken over on the
event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from specwire.runtime.filemq.digests import AbandonedError
from specwire.runtime.filemq.lookout import Lookout
from specwire.runtime.filemq.names import MAX_NAME_OCTETS
from specwire.runtime.filemq.publication import Change, Publication

logger = logging.getLogger(__name__)

RESCAN_S = 30.0

CHANGES_AT_A_TIME = 64

ON_CHANGES = Callable[[Publication, list[Change]], None]


class Watcher:
    """Watches the publications of one server.

    Args:
        on_changes: called on the event loop with a publication and its changes, whenever there are any; with
            many of them more than once.
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
        self._longest_name_octets = longest_name_octets
        self._lookouts = [Lookout(publication, self._look, rescan_s=rescan_s) for publication in publications]
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="filemq-scan")

    async def start(self) -> None:
        """Scan once, and watch from then on; what changes during the scan is noticed too. Raises OSError."""
        for publication, lookout in zip(self._publications, self._lookouts, strict=True):
            publication.open(longest_octets=self._longest_name_octets)
            lookout.listen()
        await asyncio.sleep(0)  # lets each watch begin, before the scan looks at anything
        await self.rescan()
        for lookout in self._lookouts:
            lookout.walk_on_time()

    async def rescan(self) -> None:
        """Walk through every folder now."""
        for lookout in self._lookouts:
            await lookout.walk()

    async def look_again(self, publication: Publication, name: str) -> None:
        """Look at one file now."""
        await self._look(publication, partial(publication.examine_name, name))

    async def close(self) -> None:
        """Stop watching, whatever is being looked at, and close the publications."""
        for publication in self._publications:
            publication.abandon()
        for lookout in self._lookouts:
            await lookout.close()
        await asyncio.to_thread(self._thread.shutdown)
        for publication in self._publications:
            publication.close()

    async def _look(self, publication: Publication, look: Callable[[], list[Change] | None]) -> bool:
        async with self._turn:  # what was found is handed over before the next look, which may know better
            loop = asyncio.get_running_loop()
            try:
                changes = await loop.run_in_executor(self._thread, look)
            except AbandonedError:
                return False
            except OSError as error:
                logger.warning("%s cannot be looked at: %s", publication.folder, error)
                return False
            if changes is None:
                return False
            for start in range(0, len(changes), CHANGES_AT_A_TIME):
                self._on_changes(publication, changes[start : start + CHANGES_AT_A_TIME])
                await asyncio.sleep(0)  # others are served in between
            return True
