"""Whole files on their way to their places in an inbox: synced together, noted, renamed.

What came in one batch waits here, each file under a name of its own in the inbox's folder; so the disk is waited
for once, while the next batch is written, and still no file is in its place before it is on the disk. The journal is written, once for all, before the
first is renamed: a file that is there is known, whatever happens in between.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from specwire.runtime.containment import ContainmentError, require_file
from specwire.runtime.filemq.actions import CompleteFile, DeleteFile, Failed, Outcome, Stored, WriteChunk
from specwire.runtime.filemq.digests import sign
from specwire.runtime.filemq.folders import Folders
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

Waiting = tuple[CompleteFile, Whole]
Fault = ContainmentError | OSError


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
        self._waiting: list[Waiting] = []
        self._under_sync: list[Waiting] = []
        self._wait: Callable[[], Sequence[Fault | None]] = list

    @property
    def pending(self) -> bool:
        """Whether there are files that are not in their places."""
        return bool(self._waiting or self._under_sync)

    def add(self, action: CompleteFile, whole: Whole) -> list[Outcome]:
        """Take over a file that is whole; where many wait, all are put into their places."""
        self._waiting.append((action, whole))
        return self.place_all() if len(self._waiting) == MAX_WHOLE else []

    def place_next(self) -> list[Outcome]:
        """Put those files into their places that the disk was asked for last time, and ask for the others."""
        if self._syncing is None:
            return self.place_all()
        outcomes = self._place_synced()
        self._under_sync, self._waiting = self._waiting, []
        self._wait = self._syncing.begin([whole.descriptor for _, whole in self._under_sync])
        return outcomes

    def place_all(self) -> list[Outcome]:
        """Put every file that waits into its place, in order; one that fails spoils no other."""
        outcomes = self._place_synced()
        waiting, self._waiting = self._waiting, []
        if waiting:
            errors: list[Fault | None] = [None] * len(waiting)
            if self._syncing is not None:
                errors[:] = self._syncing.sync([whole.descriptor for _, whole in waiting])
            outcomes += self._place_each(waiting, errors)
        return outcomes

    def close(self) -> None:
        """Throw away what still waits."""
        if self._syncing is not None:
            self._syncing.close()
        for _, whole in [*self._under_sync, *self._waiting]:
            self._drop(whole)
        self._under_sync, self._waiting = [], []

    def _place_synced(self) -> list[Outcome]:
        files, self._under_sync = self._under_sync, []
        return self._place_each(files, [*self._wait()]) if files else []

    def _place_each(self, files: list[Waiting], errors: list[Fault | None]) -> list[Outcome]:
        with Folders(self._root) as folders:
            self._note(files, errors, folders)
            return [self._place(*file, error, folders) for file, error in zip(files, errors, strict=True)]

    def _note(self, files: list[Waiting], errors: list[Fault | None], folders: Folders) -> None:
        """Write into the journal what can be put into its place; adds to `errors` what cannot."""
        records: list[tuple[str, Record]] = []
        for number, (action, whole) in enumerate(files):
            if errors[number] is not None:
                continue
            try:
                require_file(*folders.parent_of(action.name, create=True))
                records.append(
                    (
                        action.name,
                        Record(whole.sha1, sign(os.fstat(whole.descriptor)), self._journal.origin),
                    )
                )
            except (ContainmentError, OSError) as fault:
                errors[number] = fault
        try:
            self._journal.put_all(records)
        except OSError as fault:
            errors[:] = [error or fault for error in errors]

    def _place(self, action: CompleteFile, whole: Whole, error: Fault | None, folders: Folders) -> Outcome:
        try:
            if error is not None:
                raise error
            folder, leaf = folders.parent_of(action.name)
            os.rename(whole.leaf, leaf, src_dir_fd=self._own, dst_dir_fd=folder)
            if self._kept is not None:
                self._kept.forget(action.name)
        except (ContainmentError, OSError) as fault:
            self._drop(whole)
            return explain_failure(action, fault)
        os.close(whole.descriptor)
        return Stored(action.connection, action.name, action.size, whole.sha1, whole.verified)

    def _drop(self, whole: Whole) -> None:
        os.close(whole.descriptor)
        with suppress(FileNotFoundError):  # it is in its place, and what came after that failed
            os.unlink(whole.leaf, dir_fd=self._own)


def explain_failure(action: WriteChunk | CompleteFile | DeleteFile, error: Fault) -> Failed:
    """Return the outcome of work that ended with this error."""
    if isinstance(error, ContainmentError):
        return Failed(action.connection, action.name, str(error), again=False)
    again = error.errno in PASSING
    return Failed(action.connection, action.name, error.strerror or str(error), again)
