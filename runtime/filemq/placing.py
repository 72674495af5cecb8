"""Whole files on their way to their places in an inbox: synced together, noted, renamed.

What came in one batch waits here, each file under a name of its own in the inbox's folder; so the disk is waited
for once, and still no file is in its place before it is on the disk. The journal is written before the rename: a
file that is there is known, whatever happens in between.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from specwire.runtime.filemq.actions import CompleteFile, DeleteFile, Failed, Outcome, Stored, WriteChunk
from specwire.runtime.filemq.containment import ContainmentError, parent_of, require_file
from specwire.runtime.filemq.digests import sign
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.kept import Kept
from specwire.runtime.filemq.part import Whole
from specwire.runtime.filemq.syncing import Syncing

MAX_WHOLE = 256
"""Whole files that wait for the disk together, each with a descriptor of its own."""

PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EAGAIN,
    errno.EINTR,
}
"""Errors that may be over when the file is tried again."""


class Placing:
    """The files of one inbox that are whole and not in their places yet.

    Args:
        root: descriptor of the inbox.
        own: descriptor of the inbox's own folder, where the files wait.
        kept: copies of deleted files, where they are kept.
        sync: wait for the disk before a file is put in its place.
    """

    def __init__(self, root: int, own: int, journal: Journal, *, kept: Kept | None, sync: bool) -> None:
        self._root, self._own, self._journal, self._kept = root, own, journal, kept
        self._syncing = Syncing() if sync else None
        self._waiting: list[tuple[CompleteFile, Whole]] = []

    def add(self, action: CompleteFile, whole: Whole) -> list[Outcome]:
        """Take over a file that is whole; where many wait, all are put into their places."""
        self._waiting.append((action, whole))
        return self.place_all() if len(self._waiting) == MAX_WHOLE else []

    def place_all(self) -> list[Outcome]:
        """Put every file that waits into its place, in order; one that fails spoils no other."""
        waiting, self._waiting = self._waiting, []
        errors: list[OSError | None] = [None] * len(waiting)
        if waiting and self._syncing is not None:
            errors = self._syncing.sync([whole.descriptor for _, whole in waiting])
        return [self._place(*file, error) for file, error in zip(waiting, errors, strict=True)]

    def close(self) -> None:
        """Throw away what still waits."""
        for _, whole in self._waiting:
            self._drop(whole)
        self._waiting = []
        if self._syncing is not None:
            self._syncing.close()

    def _place(self, action: CompleteFile, whole: Whole, error: OSError | None) -> Outcome:
        try:
            if error is not None:
                raise error
            self._rename(action.name, whole)
        except (ContainmentError, OSError) as fault:
            self._drop(whole)
            return explain_failure(action, fault)
        os.close(whole.descriptor)
        return Stored(action.connection, action.name, action.size, whole.sha1, action.sha1 is not None)

    def _rename(self, name: str, whole: Whole) -> None:
        record = Record(whole.sha1, sign(os.fstat(whole.descriptor)), received=True)
        with parent_of(self._root, name, create=True) as (folder, leaf):
            require_file(folder, leaf)
            self._journal.put(name, record)
            os.rename(whole.leaf, leaf, src_dir_fd=self._own, dst_dir_fd=folder)
        if self._kept is not None:
            self._kept.forget(name)

    def _drop(self, whole: Whole) -> None:
        os.close(whole.descriptor)
        with suppress(FileNotFoundError):  # it is in its place, and what came after that failed
            os.unlink(whole.leaf, dir_fd=self._own)


def explain_failure(
    action: WriteChunk | CompleteFile | DeleteFile, error: ContainmentError | OSError
) -> Failed:
    """Return the outcome of work that ended with this error."""
    if isinstance(error, ContainmentError):
        return Failed(action.connection, action.name, str(error), again=False)
    again = error.errno in PASSING
    return Failed(action.connection, action.name, error.strerror or str(error), again)
