"""Published folder at a virtual path: its files, and what changed.

One thread at a time looks at a publication. `scan` compares the whole folder with the index;
`examine` looks only at the places that a notification named. Both return changes, deletions first,
so that a file that became a folder is withdrawn before the files in it are published.

A place that cannot be read keeps its last known state; see `disk` and `policy`. While the folder
cannot be opened, or another empty one is in its place, everything stays listed. `Doubt` and `Trust`
report such places once.

Empty folders are listed if the rules say so. Ignored files are not published, and ignored folders
not walked (`ignore`). Files that become ignored are withdrawn at the next walk like deleted ones.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from specwire.runtime.containment import ContainmentError, open_folder
from specwire.runtime.filemq.catalogue import Change, Doubt, Trust, Unfit
from specwire.runtime.filemq.digeststore import DigestStore, StoredDigests
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
from specwire.runtime.filemq.index import FileIndex
from specwire.runtime.filemq.names import (
    MAX_NAME_OCTETS,
    RESERVED,
    IgnoreRule,
    covers,
    fault_in_path,
    is_below,
    is_folder,
    normalise_path,
)
from specwire.runtime.filemq.policy import FolderState, Look, PublicationRules, decide, device_at
from specwire.runtime.filemq.reading import AbandonedError

logger = logging.getLogger(__name__)

MANY_PLACES = 1000
"""For more notifications at once, one walk through the folder takes less time."""

MOVED = "lies on another device than before; the next walk decides what becomes of its files"

DEFAULT_RULES = PublicationRules()


class Publication:
    """One published folder.

    Args:
        folder: the folder. It must exist when `open` is called.
        path: its virtual path, ``/`` for the root.
        digests: keeps the digests from one run to the next. Otherwise each run reads every file.
        rules: settings.

    Attributes:
        ignore: which files are not published, from the next walk on.
        missing: the folder did not exist at the last look.
        doubts: places that cannot be read now, with the reason. May be read by any thread.
        rests_at: when to look at growing files, by the monotonic clock; None if there are none.

    Raises:
        ValueError: `path` is not a virtual path, or a pattern of `rules` is not valid.
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
        self._prefix = "/" if self.path == "/" else f"{self.path}/"
        self._rules, self._accept = rules, rules.accept_empty
        self.ignore = IgnoreRule(rules.ignore, self.path)
        self._digests = digests
        self._abandoned = threading.Event()
        self._index = FileIndex(self.open_entry, rules.settle_s, self._abandoned.is_set)
        self._root = Root()
        self._walked_root: int | None = None  # `Root.replaced` at the last complete walk
        self.missing = False
        self.doubts: dict[str, str] = {}
        self.rests_at: float | None = None
        self._state = FolderState()
        self._waiting = False
        self._unseen: dict[str, str] = {}  # places that could not be read

    def open(self, *, longest_octets: int = MAX_NAME_OCTETS) -> None:
        """Open the folder, for names of up to so many octets; raises OSError."""
        self._index.longest_octets = longest_octets
        self.folder = self.folder.resolve()  # notifications have absolute paths
        self._root.open(self.folder)
        self._abandoned.clear()
        if self._digests is not None and self._digests.is_inside(self.folder):
            logger.warning("%s is published: no digests are kept there", self._digests.folder)
        elif self._digests is not None:
            stored = self._index.stored = StoredDigests(self._digests, self.folder, self.path)
            self._state = stored.state

    def skips(self, place: str) -> bool:
        """Return whether the folder at this path in the file system is ignored."""
        return self.ignore.ignores_folder(self._virtual_name(place))

    def accept(self) -> None:
        """Withdraw what the next walk does not find, even if a folder is suspicious."""
        self._accept = True

    def abandon(self) -> None:
        """End every look with AbandonedError, also in another thread. Call it before `close`."""
        self._abandoned.set()

    def close(self) -> None:
        """Close the folder, and store the digests of files that an abandoned look has read."""
        self._index.stored.save()
        self._root.close()

    @property
    def replaced(self) -> int:
        """How often another folder was found at the path."""
        return self._root.replaced

    @property
    def waits(self) -> bool:
        """Whether files stay listed until the folder is back, or somebody confirms that they are gone."""
        return self.missing or self._waiting

    def holds(self, marks: str) -> bool:
        """Return whether this is one of the folders with these marks, in which a client's inbox lies."""
        return mark_of(os.fstat(self._root.descriptor)) in marks.split(",")

    def overlaps(self, other: Publication) -> bool:
        """Return whether two publications could name the same file."""
        return covers(self.path, other.path) or covers(other.path, self.path)

    def open_entry(self, name: str) -> int:
        """Return a descriptor of a published file, in any thread; raises OSError or ContainmentError."""
        return open_file(self._root.descriptor, self._inner_name(name))

    def scan(self, *, at_once: bool = True) -> list[Change]:
        """Compare the whole folder with the index.

        Args:
            at_once: also publish files that are still growing.
        """
        if (absence := self._find_root()) is not None:
            return absence
        changed = self._index.ignore.patterns != self.ignore.patterns
        ignored = self._index.forget_ignored(self.ignore) if changed else []
        look = Look(self.path, set(), 0, [], [], empty=self._walked_root != self._root.replaced)
        look.mounts.append(Mount(self.path, self._root.device))
        skips = self._index.ignore.ignores_folder
        answers = walk(self._root.descriptor, self._prefix, self._index.longest_octets, skips=skips)
        met = set[str]()
        found = [*self._compare(answers, met, look, at_once=at_once)]
        first = self._find_root()  # if it vanished during the walk, files that were not met are not gone
        if first is None:
            first = self._conclude(look, met)
            self._index.stored.save()
        return [*ignored, *first, *found]

    def _conclude(self, look: Look, met: set[str]) -> list[Change]:
        """Withdraw what a complete walk did not find, as far as the policy allows."""
        index = self._index
        unfound = index.stored.unfound()
        lost = index.known.all_but(met) | unfound - met
        held = len(index.known) + len(unfound)
        look = look._replace(lost=lost, held=held, empty=look.empty and all(map(is_folder, met)))
        decision = decide(look, self._state, accept=self._accept)
        self._accept, self._walked_root = False, self._root.replaced
        self._state = index.stored.state = decision.state
        self._unseen, self._waiting = decision.keep, decision.waiting
        gone = index.forget(decision.withdraw)
        return [*gone, *index.restore(unfound - decision.withdraw), *self._report_doubts()]

    def examine(self, places: Iterable[str]) -> list[Change]:
        """Look at files and folders, given as paths in the file system below the folder's path."""
        if (absence := self._find_root()) is not None:
            return absence
        names = sorted({self._virtual_name(place) for place in places})
        if len(names) > MANY_PLACES or self._prefix in names:
            return self.scan(at_once=False)
        names = [name for name in names if not self._index.ignore.ignores(name)]
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
        # Forget what is gone before anything is read: it may exist again by then.
        lost = {*names} - files | self._index.known.under({*names} - folders)
        lost -= {place.name for place in here if is_folder(place.name)}
        gone = self._index.forget(n for n in lost if not is_below(n, self._unseen))
        found = [*self._compare(here, set())]
        self._index.stored.save()
        return [*gone, *found, *self._report_doubts()]

    def examine_name(self, name: str) -> list[Change]:
        """Look at one file, by its virtual name."""
        return self.examine([self._place_of(name)])

    def examine_resting(self) -> list[Change]:
        """Look at the growing files."""
        return self.examine([self._place_of(name) for name in self._index.growing.names()])

    def _find_root(self) -> list[Change] | None:
        """Open the folder at the path; if there is none, return the changes to report."""
        fault = self._root.find(may_be_empty=self._accept or not self._index.known)
        was_missing, self.missing = self.missing, fault is not None
        if fault is not None:
            reason = f"its folder {self.folder} {fault}, so its files stay listed until it is back"
            return [] if was_missing else [Unfit(self.path, reason)]
        if was_missing:
            logger.warning("%s is back", self.folder)
        return None

    def _report_doubts(self) -> Iterator[Change]:
        """Report places that came into doubt, or are in doubt no more."""
        doubts = self._index.unread | self._unseen
        before, self.doubts = self.doubts, doubts
        self.rests_at = self._index.growing.due
        yield from (Trust(name) for name in before if name not in doubts)
        yield from (Doubt(name, reason) for name, reason in doubts.items() if name not in before)

    def _inner_name(self, name: str) -> str:
        return name if self.path == "/" else name[len(self.path) :]

    def _place_of(self, name: str) -> str:
        return str(self.folder / self._inner_name(name)[1:])

    def _virtual_name(self, place: str) -> str:
        inner = os.path.relpath(place, self.folder)
        folders = inner.split("/")
        if RESERVED in folders:  # an inbox: report the folder, as a walk does, and not each file in it
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
        device, skips = os.fstat(parent).st_dev, self._index.ignore.ignores_folder
        for answer in look_at(parent, leaf, name, self._index.longest_octets, device=device, skips=skips):
            if not isinstance(answer, Mount):
                yield answer
            elif expected.pop(answer.name, None) != answer.device:
                yield Unknown(answer.name, MOVED)
        yield from (Unknown(place, MOVED) for place in expected if place != self.path)

    def _is_where_it_was(self, folder: int, name: str) -> bool:
        """Return whether an open folder is on the device that the last walk found."""
        expected = device_at(name, self._state.devices)
        return expected is None or self._walked_root is None or expected == device_of(folder)

    def _compare(
        self, answers: Iterable[Answer], seen: set[str], look: Look | None = None, *, at_once: bool = False
    ) -> Iterator[Change]:
        """Yield the changes that follow from the answers of the disk."""
        for answer in answers:
            if self._abandoned.is_set():
                raise AbandonedError
            match answer:
                case Present(name) if is_folder(name) and self._is_unlisted(name):
                    pass
                case Present(name, state):
                    yield from self._index.compare(name, state, seen, at_once=at_once)
                case Unknown() if look is not None:
                    look.unknown.append(answer)
                case Mount() if look is not None:
                    look.mounts.append(answer)

    def _is_unlisted(self, folder: str) -> bool:
        """Return whether an empty folder is not published."""
        return folder == self._prefix or not self._rules.empty_folders
