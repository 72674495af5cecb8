"""What the disk says of published and received files: the one module that gives an errno its
meaning.

The answers are values. `Present` is a file or folder with its state. `Unknown` is a place of which
the disk says nothing: it cannot be read now, and what was known of it stays the best knowledge. A
name that no answer covers is gone: ENOENT below a folder that could be opened, or something else in
its place. `Mount` is a folder on another device than its parent. `policy` decides what follows from
the answers.

Names are walked one component at a time through no link, as `specwire.runtime.containment` does it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from specwire.runtime.containment import FOLDER_FLAGS, ContainmentError, open_folder, open_leaf, open_root
from specwire.runtime.filemq.names import (
    LONGEST_NAME_OCTETS,
    MAX_NAME_OCTETS,
    RESERVED,
    fault_in_name,
    split_name,
)

Fault = ContainmentError | OSError

LASTING = {errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ, errno.EFBIG, errno.ENOTSUP}
"""Errors that the same file causes again. Any other may pass: a full disk, a permission, a missing folder."""

MAX_MARKS = 19
"""So many marks fit into one string of FILEMQ v2."""

FULL = {errno.ENOSPC, errno.EDQUOT}


class Present(NamedTuple):
    """Something is there, in this state."""

    name: str
    state: os.stat_result


class Unknown(NamedTuple):
    """The disk does not say what is at `name` or below it."""

    name: str
    reason: str


class Mount(NamedTuple):
    """The folder `name` lies on another device than its parent."""

    name: str
    device: str


Answer = Present | Unknown | Mount


def trouble_in(fault: Fault) -> str | None:
    """Return why the disk does not say what is there, or None where it says that no such file is."""
    if isinstance(fault, ContainmentError | FileNotFoundError):
        return None
    return fault.strerror or str(fault)


def may_pass(fault: Fault) -> bool:
    """Tell whether the same work may succeed later, without a change of its name."""
    return isinstance(fault, OSError) and fault.errno not in LASTING


def is_full(fault: Fault) -> bool:
    """Tell whether there was no room on the disk."""
    return isinstance(fault, OSError) and fault.errno in FULL


def is_taken(fault: Fault) -> bool:
    """Tell whether something else is in the place of a file, or of one of its folders."""
    return isinstance(fault, ContainmentError)


def device_of(descriptor: int) -> str:
    """Return the identity of an open folder's file system, which most keep across restarts."""
    return str(os.fstatvfs(descriptor).f_fsid or os.fstat(descriptor).st_dev)


def mark_of(state: os.stat_result) -> str:
    """Return what identifies a folder of this machine until the next boot, and says nothing else of it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:  # not mounted: marks of other machines may be equal to this one's, with the same numbers
        boot = b""
    identity = b"%b %d %d" % (boot, state.st_dev, state.st_ino)
    return hashlib.blake2b(identity, digest_size=6).hexdigest()


def marks_above(folder: Path) -> str:
    """Return the marks of a folder and the nearest of those that it is in, as far as they exist."""
    marks = []
    for place in (folder.resolve(), *folder.resolve().parents):
        with suppress(OSError):  # it is missing, or not ours to see
            marks.append(mark_of(place.stat()))
    return ",".join(marks[:MAX_MARKS])


class Folders:
    """Way to the folders of one tree: the last one stays open for files that come one after the other.

    That is right as long as nobody removes or moves it: forget it at the end of each batch, and
    before a deletion. `root` is the descriptor of the tree. Leaving the block forgets the folder.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self._path = ""
        self._descriptor = -1

    def parent_of(self, name: str, *, create: bool = False) -> tuple[int, str]:
        """Return the descriptor of the folder of `name`, valid until the next call, and the last component.

        Args:
            create: make folders that are missing.

        Raises:
            ContainmentError: the name is faulty, or a component is a symbolic link or no folder.
            OSError: a component is missing (FileNotFoundError) or cannot be opened.
        """
        fault = fault_in_name(name, LONGEST_NAME_OCTETS)  # '..' is a folder like any other to the system
        if fault is not None:
            raise ContainmentError(fault)
        path, _, leaf = name.rpartition("/")
        if not path:
            return self.root, leaf
        if path != self._path:
            self.forget()
            self._descriptor = open_folder(self.root, split_name(path), create=create)
            self._path = path
        return self._descriptor, leaf

    def forget(self) -> None:
        """Walk again for the next file."""
        if self._path:
            os.close(self._descriptor)
            self._path = ""


