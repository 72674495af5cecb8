"""RESYNC: what a client lacks, found from the digests of what it has.

The client lists its files in the `cache` of ICANHAZ as ``name=digest``. A dictionary holds 255 entries and an
entry 255 octets, so a larger cache travels as several ICANHAZ of the same path whose entries add up; only the
last asks for RESYNC, and a name too long for an entry is left out (its file is sent again).

Three options are our own. With `PRUNE=1` the server also deletes what the cache names and the
publication no longer has; it is asked for, and not done for everyone, because a cache may list
files of other origin. With `WHOLE=1` a client says that it puts files into their places when they
are whole, where others of its dialect do not. `INSIDE` names the folders that its inbox lies in, by
marks that only this machine can compare: a server that publishes one of them refuses the
subscription, which would send copies of copies.

With ``ATTRIBUTES=1`` a client asks for the headers `mode` and `mtime` of each file. With ``RENAMES=1``
it says that it keeps deleted files for a while: a file with the content of one that was withdrawn a
moment ago is then sent as its end alone (offset = size) with the header `renamed`. A client that
does not have the content any more asks again without this option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from specwire.generated.filemq import Icanhaz
from specwire.runtime.filemq.catalogue import Listing
from specwire.runtime.filemq.dialect import CacheRules, Habits
from specwire.runtime.filemq.names import (
    absolute_name,
    covers,
    fault_in_name,
    relative_name,
)
from specwire.runtime.filemq.nameset import NameSet

MAX_STALE_OCTETS = 64 << 20
"""What the names may have, together, that one client lists and that are not published."""

MAX_WAITING = 250_000
"""Where so many changes wait for a client already, it is not told of more files that are not published."""

RESYNC = ("RESYNC", "1")
PRUNE = ("PRUNE", "1")
WHOLE = ("WHOLE", "1")
INSIDE = "INSIDE"
ATTRIBUTES = ("ATTRIBUTES", "1")
RENAMES = ("RENAMES", "1")


def ask_for_missing(path: str, digests: Mapping[str, str], habits: Habits) -> Iterator[Icanhaz]:
    """Yield the commands that subscribe to `path` and ask for what differs from `digests`."""
    rules = habits.cache
    entries = [
        (cached, digest)
        for name, digest in digests.items()
        if len((cached := _cached_name(path, name, rules)).encode()) <= rules.name_octets
    ]
    parts = [entries[i : i + rules.entries] for i in range(0, len(entries), rules.entries)] or [[]]
    for part in parts[:-1]:
        yield Icanhaz(path=path, options=habits.options, cache=tuple(part))
    yield Icanhaz(path=path, options=(RESYNC, PRUNE, *habits.options), cache=tuple(parts[-1]))


def _cached_name(path: str, name: str, rules: CacheRules) -> str:
    return name if rules.full_names else relative_name(path, name)


class ClientCache:
    """What one client says it holds under one path, gathered over several ICANHAZ.

    Only names are kept: of files that are as published, and of files that are not published at all. A name
    with another digest needs no entry, because its file is sent anyway. `stale_octets` is the length of the latter.
    """

    def __init__(self, path: str, files: Listing) -> None:
        self._path, self._files = path, files
        self._same: NameSet | None = None
        self._stale: dict[str, None] = {}
        self.stale_octets = 0

    def add(self, entries: Iterable[tuple[str, str]]) -> None:
        """Take in the entries of one ICANHAZ."""
        same: list[str] = []
        for cached, digest in entries:
            name = absolute_name(self._path, cached)
            if not covers(self._path, name):
                continue
            entry = self._files.find(name)
            if entry is None:
                self._note_stale(name)
            elif entry.sha1 == digest.upper():
                same.append(name)
        if same:
            self._note_same(same)

    def pass_over(self, name: str) -> None:
        """This file is asked for by a command of its own."""
        self._note_same([name])

    def stale(self) -> Iterator[str]:
        """Yield the files that the client has and that are certainly not published."""
        files = self._files
        return (name for name in self._stale if files.find(name) is None and not files.is_in_doubt(name))

    def lacking(self) -> NameSet:
        """Return the files that are published and that the client has not, or not as they are."""
        lacking = NameSet(self._files.order(), self._path)
        if self._same is not None:
            lacking.difference_update(self._same)
        return lacking

    def _note_same(self, names: list[str]) -> None:
        if self._same is None:
            self._same = NameSet(self._files.order())
        self._same.add(names)

    def _note_stale(self, name: str) -> None:
        if name not in self._stale and fault_in_name(name) is None:
            self._stale[name] = None
            self.stale_octets += len(name.encode())
