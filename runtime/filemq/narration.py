"""Events in words, one line each, for a log that a person reads.

What an outsider can cause (`Refused`) is told at a bounded rate: a hostile peer must not fill a disk with log
lines. What was left out is counted, and the count told with the next line. How far files are is told every few
seconds, of many files in one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import assert_never

from specwire.runtime.filemq.events import (
    Event,
    FileDeleted,
    FilePublished,
    FileReceived,
    FileRestored,
    FileResumed,
    FileSent,
    FileWithdrawn,
    PeerClosed,
    PeerOpened,
    Progress,
    Refused,
    Subscribed,
)
from specwire.runtime.log.quota import Quota
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_duration, show_octets, show_rate, show_share

PROGRESS_S = 5.0
FILES_SHOWN = 4

LONGEST_PEER = 40
_HEXADECIMAL = re.compile("[0-9a-f]+")

OfFile = (
    FileReceived
    | FileDeleted
    | FilePublished
    | FileWithdrawn
    | FileSent
    | FileResumed
    | FileRestored
    | Progress
)
"""Events that a file may cause by itself, and a folder by the thousand."""


def show_peer(peer: str) -> str:
    """Return a peer for a line, in 20 octets of hexadecimal or fewer.

    A longer routing id that somebody chose as text is shown as that; what is too long loses its middle, so that ids
    that begin alike are told apart, and has its length told.
    """
    if len(peer) <= LONGEST_PEER or len(peer) % 2 or not _HEXADECIMAL.fullmatch(peer):
        return peer
    octets = bytes.fromhex(peer)
    if all(0x21 <= octet <= 0x7E for octet in octets):
        text = octets.decode()
        return text if len(text) <= LONGEST_PEER else f"{text[:16]}…{text[-16:]} ({len(octets)} octets)"
    return f"{peer[:16]}…{peer[-8:]} ({len(octets)} octets)"


def describe(event: Event) -> str:
    """Return one line about `event`."""
    match event:
        case FileReceived(path=path, size=size, sha1=sha1, verified=verified, copy=copy):
            doubt = "" if verified else ", unverified"
            return f"received {show(path)} ({size:,} octets, SHA-1 {sha1}{doubt}){describe_copy(copy)}"
        case FileDeleted(path=path, copy=copy):
            return f"deleted {show(path)}{describe_copy(copy)}"
        case FileRestored(path=path):
            return f"restored {show(path)}: too many files would be deleted"
        case FilePublished(path=path, size=size, sha1=sha1):
            return f"published {show(path)} ({size:,} octets, SHA-1 {sha1})"
        case FileWithdrawn(path=path):
            return f"withdrawn {show(path)}"
        case FileSent(path=path, size=size, peer=peer):
            return f"sent {show(path)} to {show_peer(peer)} ({size:,} octets)"
        case FileResumed(path=path, offset=offset, peer=peer):
            return f"resumed {show(path)}{f' to {show_peer(peer)}' if peer else ''} at {offset:,} octets"
        case Progress():
            return describe_progress(event)
        case Subscribed(path=path, peer=peer):
            return (
                f"subscribed to {show(path)}" if not peer else f"{show_peer(peer)} subscribed to {show(path)}"
            )
        case Refused(name=name, reason=reason, peer=peer):
            return f"refused {show(name)}{f' of {show_peer(peer)}' if peer else ''}: {show(reason)}"
        case PeerOpened(peer=peer, user=user):
            return f"connected with {show_peer(peer)}{f' of {show(user)}' if user else ''}"
        case PeerClosed(peer=peer, reason=reason):
            return f"disconnected from {show_peer(peer)}: {show(reason)}"
        case _:
            assert_never(event)


def describe_copy(copy: str) -> str:
    """Return where the version is that was changed in the inbox, nothing where there was none."""
    return f"; it was changed here, and that version is kept as {show(copy)}" if copy else ""


def describe_progress(file: Progress) -> str:
    """Return how far a file is, how fast it comes, and how long it will take at that rate."""
    whose = (
        f"sending {show(file.path)} to {show_peer(file.peer)}"
        if file.peer
        else f"receiving {show(file.path)}"
    )
    if file.size is None:
        return f"{whose}: {show_octets(file.octets)}, {show_rate(file.octets_per_s)}"
    left = show_duration((file.size - file.octets) / file.octets_per_s)
    share = f"{show_share(file.octets, file.size)} of {show_octets(file.size)}"
    return f"{whose}: {share}, {show_rate(file.octets_per_s)}, {left} left"


def describe_together(files: Collection[Progress]) -> str:
    """Return how many files are under way, and how fast all of them together."""
    rate = show_rate(sum(file.octets_per_s for file in files))
    peers = len({file.peer for file in files})
    return f"{len(files)} files are under way to {peers} clients, {rate} together"


class Narrator:
    """Writes a line for each event.

    Args:
        write: takes one line.
        clock: seconds that do not go backwards.
        files: tell of each file; else only of peers and refusals. May be changed.
    """

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float], *, files: bool = True
    ) -> None:
        self._write, self._clock, self.files = write, clock, files
        self._refusals = Quota(write, clock, "more were refused")
        self._under_way: dict[tuple[str, str], Progress] = {}
        self._progress_told = clock() - PROGRESS_S

    def tell(self, event: Event) -> None:
        """Write what happened, unless it is one refusal too many, or it is soon for progress."""
        if not self.files and isinstance(event, OfFile):
            return
        match event:
            case Progress(path=path, peer=peer):
                self._under_way[peer, path] = event
                self._tell_progress()
                return
            case FileReceived(path=path):
                self._under_way.pop(("", path), None)
            case FileSent(path=path, peer=peer):
                self._under_way.pop((peer, path), None)
            case PeerClosed(peer=peer):
                self._under_way = {
                    key: file for key, file in self._under_way.items() if key[0] not in (peer, "")
                }
        write = self._refusals.write if isinstance(event, Refused) else self._write
        write(describe(event))

    def _tell_progress(self) -> None:
        """Tell of all files together that have moved since progress was told last."""
        now = self._clock()
        if now - self._progress_told < PROGRESS_S:
            return
        files, self._under_way, self._progress_told = self._under_way.values(), {}, now
        if len(files) > FILES_SHOWN:
            self._write(describe_together(files))
        else:
            for file in files:
                self._write(describe(file))
