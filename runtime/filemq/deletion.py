"""Deletions in an inbox: which are allowed, and how they are undone.

A file may be deleted only if it came from the same server (the journal knows) and is still a
regular file. It goes to the trash. When too many files would be deleted within a short time, those
of the last minutes are restored, and all are withheld until somebody confirms.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress

from specwire.runtime.containment import ContainmentError, require_file
from specwire.runtime.filemq.disk import folders_below, parent_of
from specwire.runtime.filemq.diskwork import Deleted, DeleteFile, Failed, Outcome, Restored
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.names import (
    LONGEST_NAME_OCTETS,
    covers,
    fault_in_entry,
    is_folder,
    split_name,
)
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.filemq.reading import sign
from specwire.runtime.filemq.trash import Trash
from specwire.runtime.filemq.unfinished import Adopt, CompletedFile

WITHHELD = (
    "is withdrawn by the server and kept: too many files would be deleted at once; "
    "start the subscriber with --accept-deletions to delete them"
)


class DeletionLimit:
    """Limit on how far deletions reduce the number of files within a window of time.

    Files that come and go do not count, only the difference to the largest number within the
    window. Once the limit is exceeded, no deletion is allowed as long as one is withheld.

    Attributes:
        withheld: deletions that were not allowed. The owner keeps it up to date.
    """

    def __init__(self, rules: InboxRules) -> None:
        self._rules = rules
        # Times and numbers of files; the numbers fall.
        self._peaks: deque[tuple[float, int]] = deque()
        self._recent: deque[tuple[float, str]] = deque(maxlen=max(rules.delete_files, rules.always))
        self._accepted_until = math.inf if rules.accept_deletions else -math.inf
        self._suspects, self._suspect_until = frozenset[str](), -math.inf
        self.withheld: Collection[str] = ()

    def accept(self) -> None:
        """Allow every deletion until none came for the length of the window."""
        self._accepted_until, self._suspects = math.inf, frozenset()

    def is_accepting(self, now: float) -> bool:
        """Return whether every deletion is allowed now."""
        return now <= self._accepted_until

    def suspect(self, names: Iterable[str], now: float) -> None:
        """Refuse these withheld deletions when the server repeats them within the window."""
        self._suspects, self._suspect_until = frozenset(names), now + self._rules.window_s

    def allows(self, name: str, held: int, now: float) -> bool:
        """Return whether one of `held` files may be deleted now, and count it."""
        if self.is_accepting(now):
            self._accepted_until = now + self._rules.window_s
            return True
        if self.withheld or (name in self._suspects and now < self._suspect_until):
            return False
        while self._peaks and now - self._peaks[0][0] >= self._rules.window_s:
            self._peaks.popleft()
        while self._peaks and self._peaks[-1][1] <= held:
            self._peaks.pop()
        self._peaks.append((now, held))
        peak = self._peaks[0][1]
        if peak - held >= self.most(peak):
            return False
        self._recent.append((now, name))
        return True

    def undo(self) -> list[str]:
        """Return the deletions since the largest number within the window, and forget them."""
        since = self._peaks[0][0] if self._peaks else math.inf
        names = [name for at, name in self._recent if at >= since]
        self._recent.clear()
        self._peaks.clear()
        return names

    def most(self, held: int) -> int:
        """Return how many of so many files may be deleted."""
        return max(self._rules.always, min(self._rules.delete_files, int(held * self._rules.delete_share)))


class Deletions:
    """Performs `DeleteFile` in one inbox. Call `attach` first, and again when the inbox is reopened."""

    def __init__(self, rules: InboxRules, clock: Callable[[], float]) -> None:
        self._rules, self._clock = rules, clock
        self._limit = DeletionLimit(rules)
        self._recent: dict[str, Record] = {}

    def attach(self, root: int, journal: Journal, trash: Trash) -> None:
        """Use the inbox with this descriptor from now on."""
        self._root, self._journal, self._trash = root, journal, trash
        self._limit.withheld = journal.withheld

    def delete(self, action: DeleteFile, *, confirmed: bool = False) -> list[Outcome]:
        """Delete a file, or withhold that; raises ContainmentError or OSError.

        Args:
            confirmed: the limit does not apply.
        """
        name = action.name
        if is_folder(name):
            return self._delete_folder(action)
        deleted: list[Outcome] = []
        with folders_below(self._root) as folders:
            try:
                folder, leaf = folders.parent_of(name)
                state = require_file(folder, leaf)
            except FileNotFoundError:  # one of its folders is gone
                state = None
            if state is not None:
                if (owner := self._journal.find_other_owner(name)) is not None:
                    raise ContainmentError(f"{owner}, and is kept")
                if not confirmed and not self._limit.allows(name, len(self._journal), self._clock()):
                    return [*self._restore(action), self._withhold(action.connection, name)]
                record = self._journal.find(name) or Record("", sign(state), True)
                copy = self._trash.remove(folder, leaf, name, state)
                self._note(name, record)
                deleted = [Deleted(action.connection, name, copy)]
        self._journal.remove(name)
        self._remove_empty_folders(split_name(name)[:-1])
        return deleted

    def _delete_folder(self, action: DeleteFile) -> list[Outcome]:
        """Delete a folder that the server sent. If it has files now, it stays."""
        if fault := fault_in_entry(action.name, LONGEST_NAME_OCTETS):
            raise ContainmentError(fault)
        if self._journal.find(action.name) is None:
            return []
        if (owner := self._journal.find_other_owner(action.name)) is not None:
            raise ContainmentError(f"{owner}, and is kept")
        self._journal.remove(action.name)
        is_removed = self._remove_empty_folders(split_name(action.name[:-1]))
        return [Deleted(action.connection, action.name)] if is_removed else []

    def adopt_withheld(self, name: str, adopt: Adopt) -> CompletedFile | None:
        """Move a file away whose deletion is withheld; None if it is not as it was received.

        Raises:
            ContainmentError, OSError: it cannot be read or moved.
        """
        record = self._journal.find(name)
        assert record is not None, "a withheld file has a record"
        with parent_of(self._root, name) as (folder, leaf):
            file = adopt(folder, leaf, record)
        if file is not None:
            with suppress(OSError):  # the disk is full: the record goes when the server repeats the deletion
                self._journal.remove(name)
            self._remove_empty_folders(split_name(name)[:-1])
        return file

    def release(self, name: str) -> bool:
        """Withhold a deletion no longer, because the server publishes the file again.

        Returns:
            whether the file is as it was received; otherwise nothing is changed.

        Raises:
            ContainmentError, OSError: it cannot be looked at, or the journal cannot be written.
        """
        record = self._journal.find(name)
        with parent_of(self._root, name) as (folder, leaf):
            state = require_file(folder, leaf)
        if record is None or state is None or sign(state) != record.signature:
            return False
        self._journal.forget_withheld([name])
        return True

    def adopt_deleted(self, sha1: str, adopt: Adopt) -> CompletedFile | None:
        """Take a file with this content from the trash, if it was deleted a moment ago; raises OSError."""
        name = next((name for name, record in self._recent.items() if record.sha1 == sha1), None)
        return None if name is None else self._trash.hand_over(name, self._recent.pop(name), adopt)

    def accept(self) -> list[str]:
        """Allow all deletions from now on; return the names of those that are withheld."""
        self._limit.accept()
        return [*self._journal.withheld]

    def forget_withheld(self, path: str) -> None:
        """Forget which deletions under `path` are withheld: the server repeats those that still apply."""
        names = [name for name in self._journal.withheld if covers(path, name)]
        if names and not self._limit.is_accepting(self._clock()):
            with suppress(OSError):  # the disk is full: they stay withheld until the server repeats them
                self._journal.forget_withheld(names)
                self._limit.suspect(names, self._clock())

    def _note(self, name: str, record: Record) -> None:
        self._recent.pop(name, None)
        self._recent[name] = record
        while len(self._recent) > max(self._rules.delete_files, self._rules.always):
            del self._recent[next(iter(self._recent))]

    def _withhold(self, connection: int, name: str) -> Failed:
        self._journal.withhold(name)
        return Failed(connection, name, WITHHELD, again=False)

    def _restore(self, action: DeleteFile) -> Iterator[Outcome]:
        """Undo the deletions of the last minutes. What cannot be restored stays in the trash."""
        recent, self._recent = self._recent, {}
        for name in self._limit.undo():
            if name not in recent:
                continue
            with suppress(OSError, ContainmentError), folders_below(self._root) as folders:
                folder, leaf = folders.parent_of(name, create=True)
                if self._trash.restore(folder, leaf, name):
                    self._journal.put(name, recent[name])
                    yield Restored(action.connection, name, recent[name].sha1)
                    yield self._withhold(action.connection, name)

    def _remove_empty_folders(self, folders: list[str]) -> bool:
        """Remove a folder, and those that contain it, if they are empty; return whether it is removed."""
        is_removed = False
        while folders:
            *parents, leaf = folders
            try:
                with parent_of(self._root, "/" + "/".join(folders)) as (parent, _):
                    os.rmdir(leaf, dir_fd=parent)
            except (OSError, ContainmentError):  # not empty, or no permission
                break
            folders, is_removed = parents, True
        return is_removed