@contextmanager
def folders_below(root: int) -> Iterator[Folders]:
    """Yield the folders of a tree, and forget them at the end."""
    folders = Folders(root)
    try:
        yield folders
    finally:
        folders.forget()


@contextmanager
def parent_of(root: int, name: str) -> Iterator[tuple[int, str]]:
    """Open the folder of `name` for the block; see `Folders.parent_of`."""
    with folders_below(root) as folders:
        yield folders.parent_of(name)


def open_file(root: int, name: str) -> int:
    """Return a descriptor to read the regular file `name`; raises as `Folders.parent_of` does."""
    with parent_of(root, name) as (folder, leaf):
        return open_leaf(folder, leaf)


def walk(folder: int, prefix: str, longest_octets: int = MAX_NAME_OCTETS) -> Iterator[Answer]:
    """Yield an answer for everything below the open `folder` but ordinary folders, in order of name.

    Nothing is followed. A folder that is called `RESERVED`, or whose own name is already too long
    for any file in it, is not entered, and yielded itself.

    Args:
        prefix: virtual name of `folder` with a slash at its end.
        longest_octets: how long the name of a file may be.
    """
    try:
        with os.scandir(folder) as listing:
            leaves = sorted(entry.name for entry in listing)
        device = os.fstat(folder).st_dev
    except OSError as error:
        yield Unknown(prefix[:-1] or "/", f"cannot be read: {trouble_in(error)}")
        return
    for leaf in leaves:
        yield from look_at(folder, leaf, prefix + leaf, longest_octets, device=device)


def look_at(
    folder: int, leaf: str, name: str, longest_octets: int = MAX_NAME_OCTETS, *, device: int | None = None
) -> Iterator[Answer]:
    """Yield the answers for `leaf` in an open folder of this `device`, and for everything below it."""
    try:
        state = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(state.st_mode) or leaf == RESERVED or len(os.fsencode(name)) >= longest_octets:
            yield Present(name, state)
            return
        inner = os.open(leaf, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        # ELOOP and ENOTDIR: something else came into its place meanwhile.
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            yield Unknown(name, f"cannot be read: {trouble_in(error)}")
        return
    try:
        if device is not None and state.st_dev != device:
            yield Mount(name, device_of(inner))
        yield from walk(inner, f"{name}/", longest_octets)
    except OSError as error:
        yield Unknown(name, f"cannot be read: {trouble_in(error)}")
    finally:
        os.close(inner)


class Root:
    """Folder of a publication: opened once, and looked for again, because the path may come to mean another.

    A disk is unmounted, a folder is renamed or deleted, and perhaps made again. The open descriptor
    still means the old folder, where nothing changes any more.

    Attributes:
        descriptor: its descriptor; the number is the same from `open` to `close`, whatever folder
            it means.
        device: identity of its file system, as of the last `find`.
        replaced: how often another folder was found in place of the one before.
    """

    def __init__(self) -> None:
        self.descriptor = -1
        self.device = ""
        self.replaced = 0
        self._path = Path()

    def open(self, path: Path) -> None:
        """Open the folder; raises OSError."""
        self.descriptor, self._path = open_root(path), path

    def close(self) -> None:
        """Close it. May be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def find(self, *, may_be_empty: bool) -> str | None:
        """Open the folder that the path means now; return what is wrong with it, None where nothing is.

        Args:
            may_be_empty: another folder counts although nothing is in it, as in a place to mount a
                disk at.
        """
        try:
            found = open_root(self._path)
        except OSError as error:
            return f"cannot be opened ({error.strerror})"
        try:
            # The old folder's number is not given to a new one while it is open here.
            is_same = os.path.samestat(os.fstat(found), os.fstat(self.descriptor))
            device = device_of(found)
            if is_same:
                self.device = device
                return None
            if not may_be_empty and not os.listdir(found):
                return "is another folder now, with nothing in it"
            os.dup2(found, self.descriptor, inheritable=False)  # at once: threads are reading by this number
            self.device = device
            self.replaced += 1
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        else:
            return None
        finally:
            os.close(found)
