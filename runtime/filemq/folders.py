"""The way to the folders of one inbox, walked once for files that come one after the other into the same.

A folder is found as `containment` finds it, step by step and through no link, and stays open until a file for
another one comes. That is only right for as long as nobody removes or moves the folder: so whoever
uses this forgets it at the end of each batch of work, and before a deletion.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from specwire.runtime.containment import ContainmentError, open_folder
from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, fault_in_name, split_name


class Folders:
    """The folder that was walked to last; `root` is the inbox's descriptor. Leaving the block forgets it."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._path = ""
        self._descriptor = -1

    def parent_of(self, name: str, *, create: bool = False) -> tuple[int, str]:
        """Return the descriptor of the folder of `name`, good until the next call, and the last component.

        Args:
            create: make folders that are missing.

        Raises:
            ContainmentError: the name is faulty, or a component is a symbolic link or no folder.
            FileNotFoundError: a component is missing.
        """
        fault = fault_in_name(name, LONGEST_NAME_OCTETS)
        if fault is not None:
            raise ContainmentError(fault)
        path, _, leaf = name.rpartition("/")
        if not path:
            return self._root, leaf
        if path != self._path:
            self.forget()
            self._descriptor = open_folder(self._root, split_name(path), create=create)
            self._path = path
        return self._descriptor, leaf

    def forget(self) -> None:
        """Walk again for the next file."""
        if self._path:
            os.close(self._descriptor)
            self._path = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget()
