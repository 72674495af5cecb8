"""The files of one publication: those that are known now, and those that an earlier run knew.

The digests of an earlier run are loaded at once, and each waits for its file to be found. One whose
file is found in the same state need not be read. One whose file cannot be read is the last known
state of it. What is read or gone is written in batches, at the end of a look or after `BATCH_FILES`
files or `BATCH_OCTETS` of content, so that a server that is killed while it reads its folder for
the first time continues near there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from specwire.runtime.filemq.digests import Digest
from specwire.runtime.filemq.policy import FolderState

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

BATCH_FILES = 1000
BATCH_OCTETS = 1 << 30


class KnownFiles:
    """Digest of each file by its virtual name, and which folders have such files."""

    def __init__(self) -> None:
        self._files: dict[str, Digest] = {}
        self._folders: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._files)

    def find(self, name: str) -> Digest | None:
        """Return what is known of a file."""
        return self._files.get(name)

    def put(self, name: str, digest: Digest) -> None:
        """Note a file."""
        if name not in self._files:
            self._folders.update(_folders_of(name))
        self._files[name] = digest

    def remove(self, name: str) -> bool:
        """Forget a file; False where it was not known."""
        if self._files.pop(name, None) is None:
            return False
        for folder in _folders_of(name):
            self._folders[folder] -= 1
            if not self._folders[folder]:
                del self._folders[folder]
        return True

    def all_but(self, names: set[str]) -> set[str]:
        """Return the names of all files but these."""
        return self._files.keys() - names

    def under(self, places: Iterable[str]) -> set[str]:
        """Return the names of the files below these folders, in one walk where there are any."""
        folders = {place for place in places if place in self._folders}
        if not folders:
            return set()
        return {name for name in self._files if any(map(folders.__contains__, _folders_of(name)))}


def _folders_of(name: str) -> Iterator[str]:
    """Yield the folders that a file is in, but not the root."""
    end = name.find("/", 1)
    while end > 0:
        yield name[:end]
        end = name.find("/", end + 1)


class KeptDigests:
    """Digests of the files in `folder` from earlier runs, by their names in it; for use from one thread.

    Attributes:
        state: what else is remembered of the folder.
    """

    def __init__(self, store: DigestStore | None, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._waiting: dict[str, Digest] = {}
        self.state = FolderState()
        if store is not None:
            self._waiting, self.state = store.load(folder), store.load_state(folder)
        self._saved = self.state
        self._changes: dict[str, Digest | None] = {}
        self._read_octets = 0

    def find(self, name: str, state: os.stat_result) -> Digest | None:
        """Return the digest of a file that is found for the first time, None where it has to be read."""
        digest = self._waiting.get(name)
        return self._waiting.pop(name) if digest is not None and digest.still_holds(state) else None

    def take(self, name: str) -> Digest | None:
        """Return the last digest of a file that cannot be read, None where an earlier run had none."""
        return self._waiting.pop(name, None)

    def unfound(self) -> list[str]:
        """Return the names whose files were not found yet."""
        return [*self._waiting]

    def put(self, name: str, digest: Digest) -> None:
        """Note the digest of a file that was read."""
        self._waiting.pop(name, None)
        self._changes[name] = digest
        self._read_octets += digest.signature.size
        if len(self._changes) >= BATCH_FILES or self._read_octets >= BATCH_OCTETS:
            self.save()

    def remove(self, name: str) -> None:
        """Note that a file is gone."""
        self._waiting.pop(name, None)
        self._changes[name] = None

    def save(self) -> None:
        """Write what is noted."""
        if self._store is not None and (self._changes or self.state != self._saved):
            self._store.save(self._folder, self._changes, self.state)
        self._changes, self._read_octets, self._saved = {}, 0, self.state
