"""Answers of the disk about published and received files. Only this module interprets an errno.

The answers are values:

- `Present`: a file or folder, with its state.
- `Unknown`: a place that cannot be read now. The last known state remains the best knowledge.
- `Mount`: a folder on another device than its parent.
- No answer covers a name: the file is gone. Either its folder could be opened and the name does not
  exist (ENOENT), or something else has its place.

`policy` decides what follows from the answers. Links are never followed (`runtime.containment`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
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
"""Errors that the same file causes again. Others may pass: a full disk, a permission, a missing folder."""

MAX_MARKS = 19
"""Marks that fit into one string of FILEMQ v2."""

FULL = {errno.ENOSPC, errno.EDQUOT}


class Present(NamedTuple):
    """A file, folder, link or device exists, with this state."""

    name: str
    state: os.stat_result


class Unknown(NamedTuple):
    """It is not known what is at `name` or below it."""

    name: str
    reason: str


class Mount(NamedTuple):
    """The folder `name` is on another device than its parent."""

    name: str
    device: str


Answer = Present | Unknown | Mount


def trouble_in(fault: Fault) -> str | None:
    """Return why it is not known what is there, None if the fault means that there is no such file."""
    if isinstance(fault, ContainmentError | FileNotFoundError):
        return None
    return fault.strerror or str(fault)


def may_pass(fault: Fault) -> bool:
    """Return whether the same work may succeed later."""
    return isinstance(fault, OSError) and fault.errno not in LASTING


def is_full(fault: Fault) -> bool:
    """Return whether the disk is full."""
    return isinstance(fault, OSError) and fault.errno in FULL


def is_taken(fault: Fault) -> bool:
    """Return whether something else is in the place of a file, or of one of its folders."""
    return isinstance(fault, ContainmentError)


def device_of(descriptor: int) -> str:
    """Return the identity of an open folder's file system. Most keep it across restarts."""
    return str(os.fstatvfs(descriptor).f_fsid or os.fstat(descriptor).st_dev)


def mark_of(state: os.stat_result) -> str:
    """Return an opaque mark that identifies a folder of this machine until the next boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:  # not mounted: another machine may have a folder with the same mark
        boot = b""
    identity = b"%b %d %d" % (boot, state.st_dev, state.st_ino)
    return hashlib.blake2b(identity, digest_size=6).hexdigest()


def marks_above(folder: Path) -> str:
    """Return the marks of a folder and of the nearest folders that contain it."""
    marks = []
    for place in (folder.resolve(), *folder.resolve().parents):
        with suppress(OSError):  # it does not exist, or is not readable
            marks.append(mark_of(place.stat()))
    return ",".join(marks[:MAX_MARKS])


class Folders:
    """Folders of one tree by name. The last one stays open, as consecutive files often share it.

    That is correct as long as nobody removes or moves it: call `forget` at the end of each batch,
    and before a deletion.

    Args:
        root: descriptor of the tree.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self._path = ""
        self._descriptor = -1

    def parent_of(self, name: str, *, create: bool = False) -> tuple[int, str]:
        """Return the descriptor of the folder of `name`, and the last component of `name`.

        The descriptor is valid until the next call.

        Args:
            create: create folders that are missing.

        Raises:
            ContainmentError: the name is faulty, or a component is a symbolic link or not a folder.
            OSError: a component is missing (FileNotFoundError) or cannot be opened.
        """
        fault = fault_in_name(name, LONGEST_NAME_OCTETS)  # the system would follow '..'
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
        """Close the open folder; the next file is searched from the root."""
        if self._path:
            os.close(self._descriptor)
            self._path = ""


@contextmanager
def folders_below(root: int) -> Iterator[Folders]:
    """Yield the folders of a tree for the block."""
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


def enter_all(name: str) -> bool:
    """Skip no folder."""
    return False


def walk(
    folder: int,
    prefix: str,
    longest_octets: int = MAX_NAME_OCTETS,
    *,
    skips: Callable[[str], bool] = enter_all,
) -> Iterator[Answer]:
    """Yield an answer for everything below the open `folder`, except ordinary folders, sorted by name.

    An empty folder, also `folder` itself, is yielded with a slash at the end of its name.
    A folder is yielded itself, and not entered, if it is called `RESERVED` or if every file in it
    would have too long a name.

    Args:
        prefix: virtual name of `folder` with a slash at its end.
        longest_octets: longest name of a file.
        skips: returns whether the folder with this name is neither entered nor yielded.
    """
    try:
        with os.scandir(folder) as listing:
            leaves = sorted(entry.name for entry in listing)
        state = os.fstat(folder)
    except OSError as error:
        yield Unknown(prefix[:-1] or "/", f"cannot be read: {trouble_in(error)}")
        return
    if not leaves:
        yield Present(prefix, state)
    for leaf in leaves:
        yield from look_at(folder, leaf, prefix + leaf, longest_octets, device=state.st_dev, skips=skips)


def look_at(
    folder: int,
    leaf: str,
    name: str,
    longest_octets: int = MAX_NAME_OCTETS,
    *,
    device: int | None = None,
    skips: Callable[[str], bool] = enter_all,
) -> Iterator[Answer]:
    """Yield the answers for `leaf` in an open folder on this `device`, and for everything below it."""
    try:
        state = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        is_folder = stat.S_ISDIR(state.st_mode)
        if is_folder and skips(name):
            return
        if not is_folder or leaf == RESERVED or len(os.fsencode(name)) >= longest_octets:
            yield Present(name, state)
            return
        inner = os.open(leaf, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        # ELOOP and ENOTDIR: something else has its place by now.
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            yield Unknown(name, f"cannot be read: {trouble_in(error)}")
        return
    try:
        if device is not None and state.st_dev != device:
            yield Mount(name, device_of(inner))
        yield from walk(inner, f"{name}/", longest_octets, skips=skips)
    except OSError as error:
        yield Unknown(name, f"cannot be read: {trouble_in(error)}")
    finally:
        os.close(inner)


class Root:
    """Root folder of a publication. `find` looks whether its path leads to another folder now.

    A disk is unmounted, or a folder is renamed, deleted and created again. The open descriptor
    still refers to the old folder, in which nothing changes any more.

    Attributes:
        descriptor: the same number from `open` to `close`, for whatever folder.
        device: identity of its file system at the last `find`.
        replaced: how often another folder was found.
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
        """Open the folder at the path; return what is wrong with it, or None.

        Args:
            may_be_empty: accept another folder although it is empty, as a mount point without its
                disk is.
        """
        try:
            found = open_root(self._path)
        except OSError as error:
            return f"cannot be opened ({error.strerror})"
        try:
            # A new folder cannot get the inode number of the old one while that is open here.
            is_same = os.path.samestat(os.fstat(found), os.fstat(self.descriptor))
            device = device_of(found)
            if is_same:
                self.device = device
                return None
            if not may_be_empty and not os.listdir(found):
                return "is another folder now, with nothing in it"
            os.dup2(found, self.descriptor, inheritable=False)  # atomic: other threads read by this number
            self.device = device
            self.replaced += 1
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        else:
            return None
        finally:
            os.close(found)
