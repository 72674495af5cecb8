"""Policy for files that are not where they were: withdraw, keep or ask on a server; delete or hold
in an inbox.

A server withdraws a file only when the disk says that it is gone. Where the disk says nothing
(`disk.Unknown`), the last known state stays. Where a whole folder is suspicious (it held files and
is empty at a start, or lies on another device than before), its files stay listed until somebody
confirms, or until they are all there again.

A subscriber holds deletions back when too many of its files would go within a short time
(`DeletionLimit`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from specwire.runtime.filemq.disk import Mount, Unknown
from specwire.runtime.filemq.names import covers, is_below
from specwire.runtime.quantities import show_count

CONFIRM = "start the server with --accept-empty to withdraw what is missing"


class PublicationRules(msgspec.Struct, frozen=True):
    """Settings of a publication.

    Attributes:
        accept_empty: withdraw what the first look does not find, although the folder is empty or on
            another device.
        settle_s: a file that changes again so soon, or is large and so new, is published when it
            rests; 0: at once.
    """

    accept_empty: bool = False
    settle_s: float = 0.0


class InboxRules(msgspec.Struct, frozen=True):
    """Settings of an inbox.

    Attributes:
        delete_share: share of the files by which deletions may reduce them within `window_s`.
        delete_files: number of files by which deletions may reduce them within `window_s`.
        accept_deletions: perform the deletions that come first, however many, until none came for
            `window_s`.
        trash_s: how long deleted and replaced files are kept; 0: not at all.
        check_s: how often the inbox is compared with what was received.
        always: so many deletions are never too many: half of a small inbox is soon reached.
    """

    delete_share: float = 0.5
    delete_files: int = 1000
    accept_deletions: bool = False
    trash_s: float = 7 * 24 * 3600.0
    check_s: float = 60.0
    window_s: float = 600.0
    always: int = 10


class FolderState(msgspec.Struct, frozen=True):
    """What is remembered of a published folder besides its files, from one run to the next.

    Attributes:
        devices: the device of the folder itself, by its virtual path, and of each folder that lies
            on another one than its parent; empty where nothing was noted.
        asked: places whose files stay listed until somebody confirms.
    """

    devices: Mapping[str, str] = {}
    asked: tuple[str, ...] = ()


class Look(NamedTuple):
    """Result of one walk through a publication.

    Attributes:
        path: virtual path of the publication.
        lost: names of files that were known and were not found.
        held: how many files were known.
        mounts: the devices that were found; the folder itself is the first.
        unknown: places of which the disk said nothing.
        empty: the folder may be a place to mount a disk at: nothing was found in it, at a start or
            a replacement.
    """

    path: str
    lost: set[str]
    held: int
    mounts: list[Mount]
    unknown: list[Unknown]
    empty: bool


class Decision(NamedTuple):
    """Files to withdraw; the places whose files stay listed, with the reason; and what to remember.

    `waiting` where some of these files stay until somebody confirms that they are gone.
    """

    withdraw: set[str]
    keep: dict[str, str]
    state: FolderState
    waiting: bool


def decide(look: Look, before: FolderState, *, accept: bool) -> Decision:
    """Return what to do about files that a walk did not find.

    Args:
        accept: somebody has confirmed that what is missing is gone.
    """
    keep = {place.name: place.reason for place in look.unknown}
    lost = {name for name in look.lost if not is_below(name, keep)}
    devices = {mount.name: mount.device for mount in look.mounts}
    elsewhere = _find_elsewhere(before, devices)
    suspects = elsewhere | {p: why for p, why in _find_emptied(look, before).items() if p not in elsewhere}
    waiting: list[str] = []
    for place, why in () if accept else suspects.items():
        missing = sum(covers(place, name) for name in lost)
        if missing:
            waiting.append(place)
            keep[place] = f"{why}: {show_count(missing, 'file')} missing there stay listed; {CONFIRM}"
    devices |= {place: device for place, device in before.devices.items() if is_below(place, keep)}
    asked = tuple(place for place in waiting if place not in elsewhere)  # the device speaks for itself
    withdraw = {name for name in lost if not is_below(name, keep)}
    return Decision(withdraw, keep, FolderState(devices, asked), bool(waiting))


def _find_elsewhere(before: FolderState, devices: Mapping[str, str]) -> dict[str, str]:
    """Return the places that lie on another device than before."""
    places = before.devices.keys() | devices.keys() if before.devices else ()
    changed = [place for place in sorted(places) if before.devices.get(place) != devices.get(place)]
    return dict.fromkeys(changed, "lies on another device than before")


def _find_emptied(look: Look, before: FolderState) -> dict[str, str]:
    """Return the places that held files and hold none, now or when somebody was asked about it."""
    emptied = dict.fromkeys(before.asked, "held more files, and nobody has confirmed that they are gone")
    if look.empty and look.held:
        emptied[look.path] = f"held {show_count(look.held, 'file')} and holds none"
    return emptied


def device_at(place: str, devices: Mapping[str, str]) -> str | None:
    """Return the device on which a folder has to lie, None where nothing was noted."""
    best = max((known for known in devices if covers(known, place)), key=len, default=None)
    return None if best is None else devices[best]


class DeletionLimit:
    """Limit of how far deletions may reduce the number of files within a window of time.

    Files that come and go do not count, only how many fewer there are than at the best moment of
    the window. Once the limit is exceeded no deletion is allowed as long as one is withheld.

    Attributes:
        withheld: what was not allowed; kept up to date by the owner.
    """

    def __init__(self, rules: InboxRules) -> None:
        self._rules = rules
        # When there were how many files; the numbers fall.
        self._peaks: deque[tuple[float, int]] = deque()
        self._recent: deque[tuple[float, str]] = deque(maxlen=max(rules.delete_files, rules.always))
        self._accepted_until = math.inf if rules.accept_deletions else -math.inf
        self._suspects, self._suspect_until = frozenset[str](), -math.inf
        self.withheld: Collection[str] = ()

    def accept(self) -> None:
        """Allow every deletion until none came for the length of the window."""
        self._accepted_until, self._suspects = math.inf, frozenset()

    def is_accepting(self, now: float) -> bool:
        """Tell whether every deletion is allowed now."""
        return now <= self._accepted_until

    def suspect(self, names: Iterable[str], now: float) -> None:
        """Allow none of these, which were withheld, when they are asked for again within the window."""
        self._suspects, self._suspect_until = frozenset(names), now + self._rules.window_s

    def allows(self, name: str, held: int, now: float) -> bool:
        """Tell whether one of `held` files may be deleted now, and count it."""
        if self.is_accepting(now):
            self._accepted_until = now + self._rules.window_s
            return True
        if self.withheld or (name in self._suspects and now < self._suspect_until):
            return False
        while self._peaks and now - self._peaks[0][0] >= self._rules.window_s:
            self._peaks.popleft()
        while self._peaks and self._peaks[-1][1] <= held:
            self._peaks.pop()
        self._peaks.append((now, held))
        peak = self._peaks[0][1]
        if peak - held >= self.most(peak):
            return False
        self._recent.append((now, name))
        return True

    def take_back(self) -> list[str]:
        """Return what was allowed since the best moment of the window, and count it no more."""
        since = self._peaks[0][0] if self._peaks else math.inf
        names = [name for at, name in self._recent if at >= since]
        self._recent.clear()
        self._peaks.clear()
        return names

    def most(self, held: int) -> int:
        """Return by how many files so many may be reduced."""
        return max(self._rules.always, min(self._rules.delete_files, int(held * self._rules.delete_share)))
