"""Watcher of publications: a first walk through each folder, then notifications and further walks.

Notifications of the system (`inotify`) report changes at once, but may be lost: the queue of the
system overflows, a folder is filled before it is watched, a network file system sends none. So a
folder is also walked at a `WalkPace`, and the walks find every change.

Notifications end with the folder that was watched. When it is back, or another one has its place,
it is watched again. At the system's limit of watches, that is logged once, the folder is walked
more often, and watching is tried again from time to time.

One separate thread looks at all folders, one look after the other. The changes are applied on the
event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from functools import partial

from specwire.runtime.filemq.catalogue import Change
from specwire.runtime.filemq.inotify import watch_tree
from specwire.runtime.filemq.names import MAX_NAME_OCTETS
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.reading import AbandonedError
from specwire.runtime.kernel.service import Tasks

logger = logging.getLogger(__name__)

RESCAN_S = 30.0
POLL_S = 5.0
"""Time between walks through a folder that cannot be watched."""

QUIET_S = 0.3
"""A burst of notifications is over when none came for this time."""

PATIENCE = 10.0
"""Time between walks at least, in durations of the last walk."""

MISSING_S = 1.0
"""Time between looks for a folder that is missing."""

CHANGES_AT_A_TIME = 64

OnChanges = Callable[[Publication, list[Change]], None]
Look = Callable[[], list[Change]]


class Watcher:
    """Watcher of the publications of one server.

    Args:
        on_changes: called on the event loop with a publication and at most `CHANGES_AT_A_TIME`
            changes.
        rescan_s: longest time between two walks, and between two attempts to watch.
        longest_name_octets: longest name of a published file.
    """

    def __init__(
        self,
        publications: Sequence[Publication],
        on_changes: OnChanges,
        *,
        rescan_s: float = RESCAN_S,
        longest_name_octets: int = MAX_NAME_OCTETS,
    ) -> None:
        self._on_changes = on_changes
        self._longest_name_octets = longest_name_octets
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="filemq-scan")
        self._folders = {p: FolderWatcher(p, self, rescan_s=rescan_s) for p in publications}

    async def start(self) -> None:
        """Walk through every folder, and watch from then on; raises OSError.

        Changes during the first walk are noticed too.
        """
        for publication, folder in self._folders.items():
            publication.open(longest_octets=self._longest_name_octets)
            folder.listen()
        for folder in self._folders.values():
            await folder.listening.wait()  # the watch begins before the walk
        await self.rescan()
        for folder in self._folders.values():
            folder.walk_on_time()

    async def rescan(self) -> None:
        """Walk through every folder now; growing files are published too."""
        for folder in self._folders.values():
            await folder.walk(at_once=True)

    async def look_again(self, publication: Publication, name: str) -> None:
        """Look at one file now."""
        await self.look(publication, partial(publication.examine_name, name))

    async def close(self) -> None:
        """Stop watching, end the current look, and close the publications."""
        for publication in self._folders:
            publication.abandon()
        for folder in self._folders.values():
            await folder.close()
        await asyncio.to_thread(self._thread.shutdown)
        for publication in self._folders:
            publication.close()

    async def look(self, publication: Publication, look: Look) -> None:
        """Look at a publication in the thread, and apply its changes."""
        async with self._turn:  # changes are applied before the next look, which may know better
            loop = asyncio.get_running_loop()
            try:
                changes = await loop.run_in_executor(self._thread, look)
            except AbandonedError:
                return
            for start in range(0, len(changes), CHANGES_AT_A_TIME):
                self._on_changes(publication, changes[start : start + CHANGES_AT_A_TIME])
                await asyncio.sleep(0)  # let the server do other work


class FolderWatcher:
    """Watcher of one publication.

    Args:
        watcher: performs the looks.
        rescan_s: longest time between two walks, and between two attempts to watch.

    Attributes:
        listening: set when the notifications have begun, or cannot begin.
    """

    def __init__(self, publication: Publication, watcher: Watcher, *, rescan_s: float) -> None:
        self._publication, self._watcher, self._rescan_s = publication, watcher, rescan_s
        self._pace = WalkPace(rescan_s)
        self._walking = asyncio.Lock()
        self._stop = asyncio.Event()
        self._notified = asyncio.Event()
        self._outdated = asyncio.Event()
        self.listening = asyncio.Event()
        self._replaced, self._was_missing = 0, False
        self._watched_ignore = publication.ignore
        self._tasks = Tasks(f"the watch on {publication.folder}")

    def listen(self) -> None:
        """Receive notifications from now on."""
        self._replaced = self._publication.replaced
        self._tasks.start(self._listen())

    def walk_on_time(self) -> None:
        """Walk through the folder at its `WalkPace` from now on."""
        self._tasks.start(self._walk_on_time())

    async def walk(self, *, at_once: bool = False) -> None:
        """Walk through the folder now; see `Publication.scan`."""
        clock = asyncio.get_running_loop().time
        async with self._walking:
            begun = clock()
            await self._watcher.look(self._publication, partial(self._publication.scan, at_once=at_once))
            self._pace.walked(begun, clock(), waiting=self._publication.waits)
        self._renew_watch()

    async def close(self) -> None:
        """Stop."""
        for event in (self._stop, self._outdated, self._notified):
            event.set()
        await self._tasks.finish()

    async def _listen(self) -> None:
        logged = ""
        try:
            while not self._stop.is_set():
                self._outdated.clear()
                self._pace.unwatched = False
                begun = asyncio.get_running_loop().time()
                publication = self._publication
                self._watched_ignore = publication.ignore
                bursts = watch_tree(publication.folder, self._outdated, self.listening, publication.skips)
                try:
                    async with aclosing(bursts):
                        async for places in bursts:
                            self._on_notification()
                            await self._watcher.look(
                                self._publication, partial(self._publication.examine, places)
                            )
                            self._renew_watch()
                except OSError as error:
                    self._pace.unwatched = True
                    self.listening.set()
                    if str(error.strerror) != logged:
                        logged = str(error.strerror)
                        logger.warning(
                            "%s is not watched, only walked through every %.0f s: %s",
                            self._publication.folder,
                            min(POLL_S, self._rescan_s),
                            logged,
                        )
                    self._notified.set()
                    await self._sleep_until(begun + self._rescan_s)
                    continue
                logged = ""
                self._on_notification()  # changes before the next watch are not notified
        finally:
            self.listening.set()

    async def _sleep_until(self, when: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._outdated.wait(), when - asyncio.get_running_loop().time())

    def _on_notification(self) -> None:
        self._pace.notified(asyncio.get_running_loop().time())
        self._notified.set()

    def _renew_watch(self) -> None:
        """Watch again if another folder is at the path now, or other folders are ignored."""
        was_missing, self._was_missing = self._was_missing, self._publication.missing
        replaced, self._replaced = self._replaced, self._publication.replaced
        is_back = was_missing and not self._was_missing
        is_changed = self._publication.ignore.patterns != self._watched_ignore.patterns
        if self._replaced != replaced or is_back or is_changed:
            self._outdated.set()

    async def _walk_on_time(self) -> None:
        clock = asyncio.get_running_loop().time
        while not self._stop.is_set():
            self._notified.clear()
            rests_at = self._publication.rests_at
            due = self._pace.due()
            if due <= clock():
                await self.walk()
            elif rests_at is not None and rests_at <= clock():
                await self._watcher.look(self._publication, self._publication.examine_resting)
            else:
                with suppress(TimeoutError):
                    due = due if rests_at is None else min(due, rests_at)
                    await asyncio.wait_for(self._notified.wait(), due - clock())


class WalkPace:
    """Times of the walks through a folder: regularly, and soon after notifications. In seconds.

    One walk follows every burst of notifications. The longer the last walk took, the longer the
    next one waits for further notifications, so that walking takes at most a tenth of the time.

    Args:
        rescan_s: longest time between two walks.

    Attributes:
        unwatched: there are no notifications.
    """

    def __init__(self, rescan_s: float) -> None:
        self._rescan_s = rescan_s
        self._walked_at = 0.0
        self._took_s = 0.0
        self._notified_at: float | None = None
        self._waiting = False
        self.unwatched = False

    def notified(self, now: float) -> None:
        """Note a notification."""
        self._notified_at = now

    def walked(self, begun: float, ended: float, *, waiting: bool) -> None:
        """Note a walk. `waiting`: the folder is missing, or files in it are."""
        self._walked_at, self._took_s, self._waiting = ended, ended - begun, waiting
        if self._notified_at is not None and self._notified_at < begun:
            self._notified_at = None

    def due(self) -> float:
        """Return the time of the next walk."""
        due = self._walked_at + self._rescan_s
        if self._waiting:
            due = min(due, self._walked_at + max(MISSING_S, PATIENCE * self._took_s))
        if self.unwatched:
            due = min(due, self._walked_at + max(POLL_S, PATIENCE * self._took_s))
        if self._notified_at is not None:
            due = min(due, self._notified_at + QUIET_S + PATIENCE * self._took_s)
        return due
