"""Complete files on their way to their places in an inbox: synced together, noted, renamed.

Files that arrived in one batch wait in the inbox's own folder. So the disk is awaited once for all,
while the next batch is written, and still no file is in its place before it is on the disk. What a
file replaces is kept first (`trash`). Mode and modification time are set, and the journal is
written once for all, before the first rename: a file in its place is always known.

A file system writes one record to its journal for all files that wait for it at the same time. So
files are synced from several threads, and share the wait.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from specwire.runtime.containment import ContainmentError, open_folder, require_file, stat_leaf
from specwire.runtime.filemq.disk import Fault, Folders, folders_below, may_pass, parent_of
from specwire.runtime.filemq.diskwork import (
    CompleteFile,
    DeleteFile,
    Failed,
    Outcome,
    Stored,
    WriteChunk,
)
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, fault_in_entry, is_folder, split_name
from specwire.runtime.filemq.reading import PERMISSIONS, SHA1_OF_NOTHING, sign
from specwire.runtime.filemq.trash import Trash
from specwire.runtime.filemq.unfinished import CompletedFile

MAX_WAITING = 256
"""Files that wait for the disk together. Each has an open descriptor."""

THREADS = 16

SyncResult = OSError | None
"""Error of a file, None if it is on the disk."""

Waiting = tuple[CompleteFile, CompletedFile]


class Placing:
    """Complete files of one inbox that are not in their places yet.

    Args:
        root: descriptor of the inbox.
        own: descriptor of the inbox's own folder, where the files wait.
        trash: takes what is replaced.
        sync: wait for the disk before a file is put into its place.

    Attributes:
        faults: failures by name. The owner removes them.
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

    def add(self, action: CompleteFile, file: CompletedFile) -> list[Outcome]:
        """Take over a complete file. If many wait, all are put into their places."""
        self._waiting.append((action, file))
        return self.place_all() if len(self._waiting) == MAX_WAITING else []

    def place_next(self) -> list[Outcome]:
        """Place the files whose sync began with the last call, and begin to sync the others."""
        if self._syncing is None:
            return self.place_all()
        outcomes = self._place_synced()
        self._under_sync, self._waiting = self._waiting, []
        self._wait = self._syncing.begin([file.descriptor for _, file in self._under_sync])
        return outcomes

    def place_all(self) -> list[Outcome]:
        """Place every waiting file, in order. A failure affects only its own file."""
        outcomes = self._place_synced()
        waiting, self._waiting = self._waiting, []
        if waiting:
            errors: list[Fault | None] = [None] * len(waiting)
            if self._syncing is not None:
                errors[:] = self._syncing.sync([file.descriptor for _, file in waiting])
            outcomes += self._place_each(waiting, errors)
        return outcomes

    def make_folder(self, action: CompleteFile) -> Stored:
        """Create an empty folder; raises ContainmentError or OSError."""
        if fault := fault_in_entry(action.name, LONGEST_NAME_OCTETS):
            raise ContainmentError(fault)
        folder = open_folder(self._root, split_name(action.name[:-1]), create=True)
        try:
            _set_metadata(folder, action, always=stat.S_IRWXU)  # files may come into it later
            record = Record(SHA1_OF_NOTHING, sign(os.fstat(folder)), self._journal.origin)
        finally:
            os.close(folder)
        self._journal.put(action.name, record)
        return Stored(action.connection, action.name, 0, SHA1_OF_NOTHING, verified=True)

    def has_room(self, name: str) -> bool:
        """Return whether nothing else is in the place of a file, or of one of its folders."""
        try:
            with parent_of(self._root, name.removesuffix("/")) as (folder, leaf):
                if is_folder(name):
                    state = stat_leaf(folder, leaf)
                    return state is None or stat.S_ISDIR(state.st_mode)
                require_file(folder, leaf)
        except FileNotFoundError:
            return True
        except (ContainmentError, OSError):
            return False
        return True

    def close(self) -> None:
        """Delete the files that still wait."""
        if self._syncing is not None:
            self._syncing.close()
        for _, file in [*self._under_sync, *self._waiting]:
            self._drop(file)
        self._under_sync, self._waiting = [], []

    def _place_synced(self) -> list[Outcome]:
        files, self._under_sync = self._under_sync, []
        return self._place_each(files, [*self._wait()]) if files else []

    def _place_each(self, files: list[Waiting], errors: list[Fault | None]) -> list[Outcome]:
        with folders_below(self._root) as folders:
            copies = self._prepare(files, errors, folders)
            return [
                self._place(*waiting, error, folders, copies.get(waiting[0].name, ""))
                for waiting, error in zip(files, errors, strict=True)
            ]

    def _prepare(self, files: list[Waiting], errors: list[Fault | None], folders: Folders) -> dict[str, str]:
        """Save what is replaced, and write the journal; adds to `errors` what failed.

        Returns:
            the conflict copies that were made, by the name of the file that is replaced.
        """
        records: list[tuple[str, Record]] = []
        copies: dict[str, str] = {}
        for number, (action, file) in enumerate(files):
            if errors[number] is not None:
                continue
            name = action.name
            try:
                folder, leaf = folders.parent_of(name, create=True)
                if require_file(folder, leaf) is not None and name not in copies:
                    copies[name] = self._trash.save(folder, leaf, name, sha1=file.sha1)
                _set_metadata(file.descriptor, action)
                signature = sign(os.fstat(file.descriptor))
            except (ContainmentError, OSError) as fault:
                errors[number] = fault
            else:
                records.append((name, Record(file.sha1, signature, self._journal.origin)))
        try:
            self._journal.put_all(records)
        except OSError as fault:
            errors[:] = [error or fault for error in errors]
        return copies

    def _place(
        self, action: CompleteFile, file: CompletedFile, error: Fault | None, folders: Folders, copy: str
    ) -> Outcome:
        try:
            if error is not None:
                raise error
            folder, leaf = folders.parent_of(action.name)
            os.rename(file.leaf, leaf, src_dir_fd=self._own, dst_dir_fd=folder)
        except (ContainmentError, OSError) as fault:
            self._drop(file)
            self.faults.append((action.name, fault))
            return explain_failure(action, fault)
        os.close(file.descriptor)
        return Stored(action.connection, action.name, action.size, file.sha1, file.verified, copy)

    def _drop(self, file: CompletedFile) -> None:
        os.close(file.descriptor)
        with suppress(FileNotFoundError):  # it is in its place, and a later step failed
            os.unlink(file.leaf, dir_fd=self._own)


