"""Policy of a server for files that a walk did not find: withdraw, keep or ask.

A server withdraws a file only when the disk says that it is gone. If the disk does not say what is
there (`disk.Unknown`), the last known state stays. If a whole folder is suspicious (it had files
and is empty at a start, or is on another device than before), its files stay listed until somebody
confirms, or until all are there again.

The policy of a subscriber is in `deletion`. The settings of both are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from specwire.runtime.filemq.disk import Mount, Unknown
from specwire.runtime.filemq.names import covers, is_below
from specwire.runtime.quantities import show_count

CONFIRM = "start the server with --accept-empty to withdraw what is missing"


class PublicationRules(msgspec.Struct, frozen=True):
    """Settings of a publication.

    Attributes:
        accept_empty: withdraw what the first walk does not find, even if the folder is empty or on
            another device.
        settle_s: a file that changes again within this time, or is large and newer than this, is
            published once it has not changed for this time; 0: publish at once.
        ignore: patterns of files that are not published; see `ignore`.
        empty_folders: publish empty folders too.
    """

    accept_empty: bool = False
    settle_s: float = 0.0
    ignore: tuple[str, ...] = ()
    empty_folders: bool = False


class InboxRules(msgspec.Struct, frozen=True):
    """Settings of an inbox.

    Attributes:
        delete_share: share of the files that deletions may remove within `window_s`.
        delete_files: number of files that deletions may remove within `window_s`.
        accept_deletions: perform all deletions until none came for `window_s`.
        trash_s: how long deleted and replaced files are kept; 0: not at all.
        check_s: time between two comparisons of the inbox with what was received.
        always: number of deletions that is always allowed, for small inboxes.
        ignore: patterns of files that are neither received nor deleted; see `ignore`.
    """

    delete_share: float = 0.5
    delete_files: int = 1000
    accept_deletions: bool = False
    trash_s: float = 7 * 24 * 3600.0
    check_s: float = 60.0
    window_s: float = 600.0
    always: int = 10
    ignore: tuple[str, ...] = ()


class FolderState(msgspec.Struct, frozen=True):
    """State of a published folder, besides its files, that is kept from one run to the next.

    Attributes:
        devices: by virtual path, the device of the folder itself and of each folder that is on
            another device than its parent; empty if nothing was stored.
        asked: places whose files stay listed until somebody confirms.
    """

    devices: Mapping[str, str] = {}
    asked: tuple[str, ...] = ()


class Look(NamedTuple):
    """Result of one walk through a publication.

    Attributes:
        path: virtual path of the publication.
        lost: names of files that were known and were not found.
        held: number of files that were known.
        mounts: the devices that were found. The folder itself is the first.
        unknown: places that could not be read.
        empty: nothing was found, at a start or after a replacement of the folder. It may be a mount
            point without its disk.
    """

    path: str
    lost: set[str]
    held: int
    mounts: list[Mount]
    unknown: list[Unknown]
    empty: bool


class Decision(NamedTuple):
    """Outcome of the policy.

    Attributes:
        withdraw: names of files to withdraw.
        keep: places whose files stay listed, with the reason.
        state: what to store for the next run.
        waiting: some files stay until somebody confirms that they are gone.
    """

    withdraw: set[str]
    keep: dict[str, str]
    state: FolderState
    waiting: bool


def decide(look: Look, before: FolderState, *, accept: bool) -> Decision:
    """Return what to do about files that a walk did not find.

    Args:
        accept: somebody has confirmed that missing files are gone.
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
    asked = tuple(place for place in waiting if place not in elsewhere)  # `devices` remembers these
    withdraw = {name for name in lost if not is_below(name, keep)}
    return Decision(withdraw, keep, FolderState(devices, asked), bool(waiting))


def _find_elsewhere(before: FolderState, devices: Mapping[str, str]) -> dict[str, str]:
    """Return the places that are on another device than before."""
    places = before.devices.keys() | devices.keys() if before.devices else ()
    changed = [place for place in sorted(places) if before.devices.get(place) != devices.get(place)]
    return dict.fromkeys(changed, "lies on another device than before")


def _find_emptied(look: Look, before: FolderState) -> dict[str, str]:
    """Return the places that had files and have none, now or when the user was asked before."""
    emptied = dict.fromkeys(before.asked, "held more files, and nobody has confirmed that they are gone")
    if look.empty and look.held:
        emptied[look.path] = f"held {show_count(look.held, 'file')} and holds none"
    return emptied


def device_at(place: str, devices: Mapping[str, str]) -> str | None:
    """Return the device on which a folder was, None if that was not stored."""
    best = max((known for known in devices if covers(known, place)), key=len, default=None)
    return None if best is None else devices[best]
