"""A folder published at a virtual path: which files it holds, and what changed.

A publication is looked at by one thread at a time. `scan` compares the whole folder with what was
known; `examine` looks only at the places that a notification named. Both return changes, deletions
first, so that a file that became a folder leaves before the files in it come. A file that is being
written while it is read is passed over: its writer causes the next notification.

What the disk does not say changes nothing: see `disk` and `policy`. A file that cannot be read
keeps the content that was read last, also when an earlier run read it. While a folder cannot be
opened, or another one with nothing in it is in its place, everything stays listed. `Doubt` and
`Trust` report such places, once.

A name that does not fit the protocol (more than 255 octets, not UTF-8) is reported once and not
published. The same holds for everything but regular files: symbolic links are not followed, and
named pipes not read.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from specwire.runtime.containment import ContainmentError, kind_of, open_folder
from specwire.runtime.filemq.catalogue import Entry, Signature
from specwire.runtime.filemq.digests import AbandonedError, Digest, UnstableError, digest_file, sign
from specwire.runtime.filemq.disk import (
    Answer,
    Mount,
    Present,
    Root,
    Unknown,
    device_of,
    look_at,
    mark_of,
    open_file,
    trouble_in,
    walk,
)
from specwire.runtime.filemq.known import KeptDigests, KnownFiles
from specwire.runtime.filemq.names import (
    MAX_NAME_OCTETS,
    RESERVED,
    covers,
    fault_in_name,
    fault_in_path,
    is_below,
    normalise_path,
)
from specwire.runtime.filemq.policy import (
    FolderState,
    Look,
    PublicationRules,
    decide,
    device_at,
)

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

logger = logging.getLogger(__name__)

STEP_FILES = 1000
"""Files in one step of a walk. Between the steps of a large folder `examine` notices changes in time."""

MANY_PLACES = 1000
"""From so many notifications on, one walk through the folder costs less."""

MOVED = "lies on another device than before; the next walk decides what becomes of its files"

LARGE_OCTETS = 1 << 20
"""A new file of this size is published when it rests: it is probably still being written."""

DEFAULT_RULES = PublicationRules()

LONGEST_REST = 30
"""A file that never rests is published all the same, after so many times the time to settle."""


class Put(msgspec.Struct, frozen=True):
    """A file is there; its content may be as before."""

    entry: Entry


class Gone(msgspec.Struct, frozen=True):
    """A file is not there any more."""

    name: str


class Unfit(msgspec.Struct, frozen=True):
    """A file that cannot be published."""

    name: str
    reason: str


class Doubt(msgspec.Struct, frozen=True):
    """A place that cannot be read now: what was known of it stays. Not reported without a reason."""

    name: str
    reason: str


class Trust(msgspec.Struct, frozen=True):
    """A place of which there was a doubt can be looked at again."""

    name: str


Change = Put | Gone | Unfit | Doubt | Trust


class _Rest(NamedTuple):
    """A file that waits until it rests: its last state, since when it has it, and when it began to wait."""

    signature: Signature
    since: float
    begun: float


class Publication:
    """One published folder.

    Args:
        folder: the folder; it must exist when `open` is called.
        path: its virtual path, ``/`` for the root.
        digests: keeps the digests of the files from one run to the next; without it each run reads every file.

        rules: settings.

    Attributes:
        missing: the folder was not there when it was looked at last.
        doubts: places of which the disk did not say what is there, with the reason; may be read by
            any thread.
        rests_at: when a file that still changes has to be looked at, by the monotonic clock; None
            where none does.

    Raises:
        ValueError: `path` is not a virtual path.
    """

    def __init__(
        self,
        folder: Path,
        path: str = "/",
        *,
        digests: DigestStore | None = None,
        rules: PublicationRules = DEFAULT_RULES,
    ) -> None:
        self.folder = folder
        self.path = normalise_path(path)
        fault = fault_in_path(self.path)
        if fault is not None:
            raise ValueError(f"{path!r} {fault}")
        self._longest_octets = MAX_NAME_OCTETS
        self._prefix = "/" if self.path == "/" else f"{self.path}/"
        self._rules, self._accept = rules, rules.accept_empty
        self._digests = digests
        self._kept = KeptDigests(None, folder)
        self._root = Root()
        self._walked_root: int | None = None  # number of the root at the last complete walk
        self.missing = False
        self.doubts: dict[str, str] = {}
        self.rests_at: float | None = None
        self._state = FolderState()
        self._waiting = False
        self._known = KnownFiles()
        self._unread: dict[str, str] = {}
        self._unseen: dict[str, str] = {}
        self._unfit: set[str] = set()
        self._walk = 0
        self._met: set[str] = set()
        self._untold: dict[str, Change] = {}
        self._at_once = True
        self._read_at: dict[str, float] = {}
        self._resting: dict[str, _Rest] = {}
        self._abandoned = threading.Event()

    def open(self, *, longest_octets: int = MAX_NAME_OCTETS) -> None:
        """Open the folder, for names of so many octets; raises OSError where it is missing or is none."""
        self._longest_octets = longest_octets
        self.folder = self.folder.resolve()  # notifications name places by it, wherever the process goes
        self._root.open(self.folder)
        self._abandoned.clear()
        if self._digests is not None and self._digests.is_inside(self.folder):
            logger.warning("%s is published: no digests are kept there", self._digests.folder)
        elif self._digests is not None:
            self._kept = KeptDigests(self._digests, self.folder)
            self._state = _rename_places(self._kept.state, self._outer_place)

    def accept(self) -> None:
        """Withdraw what the next walk does not find, although it may only be out of sight."""
        self._accept = True

    def abandon(self) -> None:
        """Have every look end with AbandonedError from now on, that of another thread too; before `close`."""
        self._abandoned.set()

    def close(self) -> None:
        """Close the folder; digests of files that were read for an abandoned look are kept."""
        self._kept.save()
        self._root.close()

    @property
    def replaced(self) -> int:
        """How often another folder was found in place of the one before."""
        return self._root.replaced

    @property
    def waits(self) -> bool:
        """Whether files stay listed until the folder is back, or somebody confirms that they are gone."""
        return self.missing or self._waiting

    def holds(self, marks: str) -> bool:
        """Tell whether the folder is one of those that a client's inbox lies in, by their marks."""
        return mark_of(os.fstat(self._root.descriptor)) in marks.split(",")

    def overlaps(self, other: Publication) -> bool:
        """Tell whether two publications could name the same file."""
        return covers(self.path, other.path) or covers(other.path, self.path)

    def open_entry(self, name: str) -> int:
        """Return a descriptor of a published file, from any thread; raises OSError or ContainmentError."""
        return open_file(self._root.descriptor, self._inner_name(name))

    def scan(self) -> list[Change]:
        """Compare the whole folder with what is known."""
        return [change for step in self.walk() for change in step]

    def walk(self, *, at_once: bool = True) -> Iterator[list[Change]]:
        """Compare the whole folder with what is known, in steps between which `examine` may be called.

        What was found is returned with the last step, or by `examine` where that is asked for it before. A walk
        that is begun during another ends that one.

        Args:
            at_once: also publish files that still change.
        """
        self._walk = number = self._walk + 1
        if (absence := self._find_root()) is not None:
            yield absence
            return
        self._met, self._at_once = set(), at_once
        look = Look(self.path, set(), 0, [], [], empty=self._walked_root != self._root.replaced)
        look.mounts.append(Mount(self.path, self._root.device))
        answers = walk(self._root.descriptor, self._prefix, self._longest_octets)
        while step := [*islice(answers, STEP_FILES)]:
            self._untold |= {_name_of(change): change for change in self._take(step, self._met, look)}
            yield []
            if self._walk != number:
                return
        yield self._finish_walk(look)

    def _finish_walk(self, look: Look) -> list[Change]:
        first = self._find_root()  # where it vanished during the walk, what was not met is not gone
        self._at_once = False
        if first is None:
            first = self._conclude(look)
            self._kept.save()
        found, self._untold, self._met = [*self._untold.values()], {}, set()
        return [*first, *found]

    def _conclude(self, look: Look) -> list[Change]:
        """Withdraw what a complete walk did not find, as far as the policy allows."""
        unfound = {self._prefix + name for name in self._kept.unfound()}
        lost = self._known.all_but(self._met) | unfound - self._met
        held = len(self._known) + len(unfound)
        look = look._replace(lost=lost, held=held, empty=look.empty and not self._met)
        decision = decide(look, self._state, accept=self._accept)
        self._accept, self._walked_root = False, self._root.replaced
        self._state, self._unseen, self._waiting = decision.state, decision.keep, decision.waiting
        self._kept.state = _rename_places(decision.state, self._inner_place)
        gone = self._forget(decision.withdraw)
        return [*gone, *self._keep_unfound(unfound - decision.withdraw), *self._tell_doubts()]

    def _keep_unfound(self, names: Iterable[str]) -> Iterator[Change]:
        """List files as an earlier run knew them."""
        for name in sorted(names):
            if self._known.find(name) is None and (digest := self._kept.take(self._key(name))) is not None:
                yield self._know(name, digest)

    def examine(self, places: Iterable[str]) -> list[Change]:
        """Look at files and folders, given as paths in the file system that begin with the folder's own."""
        if (absence := self._find_root()) is not None:
            return absence
        names = sorted({self._virtual_name(place) for place in places})
        if len(names) > MANY_PLACES or self._prefix in names:
            return [change for step in self.walk(at_once=self._at_once) for change in step]
        here: list[Answer] = []
        files, folders = set[str](), set[str]()
        for name in names:
            place = [*self._list_place(name)]
            here += place
            for answer in place:
                if isinstance(answer, Present) and stat.S_ISREG(answer.state.st_mode):
                    (files if answer.name == name else folders).add(name)
        if (absence := self._find_root()) is not None:
            return absence
        self._unseen |= {place.name: place.reason for place in here if isinstance(place, Unknown)}
        # What is gone is forgotten before anything is looked at: it may have come again meanwhile.
        lost = {*names} - files | self._known.under({*names} - folders)
        gone = self._forget(name for name in lost if not is_below(name, self._unseen))
        untold = {place.name: self._untold.pop(place.name) for place in here if place.name in self._untold}
        found = [*(untold | {_name_of(change): change for change in self._take(here, self._met)}).values()]
        self._kept.save()
        return [*gone, *found, *self._tell_doubts()]

    def examine_name(self, name: str) -> list[Change]:
        """Look at one file, by its virtual name."""
        return self.examine([str(self.folder / self._inner_name(name)[1:])])

    def examine_resting(self) -> list[Change]:
        """Look at the files that may rest by now."""
        return self.examine([str(self.folder / self._inner_name(name)[1:]) for name in [*self._resting]])

    def _find_root(self) -> list[Change] | None:
        """See which folder is there, and open it; where there is none, return what to report of that."""
        fault = self._root.find(may_be_empty=self._accept or not self._known)
        told, self.missing = self.missing, fault is not None
        if fault is not None:
            reason = f"its folder {self.folder} {fault}, so its files stay listed until it is back"
            return [] if told else [Unfit(self.path, reason)]
        if told:
            logger.warning("%s is back", self.folder)
        return None

    def _tell_doubts(self) -> Iterator[Change]:
        """Report which places are in doubt now and were not before, and the reverse."""
        doubts = self._unread | self._unseen
        before, self.doubts = self.doubts, doubts
        since = [rest.since for rest in self._resting.values()]
        self.rests_at = min(since) + self._rules.settle_s if since else None
        yield from (Trust(name) for name in before if name not in doubts)
        yield from (Doubt(name, reason) for name, reason in doubts.items() if name not in before)

    def _inner_name(self, name: str) -> str:
        return name if self.path == "/" else name[len(self.path) :]

    def _inner_place(self, name: str) -> str:
        return "" if name == self.path else self._key(name)

    def _outer_place(self, inner: str) -> str:
        return self._prefix + inner if inner else self.path

    def _key(self, name: str) -> str:
        return name[len(self._prefix) :]

    def _virtual_name(self, place: str) -> str:
        inner = os.path.relpath(place, self.folder)
        folders = inner.split("/")
        if RESERVED in folders:  # somebody's inbox: reported as a walk does, and not each file in it
            inner = "/".join(folders[: folders.index(RESERVED) + 1])
        return self._prefix if inner == "." else self._prefix + inner

    def _list_place(self, name: str) -> Iterator[Answer]:
        """Yield the answers for what is at `name` or below it now; see `walk`."""
        *folders, leaf = self._inner_name(name)[1:].split("/")
        try:
            parent = open_folder(self._root.descriptor, folders)
            try:
                yield from self._list_in(parent, leaf, name)
            finally:
                os.close(parent)
        except (OSError, ContainmentError) as fault:
            if (trouble := trouble_in(fault)) is not None:
                yield Unknown(name, f"cannot be read: {trouble}")

    def _list_in(self, parent: int, leaf: str, name: str) -> Iterator[Answer]:
        above = name.rpartition("/")[0] or "/"
        if not self._is_where_it_was(parent, above):
            yield Unknown(above, MOVED)
            return
        expected = {place: device for place, device in self._state.devices.items() if covers(name, place)}
        for answer in look_at(parent, leaf, name, self._longest_octets, device=os.fstat(parent).st_dev):
            if not isinstance(answer, Mount):
                yield answer
            elif expected.pop(answer.name, None) != answer.device:
                yield Unknown(answer.name, MOVED)
        yield from (Unknown(place, MOVED) for place in expected if place != self.path)

    def _is_where_it_was(self, folder: int, name: str) -> bool:
        """Tell whether an open folder lies on the device that the last walk found."""
        expected = device_at(name, self._state.devices)
        return expected is None or self._walked_root is None or expected == device_of(folder)

    def _take(self, answers: Iterable[Answer], seen: set[str], look: Look | None = None) -> Iterator[Change]:
        """Yield the changes that follow from what the disk says."""
        for answer in answers:
            if self._abandoned.is_set():
                raise AbandonedError
            match answer:
                case Present(name, state):
                    yield from self._take_file(name, state, seen)
                case Unknown() if look is not None:
                    look.unknown.append(answer)
                case Mount() if look is not None:
                    look.mounts.append(answer)

    def _take_file(self, name: str, state: os.stat_result, seen: set[str]) -> Iterator[Change]:
        known = self._known.find(name)
        if known is not None and known.still_holds(state) and stat.S_ISREG(state.st_mode):
            seen.add(name)
            self._resting.pop(name, None)
            return
        fault = fault_in_name(name, self._longest_octets)
        if fault is None and not stat.S_ISREG(state.st_mode):
            fault = f"is {kind_of(state)}, and not published"
        if fault is not None:
            if name not in self._unfit:
                self._unfit.add(name)
                yield Unfit(name, fault)
            return
        seen.add(name)
        kept = self._kept.find(self._key(name), state) if known is None else None
        if kept is not None:
            yield self._know(name, kept)
        elif self._rests(name, state, known):
            yield from self._read(name)

    def _rests(self, name: str, state: os.stat_result, known: Digest | None) -> bool:
        """Tell whether a file may be read now: it has settled, or has been changing for very long."""
        settle_s, now = self._rules.settle_s, time.monotonic()
        if not settle_s or self._at_once:
            return True
        signature = sign(state)
        rest = self._resting.get(name)
        if rest is None:
            again = now - self._read_at.get(name, -settle_s) < settle_s
            young = state.st_size >= LARGE_OCTETS and time.time() - state.st_mtime < settle_s
            if (known is not None and known.signature == signature) or not (again or young):
                return True
            rest = _Rest(signature, now, now)
        elif rest.signature != signature:
            rest = rest._replace(signature=signature, since=now)
        self._resting[name] = rest
        return now - rest.since >= settle_s or now - rest.begun >= LONGEST_REST * settle_s

    def _read(self, name: str) -> Iterator[Change]:
        self._resting.pop(name, None)
        if self._rules.settle_s:
            self._note_reading(name)
        try:
            descriptor = self.open_entry(name)
            try:
                digest = digest_file(descriptor, self._abandoned.is_set)
            finally:
                os.close(descriptor)
        except UnstableError:
            yield from self._keep_unread(name, "")
        except (OSError, ContainmentError) as fault:
            if (trouble := trouble_in(fault)) is None:
                yield from self._forget([name])
            else:
                yield from self._keep_unread(name, f"cannot be read: {trouble}")
        else:
            self._unread.pop(name, None)
            self._kept.put(self._key(name), digest)
            yield self._know(name, digest)

    def _note_reading(self, name: str) -> None:
        """Note when a file was read; what was read long ago is of no interest."""
        now = time.monotonic()
        if len(self._read_at) > MANY_PLACES:
            self._read_at = {
                other: at for other, at in self._read_at.items() if now - at < self._rules.settle_s
            }
        self._read_at[name] = now

    def _keep_unread(self, name: str, reason: str) -> Iterator[Change]:
        """A file is there and cannot be read: what was known of it last stays, also from an earlier run."""
        self._unread[name] = reason
        yield from self._keep_unfound([name])

    def _know(self, name: str, digest: Digest) -> Put:
        self._known.put(name, digest)
        return Put(Entry(name, digest.signature.size, digest.sha1, digest.signature, digest.fresh))

    def _forget(self, names: Iterable[str]) -> list[Change]:
        gone: list[Change] = []
        for name in sorted(names):
            self._unread.pop(name, None)
            self._resting.pop(name, None)
            if self._known.remove(name):
                self._untold.pop(name, None)
                gone.append(Gone(name))
                self._kept.remove(self._key(name))
            elif self._kept.take(self._key(name)) is not None:
                self._kept.remove(self._key(name))
        return gone


def _rename_places(state: FolderState, rename: Callable[[str], str]) -> FolderState:
    """Return the state with other names for its places."""
    devices = {rename(place): device for place, device in state.devices.items()}
    return FolderState(devices, tuple(map(rename, state.asked)))


def _name_of(change: Change) -> str:
    return change.entry.name if isinstance(change, Put) else change.name
