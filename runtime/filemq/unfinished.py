"""Unfinished file of an inbox: written beside its place, and resumed after an interruption.

There is one at a time, because a server sends one file at a time. Complete files that are not in
their places yet are in the same folder. All have names such as ``unfinished-7``, which say nothing
of the file. A file that must survive has a note beside it, ``unfinished-7.name``, with its virtual
name as JSON: a note that a kill or a full disk truncated is not valid JSON, and a shorter name
could belong to another file. Small files have no note.

The next run continues with the file that has a note, and removes all others. It reads what an
earlier run wrote before it appends, so the digest is always that of the octets on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from specwire.runtime.filemq.diskwork import Unfinished
from specwire.runtime.filemq.journal import Record
from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, fault_in_name
from specwire.runtime.filemq.reading import BLOCK_OCTETS, new_sha1, sign

UNFINISHED = "unfinished"
NOTE = ".name"
MAX_NOTE_OCTETS = 8 * LONGEST_NAME_OCTETS
"""More than a name needs if each of its octets is escaped."""

OWNER = stat.S_IRUSR | stat.S_IWUSR

_LEAF = re.compile(UNFINISHED + "-([0-9]{1,15})")
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_decoder = msgspec.json.Decoder(str)


class CompletedFile(NamedTuple):
    """Complete file that is not in its place yet.

    Attributes:
        leaf: its name in the inbox's own folder.
        descriptor: open; the owner closes it.
        verified: the digest of its content was computed, and is the announced one.
    """

    leaf: str
    descriptor: int
    sha1: str
    verified: bool


Adopt = Callable[[int, str, Record], CompletedFile | None]
"""`UnfinishedFile.adopt`."""


class UnfinishedFile:
    """The one unfinished file, and its digest so far.

    Args:
        folder: descriptor of the inbox's own folder.
        digesting: update the digest with each chunk. Otherwise the file is read when the digest is
            requested.

    Attributes:
        name: virtual name of the file, None if there is none.
        size: octets written.
        kept: it survives when the inbox is closed or the process killed.
    """

    def __init__(self, folder: int, *, digesting: bool = True) -> None:
        self.name: str | None = None
        self.size = 0
        self.kept = False
        self._folder, self._digesting = folder, digesting
        self._number = 0
        self._descriptor = -1
        self._sha1: hashlib._Hash | None = None  # None if it does not include all octets
        self._noted: list[int] = []
        self._resume()

    @property
    def sha1(self) -> str:
        """Digest of what was written, in upper-case hexadecimal. May read the file; raises OSError."""
        return (self._sha1 or self._read_again()).hexdigest().upper()

    def begin(self, name: str) -> None:
        """Create an empty unfinished file; raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS
        self._number += 1
        self._descriptor = os.open(leaf_of(self._number), flags, 0o666, dir_fd=self._folder)
        self.name, self.size = name, 0
        self._sha1 = new_sha1() if self._digesting else None

    def write(self, offset: int, chunk: bytes) -> None:
        """Append a chunk; raises OSError, also if the disk took only a part of it."""
        if self._digesting and self._sha1 is None:
            self._read_again()
        if offset != self.size:
            raise OSError(errno.EINVAL, f"a chunk at offset {offset} follows {self.size} octets")
        write_octets(self._descriptor, chunk)
        if self._sha1 is not None:
            self._sha1.update(chunk)
        self.size += len(chunk)

    def keep(self, name: str) -> None:
        """Write the note of the file `name`, if the disk has room, so that the next run can continue."""
        if self.name == name and not self.kept:
            with suppress(OSError):
                write_note(self._folder, self._number, name)
                self.kept = True

    def kept_part(self) -> Unfinished | None:
        """Return the file that can be resumed; reads it if an earlier run wrote it."""
        if self.name is None or not self.kept:
            return None
        try:
            sha1 = self.sha1
        except OSError:
            self.discard()
            return None
        return Unfinished(self.name, self.size, sha1)

    def finish(self, sha1: str, *, verified: bool) -> CompletedFile:
        """Hand over the file, which has this digest. Call `forget_completed` when it is in its place."""
        completed = CompletedFile(leaf_of(self._number), self._descriptor, sha1, verified)
        if self.kept:
            self._noted.append(self._number)
        self._forget()
        return completed

    def adopt(self, folder: int, leaf: str, record: Record) -> CompletedFile | None:
        """Move the complete file `leaf` here from another folder; raises OSError.

        It stays there, and the result is None, if it is not as in `record`.
        """
        descriptor = os.open(leaf, os.O_RDONLY | _FLAGS, dir_fd=folder)
        try:
            if sign(os.fstat(descriptor)) == record.signature:
                own = leaf_of(self._number + 1)
                os.rename(leaf, own, src_dir_fd=folder, dst_dir_fd=self._folder)
                self._number += 1
                kept, descriptor = descriptor, -1
                return CompletedFile(own, kept, record.sha1, self._digesting)
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return None

    def forget_completed(self) -> None:
        """Remove the notes of files that were handed over."""
        while self._noted:
            remove_note(self._folder, self._noted.pop())

    def discard(self) -> None:
        """Remove the unfinished file, if there is one."""
        if self._descriptor < 0:
            return
        os.close(self._descriptor)
        with suppress(FileNotFoundError):
            os.unlink(leaf_of(self._number), dir_fd=self._folder)
        if self.kept:
            remove_note(self._folder, self._number)
        self._forget()

    def close(self) -> None:
        """Remove the unfinished file unless it is kept."""
        if self.kept:
            os.close(self._descriptor)
            self._forget()
        else:
            self.discard()

    def _forget(self) -> None:
        self._descriptor, self.name, self.kept, self._sha1 = -1, None, False, None

    def _resume(self) -> None:
        """Open the file that an earlier run has kept."""
        left = find_leftover(self._folder)
        if left is not None:
            flags = os.O_RDWR | os.O_APPEND | _FLAGS
            self._descriptor = os.open(leaf_of(left.number), flags, dir_fd=self._folder)
            self._number, self.name, self.size = left.number, left.name, left.size
            self.kept = True

    def _read_again(self) -> hashlib._Hash:
        """Compute the digest of the content on the disk, and set the size to its length."""
        sha1, offset = new_sha1(), 0
        while block := os.pread(self._descriptor, BLOCK_OCTETS, offset):
            sha1.update(block)
            offset += len(block)
        self.size = offset
        self._sha1 = sha1 if self._digesting else None
        return sha1


