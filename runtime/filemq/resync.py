"""RESYNC: what a client lacks, found from the digests of what it has.

The client lists its files in the `cache` of ICANHAZ as ``name=digest``. A dictionary holds 255 entries and an
entry 255 octets, so a larger cache travels as several ICANHAZ of the same path whose entries add up; only the
last asks for RESYNC, and a name too long for an entry is left out (its file is sent again).

Two options are our own. With `PRUNE=1` the server also deletes what the cache names and the publication no longer
has; it is asked for, and not done for everyone, because a cache may list files of other origin. With `WHOLE=1` a
client says that it puts files into their places when they are whole, where others of its dialect do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from specwire.generated.filemq import Icanhaz, Operation
from specwire.runtime.filemq.catalogue import Listing
from specwire.runtime.filemq.dialect import CacheRules, Habits
from specwire.runtime.filemq.names import (
    absolute_name,
    covers,
    fault_in_name,
    relative_name,
)

MAX_STALE = 250_000
RESYNC = ("RESYNC", "1")
PRUNE = ("PRUNE", "1")
WHOLE = ("WHOLE", "1")


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
    with another digest needs no entry, because its file is sent anyway.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._same: set[str] = set()
        self._stale: dict[str, None] = {}

    def add(self, entries: Iterable[tuple[str, str]], files: Listing) -> bool:
        """Take in the entries of one ICANHAZ; False where more stale names gather than `MAX_STALE`."""
        for cached, digest in entries:
            name = absolute_name(self._path, cached)
            if not covers(self._path, name) or fault_in_name(name) is not None:
                continue
            entry = files.find(name)
            if entry is None:
                self._stale[name] = None
            elif entry.sha1 == digest.upper():
                self._same.add(entry.name)
        return len(self._stale) <= MAX_STALE

    def missing(self, files: Listing, *, prune: bool) -> Iterator[tuple[str, Operation]]:
        """Yield what the client is to be told, deletions first."""
        if prune:
            for name in self._stale:
                if files.find(name) is None:
                    yield name, Operation.DELETE
        for entry in files.under(self._path):
            if entry.name not in self._same:
                yield entry.name, Operation.CREATE
