"""Folder that a client fills: every file in it is complete, and nothing outside is ever touched.

An incoming file is written to ``.specwire-inbox``, on the same file system (`unfinished`). When its
size and digest are right it is synced, together with others, and renamed to its place (`placing`).
So a reader sees the old version or the new one. Names are walked by `disk`; a symbolic link on the
way, or in the place of the file, is refused. What is deleted or replaced is kept for a while
(`trash`), and the number of deletions is limited (`deletion`).

A file that the engine can resume (`KeepFile`) stays unfinished when the connection ends, the inbox
is closed, or the process killed. It is reported with the next listing, and removed when the next
file begins. One that found no room on the disk is not kept: others may need the room before.

Ignored files (`ignore`) are neither received nor deleted. While the folder is away (moved or
deleted), nothing is done. When another one is in its place, a `Failed` that may succeed again lets
the engine fill it.

All methods but the constructor are called from one thread. `perform` turns every failure into an
outcome; a full disk affects one file, not the client.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from specwire.runtime.containment import ContainmentError, open_folder, open_root, require_file
from specwire.runtime.filemq.deletion import Deletions
from specwire.runtime.filemq.disk import Fault, Folders, is_full, is_taken
from specwire.runtime.filemq.diskwork import (
    AcceptDeletions,
    Checked,
    CheckInbox,
    CompleteFile,
    CompleteRenamed,
    ContentLost,
    Deleted,
    DeleteFile,
    DiscardFile,
    DiskAction,
    Failed,
    Held,
    KeepFile,
    ListHeld,
    Outcome,
    Stored,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.journal import Inventory, Journal
from specwire.runtime.filemq.names import RESERVED, IgnoreRule, covers, is_folder
from specwire.runtime.filemq.placing import Placing, explain_failure
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.filemq.trash import Trash
from specwire.runtime.filemq.unfinished import UnfinishedFile

DEFAULT_RULES = InboxRules()

REPLACED = "the inbox was replaced"

FileWork = WriteChunk | CompleteFile | DeleteFile


class InboxError(Exception):
    """An inbox cannot be used; `str()` names the folder and the reason."""


@contextmanager
def explaining(folder: Path) -> Iterator[None]:
    """Raise InboxError for an error that comes from opening the inbox `folder`."""
    try:
        yield
    except BlockingIOError:
        raise InboxError(f"the inbox {folder} is in use by another client") from None
    except (FileExistsError, NotADirectoryError):
        raise InboxError(f"the inbox {folder} cannot be used: it is not a folder") from None
    except OSError as error:
        raise InboxError(f"the inbox {folder} cannot be used: {error.strerror}") from error
    except ContainmentError as error:
        raise InboxError(f"the inbox {folder} cannot be used: {RESERVED} {error}") from error


class Inbox:
    """One inbox folder, which is created if it does not exist.

    Args:
        folder: the folder. Files are kept below it under their full virtual names.
        sync: wait for the disk before a file is put into its place. Otherwise a loss of power (not
            a kill) may leave an incomplete file.
        rules: settings.
        repeats: at each listing the server repeats which files it has withdrawn.
        origin: name in the inbox of the server that sends files now; empty: an unknown server.
        check: compute the SHA-1 of what arrives, and refuse a file with another one than announced.
            Otherwise a file of the right size is accepted with the announced digest.

    Raises:
        ValueError: an ignore pattern of `rules` is not valid.
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
        self._ignore = IgnoreRule(rules.ignore)
        self._deletions = Deletions(rules, clock)
        self._root = self._own = -1
        self._opened = ExitStack()
        self._spoiled: str | None = None  # chunks of this file are ignored until it begins again
        self._blocked: set[str] = set()
        self._reported: set[str] = set()
        self._away: str | None = None

    @property
    def lines_lost(self) -> int:
        """Lines of the journal that could not be read when it was opened."""
        return self._journal.lines_lost

    @property
    def withheld(self) -> int:
        """Number of files that the server has withdrawn and that are still here."""
        return len(self._journal.withheld)

    @property
    def pending(self) -> bool:
        """Whether complete files are not in their places. `perform` puts them there."""
        return self._placing.pending

    def open(self, *, create: bool = True) -> None:
        """Open, lock and clean up the folder at the path; raises InboxError, and then nothing is open."""
        with ExitStack() as opened:
            opened.callback(self._close_folders)
            self._open_all(opened, create=create)
            self._opened = opened.pop_all()

    def _open_all(self, opened: ExitStack, *, create: bool) -> None:
        with explaining(self.folder):
            if create:
                self.folder.mkdir(parents=True, exist_ok=True)
            self._root = open_root(self.folder)
            self._own = open_folder(self._root, [RESERVED], create=True)
            with suppress(OSError):  # a file system without modes, or the folder of another user
                os.fchmod(self._own, stat.S_IRWXU)  # unfinished files do not have their modes yet
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._journal = Journal(self._own, self._origin)
            opened.callback(self._journal.close)
            self._inventory = Inventory(self._root, self._journal)
            self._unfinished = UnfinishedFile(self._own, digesting=self._check)
            opened.callback(self._unfinished.close)
            self._trash = Trash(self._own, self._journal, self._rules.trash_s)
            opened.callback(self._trash.close)
            self._folders = Folders(self._root)
            self._placing = Placing(self._root, self._own, self._journal, trash=self._trash, sync=self._sync)
            opened.callback(self._placing.close)
            self._deletions.attach(self._root, self._journal, self._trash)

    def close(self) -> None:
        """Delete what is not in its place and not kept, and unlock. May be called twice."""
        self._opened.close()

    def _close_folders(self) -> None:
        for descriptor in (self._own, self._root):
            if descriptor >= 0:
                os.close(descriptor)
        self._own = self._root = -1

    def perform(self, actions: Sequence[DiskAction]) -> list[Outcome]:
        """Do pieces of work in order and return outcomes, also of earlier work.

        Files that are complete now are synced meanwhile. The next call puts them into their places.
        Without `actions`, this waits for the disk and puts all into their places.
        """
        outcomes = self._look_for_folder(actions[-1].connection) if actions else []
        if actions and self._away is not None:
            return [outcome for action in actions for outcome in self._postpone(action)]
        for action in actions:
            outcomes += self._perform(action)
        self._folders.forget()
        outcomes += self._place(self._placing.place_next if actions else self._placing.place_all)
        if not self._placing.pending:
            self._unfinished.forget_completed()
        return outcomes

    def list_held(self, path: str) -> dict[str, str]:
        """Return the digests of the files under `path` by name; reads only files that changed."""
        return self._inventory.list_held(path)

    # ---- a folder that is away

    def _look_for_folder(self, connection: int) -> list[Outcome]:
        """Note whether there is a folder at the path, and open it if it is another one."""
        try:
            found = os.stat(self.folder)
            is_same = self._root >= 0 and os.path.samestat(found, os.fstat(self._root))
            if is_same and os.fstat(self._own).st_nlink:
                self._away = None
                return []
            self.close()
            self.open(create=False)
        except OSError as error:
            self._away = f"the inbox {self.folder} is away: {error.strerror}"
        except InboxError as error:
            self._away = str(error)
        else:
            self._away = self._spoiled = None
            return [Failed(connection, "/", REPLACED, again=True)]
        return []

    def _postpone(self, action: DiskAction) -> list[Outcome]:
        """Do nothing while the folder is away. The engine requests again what fails here."""
        again = Failed(action.connection, "/", self._away or "", again=True)
        match action:
            case WriteChunk(connection=connection, name=name, offset=offset, chunk=chunk):
                self._spoiled = name
                return [Wrote(connection, len(chunk)), *([] if offset else [again])]
            case CompleteFile(size=0) | CompleteRenamed() | DeleteFile():
                return [again]
            case ListHeld(connection=connection, path=path):
                received = self._journal.received()
                held = {name: record.sha1 for name, record in received if covers(path, name)}
                return [Held(connection, path, held), again]
            case CheckInbox(connection=connection):
                return [Checked(connection, repair=False)]
        return []

    # ---- work

    def _perform(self, action: DiskAction) -> list[Outcome]:
        match action:
            case WriteChunk():
                return [Wrote(action.connection, len(action.chunk)), *self._guard(action)]
            case CompleteFile(name=name, size=size) if size or not is_folder(name):
                return self._guard(action)
            case CompleteRenamed():
                return self._complete_renamed(action)
            case DiscardFile():
                self._unfinished.discard()
                return []
            case KeepFile():
                self._unfinished.keep(action.name)
                return []
        # Files must be in their places before they are listed, compared or deleted, or a folder made.
        self._folders.forget()
        placed = self._place(self._placing.place_all)
        match action:
            case DeleteFile() | CompleteFile():
                return [*placed, *self._guard(action)]
            case AcceptDeletions(connection=connection):
                names = self._deletions.accept()
                return [*placed, *(o for n in names for o in self._guard(DeleteFile(connection, n)))]
            case CheckInbox():
                return [*placed, self._compare(action)]
        if self._repeats:
            self._deletions.forget_withheld(action.path)
        held = Held(action.connection, action.path, self.list_held(action.path), self._unfinished.kept_part())
        return [*placed, held]

    def _guard(self, action: FileWork, *, confirmed: bool = False) -> list[Outcome]:
        """Do work on one file; a failure becomes an outcome."""
        try:
            match action:
                case WriteChunk():
                    return self._write(action)
                case CompleteFile():
                    return self._complete(action)
                case DeleteFile():
                    return self._delete(action, confirmed=confirmed)
        except (ContainmentError, OSError) as error:
            if not isinstance(action, DeleteFile):
                self._give_up(action.name)
                self._note_fault(action.name, error)
            return [explain_failure(action, error)]

    def _place(self, place: Callable[[], list[Outcome]]) -> list[Outcome]:
        """Put files into their places. Delete withheld ones that arrived under another name."""
        outcomes = place()
        while self._placing.faults:
            self._note_fault(*self._placing.faults.pop())
        for outcome in [*outcomes]:
            if isinstance(outcome, Stored):
                self._reported.discard(outcome.name)
                if (moved := self._journal.find_withheld(outcome.sha1)) is not None:
                    outcomes += self._guard(DeleteFile(outcome.connection, moved), confirmed=True)
        return outcomes

    def _note_fault(self, name: str, fault: Fault) -> None:
        """Make room on a full disk. Remember a place that is taken, as the user may free it."""
        if is_full(fault):
            self._trash.empty()
        elif is_taken(fault):
            self._blocked.add(name)

    def _compare(self, action: CheckInbox) -> Checked:
        """Find out whether the server has to send something again.

        That is a file that is not as it was received, or one whose place was taken and is free now.
        """
        self._trash.expire()
        free = {name for name in self._blocked if self._placing.has_room(name)}
        self._blocked -= free
        changed = {name for name in self._inventory.find_changes() if not self._ignore.ignores(name)}
        new, self._reported = changed - self._reported, changed
        return Checked(action.connection, repair=bool(free or new))

    def _delete(self, action: DeleteFile, *, confirmed: bool) -> list[Outcome]:
        if self._ignore.ignores(action.name):
            return []
        if self._unfinished.name == action.name:
            self._unfinished.discard()
        return self._deletions.delete(action, confirmed=confirmed)

    # ---- the unfinished file

    def _write(self, action: WriteChunk) -> list[Outcome]:
        if action.offset == 0:
            self._begin(action.name)
        if self._unfinished.name == action.name:
            self._unfinished.write(action.offset, action.chunk)
        return []

    def _begin(self, name: str) -> None:
        """Begin a file. Refuses an impossible place before any content is written."""
        self._unfinished.discard()
        self._spoiled = name if self._ignore.ignores(name) else None
        if self._spoiled:
            return
        with suppress(FileNotFoundError):
            require_file(*self._folders.parent_of(name))
        self._unfinished.begin(name)

    def _complete(self, action: CompleteFile) -> list[Outcome]:
        if is_folder(action.name) and not action.size:
            if self._ignore.ignores(action.name):
                return []
            self._reported.discard(action.name)
            return [self._placing.make_folder(action)]
        if action.size == 0:
            self._begin(action.name)
        if self._spoiled == action.name:
            return []
        if self._unfinished.name != action.name or self._unfinished.size != action.size:
            return self._spoil(action, "was not received whole")
        sha1 = self._unfinished.sha1 if self._check or action.sha1 is None else action.sha1
        if action.sha1 not in (None, sha1):
            return self._spoil(action, f"has the SHA-1 {sha1} where {action.sha1} was announced")
        verified = self._check and action.sha1 is not None
        return self._placing.add(action, self._unfinished.finish(sha1, verified=verified))

    def _complete_renamed(self, action: CompleteRenamed) -> list[Outcome]:
        """Complete a file with content that the inbox has under a name that the server has withdrawn."""
        self._unfinished.discard()
        self._spoiled = None
        connection, name = action.connection, action.name
        if self._ignore.ignores(name):
            return []
        withheld = self._journal.find_withheld(action.sha1)
        file = None
        with suppress(ContainmentError, OSError):  # the server sends the file
            if withheld == name:
                if self._deletions.release(name):
                    return [Stored(connection, name, action.size, action.sha1, verified=self._check)]
            elif withheld is not None:
                file = self._deletions.adopt_withheld(withheld, self._unfinished.adopt)
        moved: list[Outcome] = [] if file is None or withheld is None else [Deleted(connection, withheld)]
        with suppress(OSError):
            file = file or self._deletions.adopt_deleted(action.sha1, self._unfinished.adopt)
        if file is None:
            return [ContentLost(connection, name)]
        complete = CompleteFile(connection, name, action.size, action.sha1, action.mode, action.mtime_ns)
        return [*moved, *self._placing.add(complete, file)]

    def _spoil(self, action: CompleteFile, reason: str) -> list[Outcome]:
        self._give_up(action.name)
        return [Failed(action.connection, action.name, reason, again=True)]

    def _give_up(self, name: str) -> None:
        """Give up a file. Its further chunks are ignored until it begins again."""
        self._unfinished.discard()
        self._spoiled = name
