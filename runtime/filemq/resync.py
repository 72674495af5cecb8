"""Options of ICANHAZ: what a client asks for beside changes, and what it holds.

``RESYNC=1`` (FILEMQ v2, "The ICANHAZ Command") asks for everything that a client lacks. The client
lists its files in the cache as ``name=digest``. A dictionary has 255 entries and an entry 255
octets, so a larger cache travels as several ICANHAZ of the same path whose entries add up. Only the
last asks for RESYNC. A name too long for an entry is omitted, and its file is sent again.

The other options are ours, and other peers ignore them:

    PRUNE=1     delete what the cache names and the publication no longer has. It is asked for,
    because
                a cache may list files of another origin. WHOLE=1     the client moves files to
                their places when they are complete; others write in place. INSIDE      marks of the
                folders that contain the inbox, which only this machine can compare. A server that
                publishes one of them refuses the subscription: it would send copies of copies.
                RESUME=size:sha-1   the client holds so much of this file. If the file still begins
                so, the server sends the rest first, from this offset; otherwise all of it.
                ATTRIBUTES=1    the client asks for the headers `mode` (four octal digits) and
                `mtime` (nanoseconds since 1970) of each file, and for empty folders. Their names
                end with a slash. RENAMES=1   the client keeps deleted files for a while. A file
                with the content of one that was just withdrawn is then sent as its end alone
                (offset = size), with the header `renamed`. A client that has lost the content asks
                again without this option. LIST=1      the client asks which files are published
                under the path. This is no subscription. Each file, and with ATTRIBUTES each empty
                folder, is sent as its end alone (offset = size, an empty chunk), without credit.
                The header `left` says how many commands of the listing may follow. The last one
                names the path, with `left` = 0 and no digest, so an empty listing ends too. A newer
                request replaces a listing that has not ended.

A server accepts RESUME from a client that is subscribed to the file already. So the request grants
nothing, is no subscription, and cannot be refused. Only a file that was announced with size and
digest can be resumed: these prove that its parts belong together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from specwire.generated.filemq import Icanhaz
from specwire.runtime.filemq.catalogue import Catalogue
from specwire.runtime.filemq.dialect import CacheRules, Habits
from specwire.runtime.filemq.names import absolute_name, covers, fault_in_entry, is_folder, relative_name
from specwire.runtime.filemq.nameset import NameSet

MAX_STALE_OCTETS = 64 << 20
"""Most octets of all names that one client lists and that are not published."""

MAX_WAITING = 250_000
"""With so many changes waiting, a client gets no more deletions of files that are not published."""

RESYNC = ("RESYNC", "1")
PRUNE = ("PRUNE", "1")
WHOLE = ("WHOLE", "1")
INSIDE = "INSIDE"
ATTRIBUTES = ("ATTRIBUTES", "1")
RENAMES = ("RENAMES", "1")
LIST = ("LIST", "1")
LEFT = "left"
"""Header of the commands that answer `LIST`."""

RESUME = "RESUME"
RESUME_FROM_OCTETS = 1 << 20
"""A smaller file is sent again, which is faster than to keep it."""

_RESUME_VALUE = re.compile("([1-9][0-9]{0,18}):([0-9A-Fa-f]{40})")


class Beginning(NamedTuple):
    """The beginning of a file that a client holds: its octets, and their SHA-1 in upper case."""

    size: int
    sha1: str


def read_beginning(options: Sequence[tuple[str, str]]) -> Beginning | None:
    """Return the value of RESUME; None if the option is absent, or malformed and so not ours."""
    match = _RESUME_VALUE.fullmatch(dict(options).get(RESUME, ""))
    return None if match is None else Beginning(int(match[1]), match[2].upper())


class ListingStep(NamedTuple):
    """A command of the answer to `LIST`: what it names, its offset, and its headers."""

    name: str
    offset: int
    headers: tuple[tuple[str, str], ...]


def list_files(files: Catalogue, path: str, *, folders: bool) -> Iterator[ListingStep]:
    """Yield the commands that list the files under `path`, each in its current version.

    Args:
        folders: list empty folders, too.
    """
    order = files.order()
    left = len(NameSet(order, path))
    for name in order.under(path):
        entry = files.find(name)
        if entry is not None and (folders or not is_folder(name)):
            headers = (("size", str(entry.size)), ("sha-1", entry.sha1), (LEFT, str(left)))
            yield ListingStep(name, entry.size, headers)
        left -= 1
    yield ListingStep(path, 0, ((LEFT, "0"),))


def resync_commands(path: str, digests: Mapping[str, str], habits: Habits) -> Iterator[Icanhaz]:
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
    """Files that one client holds under one path, from several ICANHAZ.

    Only names are kept: of files that are as published, and of files that are not published at all.
    A name with another digest needs no entry, because its file is sent anyway.

    Attributes:
        stale_octets: octets of the names that are not published.
    """

    def __init__(self, path: str, files: Catalogue) -> None:
        self._path, self._files = path, files
        self._same: NameSet | None = None
        self._stale: dict[str, None] = {}
        self.stale_octets = 0

    def add(self, entries: Iterable[tuple[str, str]]) -> None:
        """Add the entries of one ICANHAZ."""
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

    def exclude(self, name: str) -> None:
        """Do not send this file: another command requests it."""
        self._note_same([name])

    def stale(self) -> Iterator[str]:
        """Yield the files that the client has and that are certainly not published."""
        files = self._files
        return (name for name in self._stale if files.find(name) is None and not files.is_in_doubt(name))

    def lacking(self) -> NameSet:
        """Return the published files that the client lacks, or has in another version."""
        lacking = NameSet(self._files.order(), self._path)
        if self._same is not None:
            lacking.difference_update(self._same)
        return lacking

    def _note_same(self, names: list[str]) -> None:
        if self._same is None:
            self._same = NameSet(self._files.order())
        self._same.add(names)

    def _note_stale(self, name: str) -> None:
        if name not in self._stale and fault_in_entry(name) is None:
            self._stale[name] = None
            self.stale_octets += len(name.encode())
