"""Digests of the beginnings of published files: what a client claims to hold (`CheckPart`), compared by the engine.

A beginning may have gigabytes. It is read piece by piece, in threads that do nothing else, so the checks of many
clients take turns, no transfer waits for one, and one that is abandoned ends with the piece under way.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from specwire.runtime.containment import ContainmentError
from specwire.runtime.filemq.actions import CheckPart
from specwire.runtime.filemq.catalogue import Entry
from specwire.runtime.filemq.digests import BLOCK_OCTETS, new_sha1, sign
from specwire.runtime.filemq.publication import Publication

PIECE_OCTETS = 16 * BLOCK_OCTETS
THREADS = 2


class _Check:
    """One beginning; the methods are called one after the other, from any thread."""

    def __init__(self, publication: Publication, entry: Entry, size: int) -> None:
        self.abandoned = False
        self._publication, self._entry, self._left = publication, entry, size
        self._descriptor = -1
        self._offset = 0
        self._sha1 = new_sha1()

    def read_piece(self) -> str | None:
        """Go on; return the digest when all is read, an empty one where the file is not what was announced."""
        try:
            if self._descriptor < 0:
                self._descriptor = self._publication.open_entry(self._entry.name)
            self._read(min(self._left, PIECE_OCTETS))
            changed = sign(os.fstat(self._descriptor)) != self._entry.signature
        except (OSError, EOFError, ContainmentError):
            return ""
        if changed:
            return ""
        return None if self._left else self._sha1.hexdigest().upper()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _read(self, size: int) -> None:
        while size:
            block = os.pread(self._descriptor, min(size, BLOCK_OCTETS), self._offset)
            if not block:
                raise EOFError
            self._sha1.update(block)
            self._offset += len(block)
            self._left -= len(block)
            size -= len(block)


class PartChecks:
    """Performs `CheckPart`.

    Args:
        find: returns the publication and the entry of a name, None where it is not published any more.
        on_checked: called with the action and the digest, None where the file is not what was announced.
    """

    def __init__(
        self,
        find: Callable[[str], tuple[Publication, Entry] | None],
        on_checked: Callable[[CheckPart, str | None], None],
    ) -> None:
        self._find, self._on_checked = find, on_checked
        self._checks: dict[int, _Check] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="filemq-check")
        self._closed = False

    def check(self, action: CheckPart) -> None:
        """Begin; `on_checked` is called later, unless the check is abandoned."""
        found = self._find(action.name)
        if found is None:
            self._on_checked(action, None)
        else:
            check = self._checks[action.transfer] = _Check(*found, action.size)
            self._go_on(action, check)

    def abandon(self, number: int) -> None:
        """Check no more for this transfer."""
        if (check := self._checks.get(number)) is not None:
            check.abandoned = True

    async def close(self) -> None:
        """Wait for the threads, and close every file."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        for check in self._checks.values():
            check.close()
        self._checks.clear()

    def _go_on(self, action: CheckPart, check: _Check) -> None:
        reading = asyncio.get_running_loop().run_in_executor(self._threads, check.read_piece)
        reading.add_done_callback(partial(self._take, action, check))

    def _take(self, action: CheckPart, check: _Check, reading: asyncio.Future[str | None]) -> None:
        if self._closed:
            return
        digest = "" if check.abandoned else reading.result()
        if digest is None:
            self._go_on(action, check)
            return
        check.close()
        del self._checks[action.transfer]
        if not check.abandoned:
            self._on_checked(action, digest or None)
