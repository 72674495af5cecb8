"""Files that an update or a deletion removes from an inbox: conflict copies, and a trash.

A file that is not what the server sent last was changed by the user. It stays in its folder under
another name (`conflict_name`), as an ordinary file of the user. Every other file goes to
``.specwire-inbox/trash`` on the same file system. The last version of each name stays there until
its time has passed or the disk is full. The trash is one flat folder (`flat_name`), so that a file
and a folder of the same name do not collide.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from specwire.runtime.containment import open_folder, open_leaf, stat_leaf
from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.disk import FULL
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.names import TRASH, conflict_name, flat_name
from specwire.runtime.filemq.reading import UnstableError, digest_file, sign
from specwire.runtime.filemq.unfinished import Adopt, CompletedFile

TRASH_OF_0_1 = "kept"


class Trash:
    """Trash of one inbox.

    Args:
        own: descriptor of the inbox's own folder.
        keep_s: how long a file stays in the trash; 0: there is no trash.
    """

    def __init__(self, own: int, journal: Journal, keep_s: float) -> None:
        self._own, self._journal, self._keep_s = own, journal, keep_s
        self._folder = -1
        self._copied: dict[str, tuple[Signature, str]] = {}
        with suppress(OSError):  # it does not exist, or a new trash exists too
            os.rename(TRASH_OF_0_1, TRASH, src_dir_fd=own, dst_dir_fd=own)
        with suppress(FileNotFoundError):  # there is none yet
            self._folder = open_folder(own, [TRASH])
        self.expire()

    def close(self) -> None:
        """Close the trash."""
        if self._folder >= 0:
            os.close(self._folder)

    def save(self, folder: int, leaf: str, name: str, *, sha1: str) -> str:
        """Save the file `leaf`, which a version with this digest will replace; raises OSError.

        Returns:
            the last component of its conflict copy, "" if there is none.
        """
        state = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        found = self._find_edit(folder, leaf, name, state)
        if found == sha1:
            return ""
        if found is not None:
            return self._copy_conflict(folder, leaf, name, sign(state))
        if self._keep_s:
            self._drop(flat_name(name))
            _link(folder, leaf, self._open(), flat_name(name))
        return ""

    def remove(self, folder: int, leaf: str, name: str, state: os.stat_result) -> str:
        """Remove the file `leaf` from an open folder; return the same as `save`; raises OSError."""
        if self._find_edit(folder, leaf, name, state) is not None:
            copy = free_name(folder, leaf)
            os.rename(leaf, copy, src_dir_fd=folder, dst_dir_fd=folder)
            return copy
        try:
            if self._keep_s:
                os.rename(leaf, flat_name(name), src_dir_fd=folder, dst_dir_fd=self._open())
                return ""
        except OSError as error:
            if error.errno not in FULL:  # if the disk is full, delete the file
                raise
        os.unlink(leaf, dir_fd=folder)
        return ""

    def restore(self, folder: int, leaf: str, name: str) -> bool:
        """Move a file back into its place; return False if it is not in the trash or its place is taken."""
        if self._folder < 0 or stat_leaf(folder, leaf) is not None:
            return False
        try:
            os.rename(flat_name(name), leaf, src_dir_fd=self._folder, dst_dir_fd=folder)
        except OSError:  # it stays in the trash, if it is there
            return False
        return True

    def hand_over(self, name: str, record: Record, adopt: Adopt) -> CompletedFile | None:
        """Hand over a file of the trash; None if it is not there as in `record`. Raises OSError."""
        return None if self._folder < 0 else adopt(self._folder, flat_name(name), record)

    def empty(self) -> None:
        """Delete everything in the trash."""
        self._expire(before=None)

    def expire(self) -> None:
        """Delete files that have been in the trash for `keep_s`."""
        self._expire(before=time.time() - self._keep_s)

    def _expire(self, *, before: float | None) -> None:
        if self._folder < 0:
            return
        with suppress(OSError), os.scandir(self._folder) as entries:  # tried again at the next time
            # A rename sets ctime on every file system that we know.
            for entry in [*entries]:
                if before is None or entry.stat(follow_symlinks=False).st_ctime < before:
                    self._drop(entry.name)
        with suppress(OSError):  # not empty
            os.rmdir(TRASH, dir_fd=self._own)
            os.close(self._folder)
            self._folder = -1

    def _open(self) -> int:
        if self._folder >= 0 and not os.fstat(self._folder).st_nlink:
            os.close(self._folder)  # the user has deleted it
            self._folder = -1
        if self._folder < 0:
            self._folder = open_folder(self._own, [TRASH], create=True)
        return self._folder

    def _drop(self, leaf: str) -> None:
        if self._folder >= 0:
            with suppress(OSError):  # it does not exist, or cannot be deleted now
                os.unlink(leaf, dir_fd=self._folder)

    def _find_edit(self, folder: int, leaf: str, name: str, state: os.stat_result) -> str | None:
        """Return the digest of a file that the user changed, "" if unknown; None if it is as received."""
        record = self._journal.find(name)
        received = record is not None and record.received is not False
        if record is not None and received and record.signature == sign(state):
            return None
        try:
            descriptor = open_leaf(folder, leaf)
            try:
                sha1 = digest_file(descriptor).sha1
            finally:
                os.close(descriptor)
        except (OSError, UnstableError):  # it counts as changed, so it is kept
            return ""
        return None if record is not None and received and record.sha1 == sha1 else sha1

    def _copy_conflict(self, folder: int, leaf: str, name: str, signature: Signature) -> str:
        made, copy = self._copied.get(name, (None, ""))
        if made != signature:  # otherwise the copy was made before a replacement that failed
            copy = free_name(folder, leaf)
            _link(folder, leaf, folder, copy)
            self._copied[name] = signature, copy
        return copy


def _link(folder: int, leaf: str, target: int, name: str) -> None:
    """Give a file a second name, so that its place is never empty. Move it if links are impossible."""
    try:
        os.link(leaf, name, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
    except OSError as error:
        if error.errno in FULL:
            raise
        os.rename(leaf, name, src_dir_fd=folder, dst_dir_fd=target)


def free_name(folder: int, leaf: str) -> str:
    """Return an unused name in the folder for a conflict copy of `leaf`."""
    now, number = time.localtime(), 0
    while True:
        name = conflict_name(leaf, now, number)
        if stat_leaf(folder, name) is None:
            return name
        number += 1
