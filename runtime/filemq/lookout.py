"""One publication being watched: by the system's notifications (the `watchfiles` library), and by walks at a `Pace`.

Notifications may be lost: the system's queue overflows, a folder is filled before it is watched, a network file system
sends none. They may end without a word, with the folder that was watched: so when it is back, or another one is in
its place, the watch is set up anew. So it is when they break off: `watchfiles` ends at each name that is not UTF-8.
And they may be impossible, as the number of watches is limited: that is logged once and tried again from time to
time. The walks find every change in any case.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from watchfiles import awatch

from specwire.runtime.filemq.pace import Pace
from specwire.runtime.filemq.publication import Change, Publication
from specwire.runtime.filemq.tasks import Tasks

logger = logging.getLogger(__name__)

STEP_MS = 30
GATHER_MS = 100
"""A burst of changes is looked at when none of another file came for STEP_MS, and after GATHER_MS at the latest."""

AGAIN_S = 1.0
"""A watch that broke off is begun anew at once, but not more often than this: whoever writes may break each."""

BROKEN_OFF = "the notifications of %s broke off, it is walked through and watched anew, each time: %s"

Look = Callable[[Publication, Callable[[], list[Change] | None]], Awaitable[bool]]


class Lookout:
    """Looks at one publication for as long as it is told to.

    Args:
        look: performs a look at the publication, and takes its changes over; False where there were none to take.
        rescan_s: the longest time between two walks, and between two tries to be notified.
    """

    def __init__(self, publication: Publication, look: Look, *, rescan_s: float) -> None:
        self._publication, self._look, self._rescan_s = publication, look, rescan_s
        self._pace = Pace(rescan_s)
        self._walking = asyncio.Lock()
        self._stop = asyncio.Event()
        self._heard = asyncio.Event()
        self._outdated = asyncio.Event()
        self._replaced, self._was_missing = 0, False
        self._tasks = Tasks(f"the watch on {publication.folder}")

    def listen(self) -> None:
        """Take notifications from now on; they begin when the event loop has had a turn."""
        self._replaced = self._publication.replaced
        self._tasks.start(self._listen())

    def walk_on_time(self) -> None:
        """Walk through the folder at its pace from now on."""
        self._tasks.start(self._walk_on_time())

    async def walk(self) -> None:
        """Walk through the folder now."""
        clock = asyncio.get_running_loop().time
        async with self._walking:
            begun = clock()
            steps = self._publication.walk()
            while await self._look(self._publication, partial(next, steps, None)):
                pass
            self._pace.walked(begun, clock(), missing=self._publication.missing)
        self._renew_watch()

    async def close(self) -> None:
        """Look no more."""
        for event in (self._stop, self._outdated, self._heard):
            event.set()
        await self._tasks.finish()

    async def _listen(self) -> None:
        told, told_of_break = "", False
        while not self._stop.is_set():
            self._outdated.clear()
            begun = asyncio.get_running_loop().time()
            try:
                await self._take_notifications()
            except (OSError, RuntimeError) as error:
                if str(error) != told:
                    told = str(error)
                    logger.warning("%s is not watched, only rescanned: %s", self._publication.folder, told)
                await self._sleep_until(begun + self._rescan_s)
                continue
            except ExceptionGroup as group:  # `awatch` wraps so what ends it when it has begun
                if not told_of_break:
                    told_of_break = True
                    logger.warning(BROKEN_OFF, self._publication.folder, group.exceptions[0])
                await self._sleep_until(begun + AGAIN_S)
            told = ""
            self._hear()  # what happened before the next watch is not notified

    async def _sleep_until(self, when: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._outdated.wait(), when - asyncio.get_running_loop().time())

    async def _take_notifications(self) -> None:
        async for changes in awatch(
            self._publication.folder,
            watch_filter=None,
            debounce=GATHER_MS,
            step=STEP_MS,
            stop_event=self._outdated,
            ignore_permission_denied=True,
        ):
            self._hear()
            places = {place for _, place in changes}
            await self._look(self._publication, partial(self._publication.examine, places))
            self._renew_watch()

    def _hear(self) -> None:
        self._pace.heard(asyncio.get_running_loop().time())
        self._heard.set()

    def _renew_watch(self) -> None:
        """End the watch where it is on another folder than the one that is there now."""
        was_missing, self._was_missing = self._was_missing, self._publication.missing
        replaced, self._replaced = self._replaced, self._publication.replaced
        if self._replaced != replaced or (was_missing and not self._was_missing):
            self._outdated.set()

    async def _walk_on_time(self) -> None:
        clock = asyncio.get_running_loop().time
        while not self._stop.is_set():
            self._heard.clear()
            wait_s = self._pace.due() - clock()
            if wait_s <= 0:
                await self.walk()
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard.wait(), wait_s)
