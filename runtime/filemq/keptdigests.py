"""The digests of one published folder, kept from one run to the next.

At the start all of them are loaded at once, and each waits for its file to be found. What is left after the whole
folder was looked at belongs to files that are gone. What was read or is gone is written in batches, at the end of a
look or after `BATCH_FILES` files or `BATCH_OCTETS` of content, so that a server that is killed while it reads its
folder for the first time goes on near there. A `fresh` digest is not kept: its file is to be read again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from specwire.runtime.filemq.digests import Digest

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

BATCH_FILES = 1000
BATCH_OCTETS = 1 << 30


class KeptDigests:
    """What is known of the files in `folder` from earlier runs, by their names in it; for use from one thread."""

    def __init__(self, store: DigestStore, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._waiting: dict[str, Digest] | None = None
        self._changes: dict[str, Digest | None] = {}
        self._read_octets = 0

    def find(self, name: str, state: os.stat_result) -> Digest | None:
        """Return the digest of a file that is found for the first time, None where it is to be read."""
        if self._waiting is None:
            self._waiting = self._store.load(self._folder)
        digest = self._waiting.pop(name, None)
        return digest if digest is not None and digest.still_holds(state) else None

    def put(self, name: str, digest: Digest) -> None:
        """Note the digest of a file that was read."""
        if digest.fresh:
            return
        self._changes[name] = digest
        self._read_octets += digest.signature.size
        if len(self._changes) >= BATCH_FILES or self._read_octets >= BATCH_OCTETS:
            self.save()

    def remove(self, name: str) -> None:
        """Note that a file is gone."""
        self._changes[name] = None

    def remove_unfound(self) -> None:
        """Everything there is was found: what still waits is gone. Where nothing was found, nothing is known to be."""
        if self._waiting is not None:
            for name in self._waiting:
                self.remove(name)
            self._waiting.clear()

    def save(self) -> None:
        """Write what is noted."""
        if self._changes:
            self._store.save(self._folder, self._changes)
        self._changes, self._read_octets = {}, 0
