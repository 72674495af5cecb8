"""File access that cannot leave a folder, whatever the names and symbolic links in it say.

A virtual name is walked one component at a time from a descriptor of the root folder: each step opens the next
component relative to the last with O_NOFOLLOW, so no path is ever resolved twice and a symbolic link is met as
what it is, and refused. A check followed by a use of the same path could be tricked in between; this cannot.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specwire.runtime.filemq.names import (
    LONGEST_NAME_OCTETS,
    MAX_NAME_OCTETS,
    RESERVED,
    fault_in_name,
    split_name,
)

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # NONBLOCK: a FIFO must not hang us


class ContainmentError(Exception):
    """A name leads through a symbolic link, or through or to something that is not what it must be."""


def open_root(folder: Path) -> int:
    """Return a descriptor of the root itself, which may be reached by symbolic links; raises OSError."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def parent_of(root: int, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder of `name` below `root`; yields its descriptor and the last component.

    Args:
        create: make folders that are missing.

    Raises:
        ContainmentError: the name is faulty, or a component is a symbolic link or no folder.
        FileNotFoundError: a component is missing.
    """
    fault = fault_in_name(
        name, LONGEST_NAME_OCTETS
    )  # '..' is a folder like any other to the system: it must not get there
    if fault is not None:
        raise ContainmentError(fault)
    *folders, leaf = split_name(name)
    if not folders:
        yield root, leaf
        return
    descriptor = open_folder(root, folders, create=create)
    try:
        yield descriptor, leaf
    finally:
        os.close(descriptor)


def open_folder(root: int, components: list[str], *, create: bool = False) -> int:
    """Return a descriptor of a folder below `root`; `components` are free of '..'. Raises as `parent_of` does."""
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
        with suppress(FileExistsError):  # made by somebody else meanwhile: the next open tells what it is
            os.mkdir(component, dir_fd=folder)
        return _open_step(folder, component, create=False)
    except OSError as error:
        # Linux says ENOTDIR for a symbolic link here, other systems ELOOP.
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise ContainmentError(
                f"leads through '{component}', which is {_kind(folder, component)}"
            ) from None
        raise


def stat_leaf(folder: int, leaf: str) -> os.stat_result | None:
    """Return the state of `leaf` itself, not of what it links to; None where there is none."""
    try:
        return os.stat(leaf, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def require_file(folder: int, leaf: str) -> os.stat_result | None:
    """Return the state of the regular file `leaf`, None where there is none; raises ContainmentError."""
    state = stat_leaf(folder, leaf)
    if state is not None and not stat.S_ISREG(state.st_mode):
        raise ContainmentError(f"is {_kind(folder, leaf)} here")
    return state


def open_file(root: int, name: str) -> int:
    """Return a descriptor to read the regular file `name`; raises as `parent_of` does."""
    with parent_of(root, name) as (folder, leaf):
        require_file(folder, leaf)
        descriptor = os.open(leaf, FILE_FLAGS, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ContainmentError("is not a regular file any more")
    return descriptor


def walk_files(
    folder: int, prefix: str, longest_octets: int = MAX_NAME_OCTETS
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield virtual name and state of everything below the open `folder` but folders, in order of name.

    What is no regular file is yielded as what it is, nothing is followed. A folder that is called `RESERVED`, or whose
    own name is already too long for any file in it, is not entered, and yielded itself.

    Args:
        prefix: virtual name of `folder` with a slash at its end.
        longest_octets: what the name of a file may have.
    """
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            name = prefix + entry.name
            state = stat_leaf(folder, entry.name)
            if state is None:
                continue
            if not stat.S_ISDIR(state.st_mode) or entry.name == RESERVED:
                yield name, state
            else:
                yield from _walk_folder(folder, entry.name, name, state, longest_octets)


def _walk_folder(
    parent: int, leaf: str, name: str, state: os.stat_result, longest_octets: int
) -> Iterator[tuple[str, os.stat_result]]:
    if len(os.fsencode(name)) >= longest_octets:
        yield name, state
        return
    try:
        descriptor = os.open(leaf, FOLDER_FLAGS, dir_fd=parent)
    except OSError:
        return  # gone, swapped or forbidden meanwhile: nothing to list
    try:
        yield from walk_files(descriptor, f"{name}/", longest_octets)
    finally:
        os.close(descriptor)


def kind_of(state: os.stat_result) -> str:
    """Return in words what something that is no regular file is."""
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"))
    return next((words for is_kind, words in kinds if is_kind(state.st_mode)), "a device or socket")


def _kind(folder: int, leaf: str) -> str:
    state = stat_leaf(folder, leaf)
    if state is None:
        return "gone"
    return "not a folder" if stat.S_ISREG(state.st_mode) else kind_of(state)
