"""Inventory of an inbox: its files and their digests, read only where the journal lacks them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from specwire.runtime.containment import ContainmentError
from specwire.runtime.filemq.digests import UnstableError, digest_file
from specwire.runtime.filemq.disk import (
    Answer,
    Present,
    Unknown,
    look_at,
    open_file,
    parent_of,
    trouble_in,
    walk,
)
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, covers, fault_in_name, is_below
from specwire.runtime.filemq.trash import is_conflict_copy


class Inventory:
    """The files of one inbox.

    Args:
        root: descriptor of the inbox.
    """

    def __init__(self, root: int, journal: Journal) -> None:
        self._root, self._journal = root, journal
        self._edited: dict[str, Record] = {}

    def take(self, path: str) -> dict[str, str]:
        """Return the digests of the files under `path` by name; unreadable ones as received."""
        held: dict[str, str] = {}
        unknown: dict[str, str] = {}
        for answer in self._look_under(path):
            match answer:
                case Present(name, state) if _is_file(name, state):
                    record = self._find(name, state)
                    if record is not None and (record.received is not False or not is_conflict_copy(name)):
                        held[name] = record.sha1
                case Unknown(name, reason):
                    unknown[name] = reason
        if unknown:
            received = self._journal.received()
            held |= {n: record.sha1 for n, record in received if covers(path, n) and is_below(n, unknown)}
        return held

    def find_changes(self) -> set[str]:
        """Return the names of files that were received and are not as they were received."""
        unknown: dict[str, str] = {}
        there: dict[str, os.stat_result] = {}
        for answer in walk(self._root, "/", LONGEST_NAME_OCTETS):
            match answer:
                case Present(name, state):
                    there[name] = state
                case Unknown(name, reason):
                    unknown[name] = reason
        return {
            name
            for name, record in [*self._journal.received()]
            if not is_below(name, unknown) and not self._is_as_received(name, record, there.get(name))
        }

    def _is_as_received(self, name: str, record: Record, state: os.stat_result | None) -> bool:
        if state is None or not stat.S_ISREG(state.st_mode):
            return False
        found = self._find(name, state)
        return found is None or found.sha1 == record.sha1

    def _look_under(self, path: str) -> Iterator[Answer]:
        if path == "/":
            yield from walk(self._root, "/", LONGEST_NAME_OCTETS)
            return
        try:
            with parent_of(self._root, path) as (folder, leaf):
                yield from look_at(folder, leaf, path, LONGEST_NAME_OCTETS)
        except (OSError, ContainmentError) as fault:
            if (trouble := trouble_in(fault)) is not None:
                yield Unknown(path, trouble)

    def _find(self, name: str, state: os.stat_result) -> Record | None:
        """Return what a file holds now; reads it where its state is not known."""
        if (known := self._journal.find(name, state)) is not None:
            return known
        received = self._journal.find(name)
        edited = self._edited.get(name)
        if edited is not None and edited.signature[:3] == (state.st_size, state.st_mtime_ns, state.st_ino):
            return edited
        try:
            descriptor = open_file(self._root, name)
            try:
                digest = digest_file(descriptor)
            finally:
                os.close(descriptor)
        except (OSError, ContainmentError, UnstableError):
            return received  # it cannot be compared now: it counts as it was received
        record = Record(digest.sha1, digest.signature, received is not None and received.received)
        if digest.fresh:
            return record
        if received is None or received.received is False or received.sha1 == digest.sha1:
            with suppress(OSError):  # no room for the note: the file is read again next time
                self._journal.put(name, record)
        else:  # the journal keeps what the server sent, so that the change is known as one
            self._edited[name] = record
        return record


def _is_file(name: str, state: os.stat_result) -> bool:
    return stat.S_ISREG(state.st_mode) and fault_in_name(name, LONGEST_NAME_OCTETS) is None
