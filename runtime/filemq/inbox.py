"""The folder that a client fills: every file in it is whole, and nothing outside it is ever touched.

A file under way is written to ``.specwire-inbox``, on the same file system. When its size and digest are right it
is synced, together with others that are whole, and renamed to its place, so a reader sees the old version or the
new one, and a shorter version leaves no tail. Names are walked by `containment`; a symbolic link on the way, or in the place of the file,
is refused. A file may be deleted only if it came from the same server (the journal knows) and is still a regular file;
where servers are known to delete what is still there, a copy is kept aside (`kept`).

A file that the engine says can be resumed (`KeepFile`) is left unfinished when the connection ends, the inbox is
closed, or the process killed, and is told of with the next listing; the next file that begins takes its place. One
that found no room on the disk is not kept: others may need the space before there is enough for it.

All methods but the constructor are called from one thread. `perform_all` turns whatever goes wrong into an outcome; a
full disk spoils one file, not the client.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from specwire.runtime.containment import ContainmentError, open_folder, open_root, require_file
from specwire.runtime.filemq.actions import (
    CompleteFile,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskAction,
    Failed,
    Held,
    KeepFile,
    Outcome,
    Unfinished,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.containment import parent_of
from specwire.runtime.filemq.folders import Folders
from specwire.runtime.filemq.inventory import Inventory
from specwire.runtime.filemq.journal import Journal
from specwire.runtime.filemq.kept import Kept
from specwire.runtime.filemq.names import RESERVED, split_name
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
        origin: how the inbox knows the server whose files are coming (`origin`); empty: a server unknown.
        check: take the SHA-1 of what comes, and refuse a file that has another than was announced. Without it a file
            counts as what was announced when its size is right, and is read only where nothing was announced.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sync: bool = True,
        keep_deleted: bool = False,
        origin: str = "",
        check: bool = True,
    ) -> None:
        self.folder = folder
        self._origin = origin
        self._sync, self._keep_deleted, self._check = sync, keep_deleted, check
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
            self._journal = Journal(self._own, self._origin)
            self._inventory = Inventory(self._root, self._journal)
            self._part = Part(self._own, digesting=self._check)
            self._kept = Kept(self._own) if self._keep_deleted else None
            self._folders = Folders(self._root)
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
        """Throw away what is not in its place and not to be kept, and unlock."""
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

    @property
    def pending(self) -> bool:
        """Whether there are files that are whole and not in their places: some work, or none, has still to be done."""
        return self._placing.pending

    def perform_all(self, actions: Sequence[DiskAction]) -> list[Outcome]:
        """Do pieces of work in order and return what came of them: after this, each is done."""
        return [*self.perform_some(actions), *self.perform_some([])]

    def perform_some(self, actions: Sequence[DiskAction]) -> list[Outcome]:
        """Do pieces of work in order and return what came of them, and of those before.

        Files that are whole now are brought to the disk meanwhile, and into their places with the next work, or
        with none.
        """
        outcomes: list[Outcome] = []
        with self._folders:
            for action in actions:
                outcomes += self._perform(action)
        outcomes += self._placing.place_next() if actions else self._placing.place_all()
        if not self._placing.pending:
            self._part.forget_whole()
        return outcomes

    def _perform(self, action: DiskAction) -> list[Outcome]:
        match action:
            case WriteChunk():
                return [Wrote(action.connection, len(action.chunk)), *self._guard(action)]
            case CompleteFile():
                return self._guard(action)
            case DiscardFile():
                self._part.discard()
                return []
            case KeepFile():
                self._keep(action.name)
                return []
        # What is listed or deleted must be in its place first.
        self._folders.forget()
        stored = self._placing.place_all()
        if isinstance(action, DeleteFile):
            return [*stored, *self._guard(action)]
        held = Held(action.connection, action.path, self.list_held(action.path), self._find_unfinished())
        return [*stored, held]

    def list_held(self, path: str) -> dict[str, str]:
        """Return the digests of the files under `path` by name; reads only files that are not known yet."""
        return self._inventory.take(path)

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
        with suppress(FileNotFoundError):
            require_file(*self._folders.parent_of(name))
        self._part.begin(name)

    def _keep(self, name: str) -> None:
        if self._part.name == name:
            with suppress(OSError):  # no room for the note: the file is not kept then, and will hardly grow
                self._part.keep()

    def _find_unfinished(self) -> Unfinished | None:
        """Return what is kept unfinished; reads it where an earlier run wrote it."""
        part = self._part
        if part.name is None or not part.kept:
            return None
        try:
            sha1 = part.sha1
        except OSError:
            part.discard()
            return None
        return Unfinished(part.name, part.size, sha1)

    def _complete(self, action: CompleteFile) -> list[Outcome]:
        if action.size == 0:
            self._begin(action.name)
        if self._spoiled == action.name:
            return []
        if self._part.name != action.name or self._part.size != action.size:
            return self._spoil(action, "was not received whole")
        sha1 = self._part.sha1 if self._check or action.sha1 is None else action.sha1
        if action.sha1 not in (None, sha1):
            return self._spoil(action, f"has the SHA-1 {sha1} where {action.sha1} was announced")
        verified = self._check and action.sha1 is not None
        return self._placing.add(action, self._part.finish(sha1, verified=verified))

    def _delete(self, action: DeleteFile) -> list[Outcome]:
        name = action.name
        if self._part.name == name:
            self._part.discard()
        try:
            with parent_of(self._root, name) as (folder, leaf):
                there = require_file(folder, leaf) is not None
                if there and (owner := self._journal.find_other_owner(name)) is not None:
                    raise ContainmentError(f"{owner}, and is kept")
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
