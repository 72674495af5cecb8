"""Index of one publication: its files with their digests, and the changes that a look at them means.

A file whose state is as before is not read again, also if an earlier run read it. A file that
cannot be read keeps its last known content. A file that changes while it is read is skipped: its
writer causes the next notification. A file that is still growing is read when it has not changed
for a while (`GrowingFiles`).

A name that does not fit the protocol, and anything but a regular file, is reported once. An empty
folder is listed like a file without content.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from specwire.runtime.containment import ContainmentError, kind_of
from specwire.runtime.filemq.catalogue import Change, Entry, Gone, Put, Signature, Unfit
from specwire.runtime.filemq.digeststore import StoredDigests
from specwire.runtime.filemq.disk import trouble_in
from specwire.runtime.filemq.names import (
    MAX_NAME_OCTETS,
    NOTHING,
    IgnoreRule,
    fault_in_entry,
    folders_of,
    is_folder,
)
from specwire.runtime.filemq.reading import (
    SHA1_OF_NOTHING,
    Digest,
    UnstableError,
    digest_file,
    mode_of,
    sign,
)

LARGE_OCTETS = 1 << 20
"""A new file of this size is probably still being written."""

LONGEST_REST = 30
"""A file that never stops changing is published after so many times `settle_s`."""

MANY_READS = 1000


class KnownFiles:
    """Digest of each file by its virtual name, and the folders that have such files."""

    def __init__(self) -> None:
        self._files: dict[str, Digest] = {}
        self._folders: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._files)

    def find(self, name: str) -> Digest | None:
        """Return the digest of a file, None if it is not known."""
        return self._files.get(name)

    def put(self, name: str, digest: Digest) -> None:
        """Add or replace a file."""
        if name not in self._files:
            self._folders.update(folders_of(name))
        self._files[name] = digest

    def remove(self, name: str) -> bool:
        """Remove a file; return False if it was not known."""
        if self._files.pop(name, None) is None:
            return False
        for folder in folders_of(name):
            self._folders[folder] -= 1
            if not self._folders[folder]:
                del self._folders[folder]
        return True

    def all_but(self, names: set[str]) -> set[str]:
        """Return the names of all files except these."""
        return self._files.keys() - names

    def under(self, places: Iterable[str]) -> set[str]:
        """Return the names of the files below these folders. Scans all names if there are any."""
        folders = {place for place in places if place in self._folders}
        if not folders:
            return set()
        return {name for name in self._files if any(map(folders.__contains__, folders_of(name)))}


class _Rest(NamedTuple):
    """A growing file: its last state, since when it has it, and when it was seen first."""

    signature: Signature
    since: float
    begun: float


class GrowingFiles:
    """Files that are still being written, and when to read them. Times are monotonic, in seconds.

    Args:
        settle_s: a file is read when it has not changed for this time; 0: at once.
    """

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._rests: dict[str, _Rest] = {}
        self._read_at: dict[str, float] = {}

    @property
    def due(self) -> float | None:
        """When to look at the growing files again, None if there are none."""
        since = [rest.since for rest in self._rests.values()]
        return min(since) + self._settle_s if since else None

    def names(self) -> list[str]:
        """Return the names of the growing files."""
        return [*self._rests]

    def forget(self, name: str) -> None:
        """Forget a file."""
        self._rests.pop(name, None)

    def is_ready(self, name: str, state: os.stat_result, known: Digest | None) -> bool:
        """Return whether a file may be read now: it has settled, or has been changing for very long."""
        if not self._settle_s:
            return True
        now, signature = time.monotonic(), sign(state)
        rest = self._rests.get(name)
        if rest is None:
            again = now - self._read_at.get(name, -self._settle_s) < self._settle_s
            young = state.st_size >= LARGE_OCTETS and time.time() - state.st_mtime < self._settle_s
            if (known is not None and known.signature == signature) or not (again or young):
                return True
            rest = _Rest(signature, now, now)
        elif rest.signature != signature:
            rest = rest._replace(signature=signature, since=now)
        self._rests[name] = rest
        return now - rest.since >= self._settle_s or now - rest.begun >= LONGEST_REST * self._settle_s

    def note_reading(self, name: str) -> None:
        """Note that a file is read now."""
        self.forget(name)
        if not self._settle_s:
            return
        now = time.monotonic()
        if len(self._read_at) > MANY_READS:
            recent = {n: at for n, at in self._read_at.items() if now - at < self._settle_s}
            self._read_at = recent
        self._read_at[name] = now


class FileIndex:
    """The known files of one publication.

    Args:
        open_file: opens a file by its virtual name; raises OSError or ContainmentError.
        settle_s: see `GrowingFiles`.
        is_abandoned: returns True when reading must stop.

    Attributes:
        stored: digests from earlier runs.
        longest_octets: longest name of a file.
        ignore: which files are not published.
        unread: files that cannot be read now, with the reason; "" if they are only changing.
    """

    def __init__(
        self, open_file: Callable[[str], int], settle_s: float, is_abandoned: Callable[[], bool]
    ) -> None:
        self._open_file, self._is_abandoned = open_file, is_abandoned
        self.stored = StoredDigests()
        self.longest_octets = MAX_NAME_OCTETS
        self.ignore = NOTHING
        self.unread: dict[str, str] = {}
        self.growing = GrowingFiles(settle_s)
        self.known = KnownFiles()
        self._unfit: set[str] = set()

    def compare(self, name: str, state: os.stat_result, seen: set[str], *, at_once: bool) -> Iterator[Change]:
        """Yield the changes that follow from a file, link or device that exists.

        Args:
            seen: gets the name if it can be published.
            at_once: also read a file that is still growing.
        """
        known = self.known.find(name)
        if known is not None and known.still_holds(state) and stat.S_ISREG(state.st_mode):
            seen.add(name)
            self.growing.forget(name)
            return
        if not is_folder(name) and self.ignore.ignores_file(name):
            return
        if (fault := self._find_fault(name, state)) is not None:
            if name not in self._unfit:
                self._unfit.add(name)
                yield Unfit(name, fault)
            return
        seen.add(name)
        if is_folder(name):
            if known is None or known.mode != mode_of(state):
                digest = Digest(SHA1_OF_NOTHING, sign(state)._replace(size=0), False, 0, mode_of(state))
                yield self._put(name, digest)
            return
        stored = self.stored.find(name, state) if known is None else None
        if stored is not None:
            yield self._put(name, stored)
        elif at_once or self.growing.is_ready(name, state, known):
            yield from self._read(name)

    def _find_fault(self, name: str, state: os.stat_result) -> str | None:
        """Return why this is not published, None if it is published."""
        fault = fault_in_entry(name, self.longest_octets)
        if fault is None and not stat.S_ISREG(state.st_mode) and not is_folder(name):
            fault = f"is {kind_of(state)}, and not published"
        return fault

    def forget(self, names: Iterable[str]) -> list[Gone]:
        """Forget files that are gone; return the changes."""
        gone: list[Gone] = []
        for name in sorted(names):
            self.unread.pop(name, None)
            self.growing.forget(name)
            if self.known.remove(name):
                gone.append(Gone(name))
                self.stored.remove(name)
            elif self.stored.pop(name) is not None:
                self.stored.remove(name)
        return gone

    def forget_ignored(self, rule: IgnoreRule) -> list[Gone]:
        """Ignore other files from now on; return the changes."""
        self.ignore = rule
        return self.forget(
            name for name in self.known.all_but(set()) | self.stored.unfound() if rule.ignores(name)
        )

    def restore(self, names: Iterable[str]) -> Iterator[Change]:
        """List files with the digests of an earlier run."""
        for name in sorted(names):
            if self.known.find(name) is None and (digest := self.stored.pop(name)) is not None:
                yield self._put(name, digest)

    def _read(self, name: str) -> Iterator[Change]:
        self.growing.note_reading(name)
        try:
            descriptor = self._open_file(name)
            try:
                digest = digest_file(descriptor, self._is_abandoned)
            finally:
                os.close(descriptor)
        except UnstableError:
            yield from self._keep(name, "")
        except (OSError, ContainmentError) as fault:
            if (trouble := trouble_in(fault)) is None:
                yield from self.forget([name])
            else:
                yield from self._keep(name, f"cannot be read: {trouble}")
        else:
            self.unread.pop(name, None)
            self.stored.put(name, digest)
            yield self._put(name, digest)

    def _keep(self, name: str, reason: str) -> Iterator[Change]:
        """Keep the last known content of a file that cannot be read, also from an earlier run."""
        self.unread[name] = reason
        yield from self.restore([name])

    def _put(self, name: str, digest: Digest) -> Put:
        self.known.put(name, digest)
        sha1, signature, fresh, touched_ns, mode = digest
        return Put(Entry(name, signature.size, sha1, signature, fresh, mode, touched_ns))
