"""Files that an update or a deletion takes out of an inbox: conflict copies, and a trash.

A file that is not what the server sent last was changed by somebody here. It stays beside its place
under another name (`conflict_name`), as an ordinary file of the user. Every other file goes to
``.specwire-inbox/trash`` on the same file system, where the last version of each name stays until
the time to keep it has passed, or the disk is full. It lies there under its virtual name with
``%2F`` for each further slash: one flat folder, so that a file and a folder of the same name are
never in each other's way.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress

from specwire.runtime.containment import open_folder, open_leaf, stat_leaf
from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.digests import UnstableError, digest_file, sign
from specwire.runtime.filemq.disk import FULL
from specwire.runtime.filemq.journal import Journal
from specwire.runtime.filemq.names import TRASH

KEPT_BY_0_1 = "kept"
MAX_LEAF_OCTETS = 255
"""What file systems allow for one component of a path."""

_CONFLICT = re.compile(r"\.conflict-\d{8}-\d{6}(-\d+)?(\.[^./]*)?$")


class Trash:
    """Takes files out of their places in one inbox.

    Args:
        own: descriptor of the inbox's own folder.
        journal: what was received.
        keep_s: how long a file stays in the trash; 0: there is none.
    """

    def __init__(self, own: int, journal: Journal, keep_s: float) -> None:
        self._own, self._journal, self._keep_s = own, journal, keep_s
        self._folder = -1
        self._copied: dict[str, tuple[Signature, str]] = {}
        with suppress(OSError):  # there is none, or there is a trash already: then it stays as it is
            os.rename(KEPT_BY_0_1, TRASH, src_dir_fd=own, dst_dir_fd=own)
        with suppress(FileNotFoundError):  # there is none yet
            self._folder = open_folder(own, [TRASH])
        self.expire()

    def close(self) -> None:
        """Close the trash."""
        if self._folder >= 0:
            os.close(self._folder)

    def save(self, folder: int, leaf: str, name: str, *, sha1: str) -> str:
        """Keep the file `leaf`, which a version with this digest will replace; raises OSError.

        Returns:
            the last component of its conflict copy, empty where there is none.
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
        """Take the file `leaf` out of an open folder; returns what `save` does; raises OSError."""
        if self._find_edit(folder, leaf, name, state) is not None:
            copy = free_name(folder, leaf)
            os.rename(leaf, copy, src_dir_fd=folder, dst_dir_fd=folder)
            return copy
        try:
            if self._keep_s:
                os.rename(leaf, flat_name(name), src_dir_fd=folder, dst_dir_fd=self._open())
                return ""
        except OSError as error:
            if error.errno not in FULL:  # a full disk has no room for the trash: the deletion makes some
                raise
        os.unlink(leaf, dir_fd=folder)
        return ""

    def restore(self, folder: int, leaf: str, name: str) -> bool:
        """Put a file back into its place; False where it is not in the trash, or its place is taken."""
        if self._folder < 0 or stat_leaf(folder, leaf) is not None:
            return False
        try:
            os.rename(flat_name(name), leaf, src_dir_fd=self._folder, dst_dir_fd=folder)
        except OSError:  # nothing is lost: it stays in the trash, if it is there
            return False
        return True

    def empty(self) -> None:
        """Remove everything in the trash."""
        self._expire(before=None)

    def expire(self) -> None:
        """Remove what has been in the trash for long enough."""
        self._expire(before=time.time() - self._keep_s)

    def _expire(self, *, before: float | None) -> None:
        if self._folder < 0:
            return
        with suppress(OSError), os.scandir(self._folder) as entries:  # else at the next time
            # A rename sets the time of the last change of state, on every file system we know.
            for entry in [*entries]:
                if before is None or entry.stat(follow_symlinks=False).st_ctime < before:
                    self._drop(entry.name)
        with suppress(OSError):  # not empty
            os.rmdir(TRASH, dir_fd=self._own)
            os.close(self._folder)
            self._folder = -1

    def _open(self) -> int:
        if self._folder >= 0 and not os.fstat(self._folder).st_nlink:
            os.close(self._folder)  # somebody has removed it
            self._folder = -1
        if self._folder < 0:
            self._folder = open_folder(self._own, [TRASH], create=True)
        return self._folder

    def _drop(self, leaf: str) -> None:
        if self._folder >= 0:
            with suppress(OSError):  # there is none, or it stays until it can be removed
                os.unlink(leaf, dir_fd=self._folder)

    def _find_edit(self, folder: int, leaf: str, name: str, state: os.stat_result) -> str | None:
        """Return the digest of a file that was changed here, empty if unknown; None for one that was not."""
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
        except (OSError, UnstableError):  # it cannot be compared: it counts as changed here, so it is kept
            return ""
        return None if record is not None and received and record.sha1 == sha1 else sha1

    def _copy_conflict(self, folder: int, leaf: str, name: str, signature: Signature) -> str:
        made, copy = self._copied.get(name, (None, ""))
        if made != signature:  # else the copy was made for a replacement that failed
            copy = free_name(folder, leaf)
            _link(folder, leaf, folder, copy)
            self._copied[name] = signature, copy
        return copy


def _link(folder: int, leaf: str, target: int, name: str) -> None:
    """Give a file a second name, so that its place is never empty; or move it, where links are impossible."""
    try:
        os.link(leaf, name, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
    except OSError as error:
        if error.errno in FULL:
            raise
        os.rename(leaf, name, src_dir_fd=folder, dst_dir_fd=target)


def is_conflict_copy(name: str) -> bool:
    """Tell whether a file is called as a conflict copy is."""
    return _CONFLICT.search(name) is not None


def conflict_name(leaf: str, now: time.struct_time, number: int = 0) -> str:
    """Return ``name.conflict-YYYYmmdd-HHMMSS.ext`` for `leaf`, cut to what file systems allow."""
    stem, dot, extension = leaf.rpartition(".")
    if not stem or len(extension) > 16:
        stem, dot, extension = leaf, "", ""
    mark = f".conflict-{time.strftime('%Y%m%d-%H%M%S', now)}{f'-{number}' if number else ''}"
    room = MAX_LEAF_OCTETS - len(f"{mark}{dot}{extension}".encode())
    return f"{stem.encode()[:room].decode(errors='ignore')}{mark}{dot}{extension}"


def free_name(folder: int, leaf: str) -> str:
    """Return a name for a conflict copy that nothing in the folder has."""
    now, number = time.localtime(), 0
    while True:
        name = conflict_name(leaf, now, number)
        if stat_leaf(folder, name) is None:
            return name
        number += 1


def flat_name(name: str) -> str:
    """Return the one component under which the file with this virtual name lies in the trash."""
    flat = name[1:].replace("%", "%25").replace("/", "%2F")
    octets = flat.encode()
    if len(octets) <= MAX_LEAF_OCTETS:
        return flat
    digest = hashlib.sha1(octets, usedforsecurity=False).hexdigest()
    return f"{digest}-{octets[-(MAX_LEAF_OCTETS - 41) :].decode(errors='ignore')}"