def _set_metadata(descriptor: int, action: CompleteFile, *, always: int = 0) -> None:
    """Set mode and modification time, as far as the file system has them.

    The file is not in its place yet, so nobody can open it there with another mode.

    Args:
        always: bits of the mode that are set in any case.
    """
    if action.mode is not None:
        with suppress(OSError):
            os.fchmod(descriptor, action.mode & PERMISSIONS | always)
    if action.mtime_ns is not None:
        with suppress(OSError, OverflowError):
            os.utime(descriptor, ns=(time.time_ns(), action.mtime_ns))


def explain_failure(action: WriteChunk | CompleteFile | DeleteFile, error: Fault) -> Failed:
    """Return the outcome of work that ended with this error."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return Failed(action.connection, action.name, reason, may_pass(error))


class Syncing:
    """Syncs groups of open files in threads, which are started on demand."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="filemq-sync")

    def begin(self, descriptors: Sequence[int]) -> Callable[[], list[SyncResult]]:
        """Begin to sync every file; call the returned function to wait for the results."""
        count = min(THREADS, len(descriptors))
        futures = [self._threads.submit(_sync_each, descriptors[n::count]) for n in range(count)]

        def wait() -> list[SyncResult]:
            shares = [future.result() for future in futures]
            return [shares[n % count][n // count] for n in range(len(descriptors))]

        return wait

    def sync(self, descriptors: Sequence[int]) -> list[SyncResult]:
        """Sync every file, and return the results."""
        return _sync_each(descriptors) if len(descriptors) == 1 else self.begin(descriptors)()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _sync_each(descriptors: Sequence[int]) -> list[SyncResult]:
    return [sync_file(descriptor) for descriptor in descriptors]


def sync_file(descriptor: int) -> SyncResult:
    """Wait until a file is on the disk; return the error, if any."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        return error
    return None