def write_octets(descriptor: int, octets: bytes) -> None:
    """Append all of `octets` to an open file; raises OSError, also if only a part was written."""
    view = memoryview(octets)
    while view:
        view = view[os.write(descriptor, view) :]


class Leftover(NamedTuple):
    """File that an earlier run left unfinished: its number, virtual name, and size in octets."""

    number: int
    name: str
    size: int


def leaf_of(number: int) -> str:
    """Return the name of an unfinished file in the inbox's own folder."""
    return f"{UNFINISHED}-{number}"


def write_note(folder: int, number: int, name: str) -> None:
    """Write the note of an unfinished file; raises OSError, and then there is none."""
    leaf, octets = leaf_of(number) + NOTE, msgspec.json.encode(name)
    descriptor = os.open(leaf, _FLAGS | os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=folder)
    try:
        if os.write(descriptor, octets) != len(octets):
            raise OSError("the note could be written only in part")
    except OSError:
        remove_note(folder, number)
        raise
    finally:
        os.close(descriptor)


def remove_note(folder: int, number: int) -> None:
    """Remove the note, if there is one."""
    with suppress(FileNotFoundError):
        os.unlink(leaf_of(number) + NOTE, dir_fd=folder)


def find_leftover(folder: int) -> Leftover | None:
    """Return the file that can be resumed, and remove all other unfinished files; raises OSError.

    The largest is kept: after a kill, a complete file and the next one may both be there.
    """
    leaves = [leaf for leaf in os.listdir(folder) if leaf.startswith(UNFINISHED)]
    found = [left for leaf in leaves if (left := _read_leftover(folder, leaf)) is not None]
    best = max(found, key=lambda left: left.size, default=None)
    keep = set() if best is None else {leaf_of(best.number), leaf_of(best.number) + NOTE}
    for leaf in leaves:
        if leaf not in keep:
            os.unlink(leaf, dir_fd=folder)
    return best


def _read_leftover(folder: int, leaf: str) -> Leftover | None:
    match = _LEAF.fullmatch(leaf)
    if match is None:
        return None
    try:
        state = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        descriptor = os.open(leaf + NOTE, _FLAGS | os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
        try:
            name = _decoder.decode(os.read(descriptor, MAX_NOTE_OCTETS))
        finally:
            os.close(descriptor)
    except (OSError, msgspec.MsgspecError):
        return None
    # A complete file may have got its mode, which may forbid to open it.
    is_usable = stat.S_ISREG(state.st_mode) and state.st_size > 0 and state.st_mode & OWNER == OWNER
    if not is_usable or fault_in_name(name, LONGEST_NAME_OCTETS):
        return None
    return Leftover(int(match[1]), name, state.st_size)
