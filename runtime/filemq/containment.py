"""Files by their virtual names: found below the root, or refused, as `specwire.runtime.containment` does it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from specwire.runtime.containment import FOLDER_FLAGS, ContainmentError, open_folder, open_leaf, stat_leaf
from specwire.runtime.filemq.names import (
    LONGEST_NAME_OCTETS,
    MAX_NAME_OCTETS,
    RESERVED,
    fault_in_name,
    split_name,
)


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


def open_file(root: int, name: str) -> int:
    """Return a descriptor to read the regular file `name`; raises as `parent_of` does."""
    with parent_of(root, name) as (folder, leaf):
        return open_leaf(folder, leaf)


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
