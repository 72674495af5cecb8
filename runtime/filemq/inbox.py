"""The folder that a client fills: every file in it is whole, and nothing outside it is ever touched.

A file under way is written to ``.specwire-inbox``, on the same file system. When its size and
digest are right it is synced, together with others that are whole, and renamed to its place, so a
reader sees the old version or the new one, and a shorter version leaves no tail. Names are walked
by `disk`; a symbolic link on the way, or in the place of the file, is refused. A file may be
deleted only if it came from the same server (the journal knows) and is still a regular file. What
is deleted or replaced is kept for a while (`trash`). When too many files would be deleted at once
(`policy`), those of the last minutes are put back, and all are withheld until somebody confirms.

A file that the engine says can be resumed (`KeepFile`) is left unfinished when the connection ends,
the inbox is closed, or the process killed, and is reported with the next listing; the next file
that begins takes its place. One that found no room on the disk is not kept: others may need the
space before there is enough for it.

When the folder is moved away or deleted nothing is done until there is a folder in its place.

All methods but the constructor are called from one thread. `perform_all` turns whatever goes wrong
into an outcome; a full disk spoils one file, not the client.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from specwire.runtime.containment import ContainmentError, open_folder, open_root, require_file
from specwire.runtime.filemq.actions import (
    AcceptDeletions,
    Checked,
    CheckInbox,
    CompleteFile,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskAction,
    Failed,
    Held,
    KeepFile,
    ListHeld,
    Outcome,
    Restored,
    Stored,
    Unfinished,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.digests import sign
from specwire.runtime.filemq.disk import Fault, Folders, folders_below, is_full, is_taken, parent_of
from specwire.runtime.filemq.inventory import Inventory
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.names import RESERVED, covers, split_name
from specwire.runtime.filemq.part import Part
from specwire.runtime.filemq.placing import Placing, explain_failure
from specwire.runtime.filemq.policy import DeletionLimit, InboxRules
from specwire.runtime.filemq.trash import Trash

DEFAULT_RULES = InboxRules()
WITHHELD = (
    "is withdrawn by the server and kept: too many files would be deleted at once; "
    "start the subscriber with --accept-deletions to delete them"
)


class InboxError(Exception):
    """An inbox cannot be used; `str()` names the folder and the reason."""


class Inbox:
    """One inbox folder, which is made where it is missing.

    Args:
        folder: the folder; files are kept below it under their full virtual path.
        sync: wait for the disk before a file is put in its place. Without it a power cut (not a kill) may
            leave a file that is not whole.
        rules: settings.
        repeats: at each listing the server says again which files it has withdrawn.
        origin: how the inbox knows the server whose files are coming (`origin`); empty: a server unknown.
        check: take the SHA-1 of what comes, and refuse a file that has another than was announced. Without it a file
            counts as what was announced when its size is right, and is read only where nothing was announced.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sync: bool = True,
        rules: InboxRules = DEFAULT_RULES,
        repeats: bool = True,
        origin: str = "",
        check: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self._origin = origin
        self._sync, self._rules, self._repeats, self._check = sync, rules, repeats, check
        self._clock = clock
        self._limit = DeletionLimit(rules)
        self._recent: dict[str, Record] = {}
        self._root = self._own = -1
        self._spoiled: str | None = None
        self._blocked: set[str] = set()
        self._told: set[str] = set()
        self._away: str | None = None

    @property
    def lines_lost(self) -> int:
        """Lines of the journal that could not be read when it was opened."""
        return self._journal.lines_lost

    def open(self) -> None:
        """Open, lock and clean up the inbox, which is made where it is missing; raises InboxError."""
        self._open(create=True)

    def _open(self, *, create: bool = False) -> None:
        """Open the folder that is there now; raises InboxError, and then nothing is open."""
        try:
            self._open_all(create=create)
        except InboxError:
            self._close_folders()
            raise

    def _open_all(self, *, create: bool) -> None:
        try:
            if create:
                self.folder.mkdir(parents=True, exist_ok=True)
            self._root = open_root(self.folder)
            self._own = open_folder(self._root, [RESERVED], create=True)
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._journal = Journal(self._own, self._origin)
            self._inventory = Inventory(self._root, self._journal)
            self._part = Part(self._own, digesting=self._check)
            self._trash = Trash(self._own, self._journal, self._rules.trash_s)
            self._folders = Folders(self._root)
            self._placing = Placing(self._root, self._own, self._journal, trash=self._trash, sync=self._sync)
            self._limit.withheld = self._journal.withheld
        except BlockingIOError:
            raise InboxError(f"the inbox {self.folder} is in use by another client") from None
        except (FileExistsError, NotADirectoryError):
            raise InboxError(f"the inbox {self.folder} cannot be used: it is not a folder") from None
        except OSError as error:
            raise InboxError(f"the inbox {self.folder} cannot be used: {error.strerror}") from error
        except ContainmentError as error:
            raise InboxError(f"the inbox {self.folder} cannot be used: {RESERVED} {error}") from error

    def close(self) -> None:
        """Throw away what is not in its place and not to be kept, and unlock. May be called twice."""
        if self._root < 0:
            return
        self._part.close()
        self._placing.close()
        self._journal.close()
        self._trash.close()
        self._close_folders()

    def _close_folders(self) -> None:
        for descriptor in (self._own, self._root):
            if descriptor >= 0:
                os.close(descriptor)
        self._own = self._root = -1

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
        if actions and not self._is_there():
            return [outcome for action in actions for outcome in self._postpone(action)]
        outcomes: list[Outcome] = []
        for action in actions:
            outcomes += self._perform(action)
        self._folders.forget()
        outcomes += self._place(self._placing.place_next if actions else self._placing.place_all)
        if not self._placing.pending:
            self._part.forget_whole()
        return outcomes

    @property
    def withheld(self) -> int:
        """How many files the server has withdrawn that are still here."""
        return len(self._journal.withheld)

    def _is_there(self) -> bool:
        """See which folder the path means now, and open that."""
        try:
            found = os.stat(self.folder)
            if self._root >= 0 and os.path.samestat(found, os.fstat(self._root)):
                self._away = None
                if os.fstat(self._own).st_nlink:
                    return True
            self.close()
            self._open()
        except OSError as error:
            self._away = f"the inbox {self.folder} is away: {error.strerror}"
        except InboxError as error:
            self._away = str(error)
        else:
            self._away = self._spoiled = None
        return self._away is None

    def _postpone(self, action: DiskAction) -> list[Outcome]:
        """Do nothing, as the folder is away; what is asked for again finds it perhaps."""
        again = Failed(action.connection, "/", self._away or "", again=True)
        match action:
            case WriteChunk(connection=connection, name=name, offset=offset, chunk=chunk):
                self._spoiled = name
                return [Wrote(connection, len(chunk)), *([] if offset else [again])]
            case CompleteFile(size=0) | DeleteFile():
                return [again]
            case ListHeld(connection=connection, path=path):
                received = self._journal.received()
                held = {name: record.sha1 for name, record in received if covers(path, name)}
                return [Held(connection, path, held), again]
            case CheckInbox(connection=connection):
                return [Checked(connection, repair=False)]
        return []

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
        # What is listed, compared or deleted must be in its place first.
        self._folders.forget()
        stored = self._place(self._placing.place_all)
        match action:
            case DeleteFile():
                return [*stored, *self._guard(action)]
            case AcceptDeletions():
                return [*stored, *self._accept(action)]
            case CheckInbox():
                return [*stored, self._compare(action)]
        again = [n for n in self._journal.withheld if covers(action.path, n)]
        if again and self._repeats and not self._limit.is_accepting(self._clock()):
            with suppress(OSError):  # no room for the note: they count as withheld until they come again
                self._journal.forget_withheld(again)
                self._limit.suspect(again, self._clock())
        held = Held(action.connection, action.path, self.list_held(action.path), self._find_unfinished())
        return [*stored, held]

    def _place(self, place: Callable[[], list[Outcome]]) -> list[Outcome]:
        """Put files into their places, and delete withheld ones that came under another name."""
        outcomes = place()
        while self._placing.faults:
            self._note_fault(*self._placing.faults.pop())
        for outcome in [*outcomes]:
            if isinstance(outcome, Stored):
                self._told.discard(outcome.name)
                if (moved := self._journal.find_withheld(outcome.sha1)) is not None:
                    outcomes += self._guard(DeleteFile(outcome.connection, moved), confirmed=True)
        return outcomes

    def _note_fault(self, name: str, fault: Fault) -> None:
        """Make room on a full disk; and remember a place that is taken, as somebody may free it."""
        if is_full(fault):
            self._trash.empty()
        elif is_taken(fault):
            self._blocked.add(name)

    def _accept(self, action: AcceptDeletions) -> list[Outcome]:
        self._limit.accept()
        withheld = [*self._journal.withheld]
        return [outcome for name in withheld for outcome in self._guard(DeleteFile(action.connection, name))]

    def _compare(self, action: CheckInbox) -> Checked:
        """See what the server has to send again: what is not as it was received, or found no place then."""
        self._trash.expire()
        free = {name for name in self._blocked if self._has_place(name)}
        self._blocked -= free
        changed = self._inventory.find_changes()
        news, self._told = changed - self._told, changed
        return Checked(action.connection, repair=bool(free or news))

    def _has_place(self, name: str) -> bool:
        try:
            with parent_of(self._root, name) as (folder, leaf):
                require_file(folder, leaf)
        except FileNotFoundError:
            return True
        except (ContainmentError, OSError):
            return False
        return True

    def list_held(self, path: str) -> dict[str, str]:
        """Return the digests of the files under `path` by name; reads only files that are not known yet."""
        return self._inventory.take(path)

    def _guard(
        self, action: WriteChunk | CompleteFile | DeleteFile, *, confirmed: bool = False
    ) -> list[Outcome]:
        try:
            match action:
                case WriteChunk():
                    return self._write(action)
                case CompleteFile():
                    return self._complete(action)
                case DeleteFile():
                    return self._delete(action, confirmed=confirmed)
        except (ContainmentError, OSError) as error:
            return [self._fail(action, error)]

    def _fail(self, action: WriteChunk | CompleteFile | DeleteFile, error: Fault) -> Failed:
        if not isinstance(action, DeleteFile):
            self._give_up(action.name)
            self._note_fault(action.name, error)
        return explain_failure(action, error)

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

    def _delete(self, action: DeleteFile, *, confirmed: bool) -> list[Outcome]:
        name = action.name
        if self._part.name == name:
            self._part.discard()
        deleted: list[Outcome] = []
        with folders_below(self._root) as folders:
            try:
                folder, leaf = folders.parent_of(name)
                state = require_file(folder, leaf)
            except FileNotFoundError:  # a folder of it is gone, so it is gone too
                state = None
            if state is not None:
                if (owner := self._journal.find_other_owner(name)) is not None:
                    raise ContainmentError(f"{owner}, and is kept")
                if not confirmed and not self._limit.allows(name, len(self._journal), self._clock()):
                    return [*self._put_back(action), self._withhold(action.connection, name)]
                deleted = [Deleted(action.connection, name, self._remove(folder, leaf, name, state))]
        self._journal.remove(name)
        self._remove_empty_folders(split_name(name)[:-1])
        return deleted

    def _remove(self, folder: int, leaf: str, name: str, state: os.stat_result) -> str:
        """Take a file out of its place; returns the leaf of its conflict copy, if any."""
        record = self._journal.find(name)
        copy = self._trash.remove(folder, leaf, name, state)
        self._recent[name] = record or Record("", sign(state), True)
        while len(self._recent) > max(self._rules.delete_files, self._rules.always):
            del self._recent[next(iter(self._recent))]
        return copy

    def _withhold(self, connection: int, name: str) -> Failed:
        self._journal.withhold(name)
        return Failed(connection, name, WITHHELD, again=False)

    def _put_back(self, action: DeleteFile) -> Iterator[Outcome]:
        """Undo the deletions of the last minutes: with the next one they are too many."""
        recent, self._recent = self._recent, {}
        for name in self._limit.take_back():
            if name not in recent:
                continue
            with suppress(OSError, ContainmentError), folders_below(self._root) as folders:
                # What cannot be put back stays in the trash.
                folder, leaf = folders.parent_of(name, create=True)
                if self._trash.restore(folder, leaf, name):
                    self._journal.put(name, recent[name])
                    yield Restored(action.connection, name, recent[name].sha1)
                    yield self._withhold(action.connection, name)

    def _remove_empty_folders(self, folders: list[str]) -> None:
        """FILEMQ carries no empty folders, so one that becomes empty goes with its last file."""
        while folders:
            *parents, leaf = folders
            try:
                with parent_of(self._root, "/" + "/".join(folders)) as (parent, _):
                    os.rmdir(leaf, dir_fd=parent)
            except (OSError, ContainmentError):  # not empty, or not ours to remove
                return
            folders = parents
