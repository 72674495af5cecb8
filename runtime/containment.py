"""File access that cannot leave a folder, whatever names and symbolic links it contains.

A path is walked one component at a time from a descriptor of the root folder. Each step opens the
next component relative to the last with O_NOFOLLOW. So no path is resolved twice, and a symbolic
link is refused. A check followed by a use of the same path could be tricked in between; this cannot.

The caller must refuse components that are '..' or contain '/': the system would accept them.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: a FIFO must not hang us


class ContainmentError(Exception):
    """A name leads through a symbolic link, or something else is there than a folder or file."""


def open_root(folder: Path) -> int:
    """Return a descriptor of the root, which may be reached by symbolic links; raises OSError."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_folder(root: int, components: list[str], *, create: bool = False) -> int:
    """Return a descriptor of a folder below `root`.

    Args:
        create: create folders that are missing.

    Raises:
        ContainmentError: a component is a symbolic link or not a folder.
        FileNotFoundError: a component is missing.
    """
    descriptor = os.dup(root)
    for component in components:
        try:
            inner = _open_step(descriptor, component, create)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _open_step(folder: int, component: str, create: bool) -> int:
    try:
        return os.open(component, FOLDER_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
        with suppress(FileExistsError):  # created by somebody else meanwhile: the next open shows what it is
            os.mkdir(component, dir_fd=folder)
        return _open_step(folder, component, create=False)
    except OSError as error:
        # Linux returns ENOTDIR for a symbolic link here, other systems ELOOP.
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise ContainmentError(
                f"leads through '{component}', which is {_kind(folder, component)}"
            ) from None
        raise


def stat_leaf(folder: int, leaf: str) -> os.stat_result | None:
    """Return the state of `leaf`, None if it does not exist. A link is not followed."""
    try:
        return os.stat(leaf, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def require_file(folder: int, leaf: str) -> os.stat_result | None:
    """Return the state of the regular file `leaf`, None if it does not exist; raises ContainmentError."""
    state = stat_leaf(folder, leaf)
    if state is not None and not stat.S_ISREG(state.st_mode):
        raise ContainmentError(f"is {_kind(folder, leaf)} here")
    return state


def open_leaf(folder: int, leaf: str) -> int:
    """Return a descriptor to read the regular file `leaf`; raises ContainmentError or OSError."""
    require_file(folder, leaf)
    descriptor = os.open(leaf, FILE_FLAGS, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ContainmentError("is not a regular file any more")
    return descriptor


def kind_of(state: os.stat_result) -> str:
    """Return in words what this is, if it is not a regular file."""
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"))
    return next((words for is_kind, words in kinds if is_kind(state.st_mode)), "a device or socket")


def _kind(folder: int, leaf: str) -> str:
    state = stat_leaf(folder, leaf)
    if state is None:
        return "gone"
    return "not a folder" if stat.S_ISREG(state.st_mode) else kind_of(state)
