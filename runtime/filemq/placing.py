"""Whole files on their way to their places in an inbox: synced together, noted, renamed.

What came in one batch waits here, each file under a name of its own in the inbox's folder; so the
disk is waited for once, while the next batch is written, and still no file is in its place before
it is on the disk. What a file replaces is kept first (`trash`). The journal is written, once for
all, before the first is renamed: a file that is there is known, whatever happens in between.

A file system writes one record of its own journal for all files that wait for it at the same
moment, so files that are synced from several threads share the waiting that each of them would have
alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from specwire.runtime.containment import ContainmentError, require_file
from specwire.runtime.filemq.actions import (
    CompleteFile,
    DeleteFile,
    Failed,
    Outcome,
    Stored,
    WriteChunk,
)
from specwire.runtime.filemq.digests import sign
from specwire.runtime.filemq.disk import Fault, Folders, folders_below, may_pass
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.part import Whole
from specwire.runtime.filemq.trash import Trash

MAX_WHOLE = 256
"""Whole files that wait for the disk together, each with a descriptor of its own."""

THREADS = 16

SyncResult = OSError | None
"""What went wrong with a file, None where it is on the disk."""

Waiting = tuple[CompleteFile, Whole]


class Placing:
    """The files of one inbox that are whole and not in their places yet.

    Args:
        root: descriptor of the inbox.
        own: descriptor of the inbox's own folder, where the files wait.
        trash: takes what is replaced.
        sync: wait for the disk before a file is put in its place.

    Attributes:
        faults: what failed, by name, for the owner to take.
    """

    def __init__(self, root: int, own: int, journal: Journal, *, trash: Trash, sync: bool) -> None:
        self._root, self._own, self._journal, self._trash = root, own, journal, trash
        self.faults: list[tuple[str, Fault]] = []
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
        with folders_below(self._root) as folders:
            copies = self._note(files, errors, folders)
            return [
                self._place(*file, error, folders, copies.get(file[0].name, ""))
                for file, error in zip(files, errors, strict=True)
            ]

    def _note(self, files: list[Waiting], errors: list[Fault | None], folders: Folders) -> dict[str, str]:
        """Write into the journal what can be put into its place; adds to `errors` what cannot.

        Returns:
            the conflict copies that were made, by the name of the file that is replaced.
        """
        records: list[tuple[str, Record]] = []
        copies: dict[str, str] = {}
        for number, (action, whole) in enumerate(files):
            if errors[number] is not None:
                continue
            try:
                folder, leaf = folders.parent_of(action.name, create=True)
                if require_file(folder, leaf) is not None and action.name not in copies:
                    copies[action.name] = self._trash.save(folder, leaf, action.name, sha1=whole.sha1)
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
        return copies

    def _place(
        self, action: CompleteFile, whole: Whole, error: Fault | None, folders: Folders, copy: str
    ) -> Outcome:
        try:
            if error is not None:
                raise error
            folder, leaf = folders.parent_of(action.name)
            os.rename(whole.leaf, leaf, src_dir_fd=self._own, dst_dir_fd=folder)
        except (ContainmentError, OSError) as fault:
            self._drop(whole)
            self.faults.append((action.name, fault))
            return explain_failure(action, fault)
        os.close(whole.descriptor)
        return Stored(action.connection, action.name, action.size, whole.sha1, whole.verified, copy)

    def _drop(self, whole: Whole) -> None:
        os.close(whole.descriptor)
        with suppress(FileNotFoundError):  # it is in its place, and what came after that failed
            os.unlink(whole.leaf, dir_fd=self._own)


def explain_failure(action: WriteChunk | CompleteFile | DeleteFile, error: Fault) -> Failed:
    """Return the outcome of work that ended with this error."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return Failed(action.connection, action.name, reason, may_pass(error))


class Syncing:
    """Syncs groups of open files."""

    def __init__(self) -> None:
        # Threads are started as they are needed: none where files come one by one.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="filemq-sync")

    def begin(self, descriptors: Sequence[int]) -> Callable[[], list[SyncResult]]:
        """Begin to bring every file to the disk; call what this returns to wait for it."""
        count = min(THREADS, len(descriptors))
        futures = [self._threads.submit(_sync_each, descriptors[n::count]) for n in range(count)]

        def wait() -> list[SyncResult]:
            shares = [future.result() for future in futures]
            return [shares[n % count][n // count] for n in range(len(descriptors))]

        return wait

    def sync(self, descriptors: Sequence[int]) -> list[SyncResult]:
        """Return when every file is on the disk."""
        return _sync_each(descriptors) if len(descriptors) == 1 else self.begin(descriptors)()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _sync_each(descriptors: Sequence[int]) -> list[SyncResult]:
    return [sync_file(descriptor) for descriptor in descriptors]


def sync_file(descriptor: int) -> SyncResult:
    """Wait for the disk, and return what went wrong."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        return error
    return None
