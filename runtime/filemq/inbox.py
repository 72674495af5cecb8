"""The folder that a client fills: every file in it is whole, and nothing outside it is ever touched.

A file under way is written to ``.specwire-inbox``, on the same file system. When its size and digest are right it
is synced, together with others that are whole, and renamed to its place, so a reader sees the old version or the
new one, and a shorter version leaves no tail. Names are walked by `containment`; a symbolic link on the way, or in the place of the file,
is refused. A file may be deleted only if it came from a server (the journal knows) and is still a regular file;
where servers are known to delete what is still there, a copy is kept aside (`kept`).

All methods but the constructor are called from one thread. `perform_all` turns whatever goes wrong into an outcome; a
full disk spoils one file, not the client.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from specwire.runtime.filemq.actions import (
    CompleteFile,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskAction,
    Failed,
    Held,
    Outcome,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.containment import (
    ContainmentError,
    open_file,
    open_folder,
    open_root,
    parent_of,
    require_file,
    stat_leaf,
    walk_files,
)
from specwire.runtime.filemq.digests import UnstableError, digest_file
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.kept import Kept
from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, RESERVED, fault_in_name, split_name
from specwire.runtime.filemq.part import Part
from specwire.runtime.filemq.placing import Placing, explain_failure


class InboxError(Exception):
    """An inbox cannot be used; `str()` names the folder and the reason."""


class Inbox:
    """One inbox folder, which is made where it is missing.

    Args:
        folder: the folder; files are kept below it under their full virtual path.
        sync: wait for the disk before a file is put in its place. Without it a power cut (not a kill) may
            leave a file that is not whole.
        keep_deleted: keep a copy of each file that is deleted, until it comes again or a week has passed.
    """

    def __init__(self, folder: Path, *, sync: bool = True, keep_deleted: bool = False) -> None:
        self.folder = folder
        self._sync, self._keep_deleted = sync, keep_deleted
        self._kept: Kept | None = None
        self._root = self._own = -1
        self._spoiled: str | None = None

    @property
    def lines_lost(self) -> int:
        """Lines of the journal that could not be read when it was opened."""
        return self._journal.lines_lost

    def open(self) -> None:
        """Open, lock and clean up the inbox; raises InboxError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._root = open_root(self.folder)
            self._own = open_folder(self._root, [RESERVED], create=True)
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._journal = Journal(self._own)
            self._part = Part(self._own)
            self._kept = Kept(self._own) if self._keep_deleted else None
            self._placing = Placing(self._root, self._own, self._journal, kept=self._kept, sync=self._sync)
        except BlockingIOError:
            raise InboxError(f"the inbox {self.folder} is in use by another client") from None
        except (FileExistsError, NotADirectoryError):
            raise InboxError(f"the inbox {self.folder} cannot be used: it is not a folder") from None
        except OSError as error:
            raise InboxError(f"the inbox {self.folder} cannot be used: {error.strerror}") from error
        except ContainmentError as error:
            raise InboxError(f"the inbox {self.folder} cannot be used: {RESERVED} {error}") from error

    def close(self) -> None:
        """Throw away what is not in its place, and unlock."""
        self._part.close()
        self._placing.close()
        self._journal.close()
        if self._kept is not None:
            self._kept.close()
        os.close(self._own)
        os.close(self._root)

    def perform(self, action: DiskAction) -> list[Outcome]:
        """Do one piece of work and return what came of it."""
        return self.perform_all([action])

    def perform_all(self, actions: Sequence[DiskAction]) -> list[Outcome]:
        """Do pieces of work in order and return what came of them: after this, each is done."""
        outcomes = [outcome for action in actions for outcome in self._perform(action)]
        return [*outcomes, *self._placing.place_all()]

    def _perform(self, action: DiskAction) -> list[Outcome]:
        match action:
            case WriteChunk():
                return [Wrote(action.connection, len(action.chunk)), *self._guard(action)]
            case CompleteFile():
                return self._guard(action)
            case DiscardFile():
                self._part.discard()
                return []
        # What is listed or deleted must be in its place first.
        stored = self._placing.place_all()
        if isinstance(action, DeleteFile):
            return [*stored, *self._guard(action)]
        return [*stored, Held(action.connection, action.path, self.list_held(action.path))]

    def list_held(self, path: str) -> dict[str, str]:
        """Return the digests of the files under `path` by name; reads only files that are not known yet."""
        held: dict[str, str] = {}
        for name, state in self._files_under(path):
            if not stat.S_ISREG(state.st_mode) or fault_in_name(name, LONGEST_NAME_OCTETS) is not None:
                continue
            record = self._journal.find(name, state) or self._digest(name)
            if record is not None:
                held[name] = record.sha1
        return held

    def _guard(self, action: WriteChunk | CompleteFile | DeleteFile) -> list[Outcome]:
        try:
            match action:
                case WriteChunk():
                    return self._write(action)
                case CompleteFile():
                    return self._complete(action)
                case DeleteFile():
                    return self._delete(action)
        except (ContainmentError, OSError) as error:
            if not isinstance(action, DeleteFile):
                self._give_up(action.name)
            return [explain_failure(action, error)]

    def _spoil(self, action: WriteChunk | CompleteFile, reason: str) -> list[Outcome]:
        self._give_up(action.name)
        return [Failed(action.connection, action.name, reason, again=True)]

    def _give_up(self, name: str) -> None:
        """Give up a file, once: what still comes of it is dropped without a word until it begins again."""
        self._part.discard()
        self._spoiled = name

    def _write(self, action: WriteChunk) -> list[Outcome]:
        if action.offset == 0:
            self._begin(action.name)
        if self._part.name == action.name:
            self._part.write(action.offset, action.chunk)
        return []

    def _begin(self, name: str) -> None:
        """Start a file anew; refuses a bad place before any content is written."""
        self._spoiled = None
        self._part.discard()
        try:
            with parent_of(self._root, name) as (folder, leaf):
                require_file(folder, leaf)
        except FileNotFoundError:
            pass
        self._part.begin(name)

    def _complete(self, action: CompleteFile) -> list[Outcome]:
        if action.size == 0:
            self._begin(action.name)
        if self._spoiled == action.name:
            return []
        if self._part.name != action.name or self._part.size != action.size:
            return self._spoil(action, "was not received whole")
        sha1 = self._part.sha1
        if action.sha1 not in (None, sha1):
            return self._spoil(action, f"has the SHA-1 {sha1} where {action.sha1} was announced")
        return self._placing.add(action, self._part.finish())

    def _delete(self, action: DeleteFile) -> list[Outcome]:
        name = action.name
        try:
            with parent_of(self._root, name) as (folder, leaf):
                there = require_file(folder, leaf) is not None
                record = self._journal.find(name)
                if there and (record is None or not record.received):
                    raise ContainmentError("did not come from a server, and is kept")
                if there and self._kept is not None:
                    self._kept.put(folder, leaf, name)
                elif there:
                    os.unlink(leaf, dir_fd=folder)
        except FileNotFoundError:
            there = False
        self._journal.remove(name)
        self._remove_empty_folders(split_name(name)[:-1])
        return [Deleted(action.connection, name, self._kept is not None)] if there else []

    def _remove_empty_folders(self, folders: list[str]) -> None:
        """FILEMQ carries no empty folders, so one that becomes empty goes with its last file."""
        while folders:
            *parents, leaf = folders
            try:
                with parent_of(self._root, "/" + "/".join(folders)) as (parent, _):
                    os.rmdir(leaf, dir_fd=parent)
            except (OSError, ContainmentError):
                return
            folders = parents

    def _files_under(self, path: str) -> list[tuple[str, os.stat_result]]:
        if path == "/":
            return list(walk_files(self._root, "/", LONGEST_NAME_OCTETS))
        try:
            with parent_of(self._root, path) as (folder, leaf):
                state = stat_leaf(folder, leaf)
                if state is None or stat.S_ISREG(state.st_mode):
                    return [] if state is None else [(path, state)]
                inner = open_folder(folder, [leaf])
        except (FileNotFoundError, ContainmentError):
            return []
        try:
            return list(walk_files(inner, f"{path}/", LONGEST_NAME_OCTETS))
        finally:
            os.close(inner)

    def _digest(self, name: str) -> Record | None:
        """Read a file that the journal does not know in its present state."""
        try:
            descriptor = open_file(self._root, name)
        except (OSError, ContainmentError):
            return None
        try:
            digest = digest_file(descriptor)
        except (OSError, UnstableError):
            return None
        finally:
            os.close(descriptor)
        known = self._journal.find(name)
        record = Record(digest.sha1, digest.signature, received=known is not None and known.received)
        if not digest.fresh:
            self._journal.put(name, record)
        return record
