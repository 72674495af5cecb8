"""What happens to a running server, and what it does: sockets, files and the clock around `ServerEngine`.

Everything that happens (a message, a change of a file, a chunk read, a tick) is given to the engine, whose actions
are performed in order from one agenda. Backpressure: a chunk is read only when everything sent to that client before
has been taken by the socket, whose own queue is short.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import islice

import msgspec

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq.actions import (
    Abandon,
    CheckPart,
    Close,
    Pause,
    ReadChunk,
    Report,
    Send,
    ServerAction,
)
from specwire.runtime.filemq.agenda import Agenda
from specwire.runtime.filemq.catalogue import (
    Catalogue,
    Change,
    Doubt,
    Entry,
    Gone,
    PublicationTotals,
    Put,
    Trust,
    Unfit,
)
from specwire.runtime.filemq.checking import PartChecks
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.dialect import Dialect
from specwire.runtime.filemq.entrance import Entrance
from specwire.runtime.filemq.events import Event, FilePublished, FileWithdrawn, Refused
from specwire.runtime.filemq.ignore import IgnoreRule
from specwire.runtime.filemq.names import as_utf8, covers
from specwire.runtime.filemq.progress import LOOK_S, ProgressLooks
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.readers import Readers
from specwire.runtime.filemq.server import ServerEngine
from specwire.runtime.filemq.settling import Settling
from specwire.runtime.filemq.status import ClientStatus, Doubtful, PublicationStatus
from specwire.runtime.filemq.tasks import Tasks
from specwire.runtime.filemq.watcher import Watcher
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.port import require_free

LINGER_S = 0.5
KEPT = "what was known there stays as it was"
DOUBTS_SHOWN = 20


class Serving:
    """One server at work.

    Args:
        engine: decides.
        catalogue: what is published; kept by this class, read by the engine.
        tell: called with each event.
        counters: counts what is received and sent.
        tap: gets every message of every client, in both directions.
        tick_s: how often the engine is told the time.
        rescan_s: how often the folders are walked besides the notifications.
    """

    def __init__(
        self,
        engine: ServerEngine,
        catalogue: Catalogue,
        publications: Sequence[Publication],
        *,
        dialect: Dialect,
        tell: Callable[[Event], None],
        counters: Counters,
        tap: Recorder | None,
        tick_s: float,
        rescan_s: float,
    ) -> None:
        self._engine, self._catalogue, self._publications = engine, catalogue, publications
        self._dialect, self._counters, self._tell, self._tap = dialect, counters, tell, tap
        self._tick_s = tick_s
        self._agenda = Agenda(self._do)
        self._readers = Readers(self._find, self._on_read)
        self._checks = PartChecks(self._find, self._on_checked)
        self._watcher = Watcher(
            publications,
            self._on_changes,
            rescan_s=rescan_s,
            longest_name_octets=dialect.habits.longest_name_octets,
        )
        self._totals = {publication.path: PublicationTotals() for publication in publications}
        self._looks = ProgressLooks()
        self._settling = Settling()
        self._held_back: dict[bytes, list[ReadChunk | Pause]] = {}
        self._tasks = Tasks("the FILEMQ server")
        self._session = os.urandom(4).hex()
        self._listening = False

    async def open(self, entrance: Entrance, endpoint: str) -> str:
        """Scan the publications and listen; return the endpoint as bound.

        Raises:
            OSError: a publication cannot be read.
            TransportError: the endpoint cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        self._clock = asyncio.get_running_loop().time
        await entrance.open(
            endpoint,
            on_message=self._on_message,
            on_sent=self._on_sent,
            on_room=self._on_room,
            on_gone=lambda peer, reason: self._perform(self._engine.gone(peer, reason)),
            on_turned_away=lambda reason: self._perform([Report(Refused("a client", reason))]),
            on_cut=self._on_cut,
        )
        self._entrance, self._router = entrance, entrance.router
        try:
            require_free(endpoint)  # to read what is published may take hours
            await self._watcher.start()
            bound = self._router.bind(endpoint)
        except BaseException:
            await self._release(linger_s=0.0)
            raise
        self._listening = True
        self._tasks.start(self._tick())
        self._tasks.start(self._follow_progress())
        return bound

    async def close(self) -> None:
        """Say KTHXBAI to every client where the dialect has it, and release everything."""
        self._router.pause()  # what is still under way is not to be answered after the goodbye
        self._perform(self._engine.close(self._clock()))
        try:
            self._agenda.finish()
        finally:
            await self._release(linger_s=LINGER_S)

    def review(self) -> None:
        """Judge every subscription anew."""
        self._perform(self._engine.review(self._clock()))

    async def change_keys(self, keys: KeyPair, endpoint: str) -> None:
        """Prove to be the server by other keys; raises TransportError."""

        def say(reason: str) -> None:
            self._tell(Refused("a client", reason))

        await self._entrance.change_keys(keys, endpoint, say)

    async def rescan(self) -> None:
        """Look at every folder now."""
        await self._watcher.rescan()

    def accept_empty(self) -> None:
        """Withdraw what is missing now, although it may only be out of sight."""
        for publication in self._publications:
            publication.accept()
        self._tasks.start(self._watcher.rescan())

    def ignore(self, patterns: Sequence[str]) -> None:
        """Ignore files by other patterns in all publications; raises ValueError."""
        rules = [IgnoreRule(patterns, publication.path) for publication in self._publications]
        for publication, rule in zip(self._publications, rules, strict=True):
            publication.ignore = rule
        self._tasks.start(self._watcher.rescan())

    def describe_publications(self) -> tuple[PublicationStatus, ...]:
        """Tell what is published."""
        return tuple(
            PublicationStatus(
                p.path,
                as_utf8(str(p.folder)),
                held.files,
                held.octets,
                tuple(
                    Doubtful(as_utf8(name), reason)
                    for name, reason in islice(p.doubts.items(), DOUBTS_SHOWN)
                    if reason
                ),
                p.missing,
            )
            for p in self._publications
            for held in (self._totals[p.path],)
        )

    def describe_clients(self) -> tuple[ClientStatus, ...]:
        """Tell how each client is."""
        return tuple(
            msgspec.structs.replace(
                client, under_way=client.under_way and self._looks.rated(client.under_way)
            )
            for client in self._engine.describe(self._clock())
        )

    async def _release(self, *, linger_s: float) -> None:
        await self._tasks.close()
        await self._watcher.close()
        await self._readers.close()
        await self._checks.close()
        self._agenda.close()
        await self._entrance.close(linger_s=linger_s)

    # ---- what happens

    def _on_message(self, peer: bytes, frames: list[bytes]) -> None:
        self._counters.count_in(frames)
        self._record("C", peer, frames)
        user = self._router.user
        # Performed by itself: what still waits for the one that was displaced is not for the newcomer.
        self._perform(self._engine.displace(peer, user))
        self._perform(self._engine.receive(peer, frames, self._clock(), user=user))

    def _on_cut(self, reason: str) -> None:
        self._counters.cut_off += 1
        self._perform([Report(Refused("a client", reason))])

    def _on_sent(self, peer: bytes, frames: Sequence[bytes]) -> None:
        self._counters.count_out(frames)
        self._record("S", peer, frames)

    def _record(self, sender: str, peer: bytes, frames: Sequence[bytes]) -> None:
        if self._tap is not None:
            label = peer.hex()
            self._tap.record(
                sender=sender, peer=label, conversation=f"{self._session}-{label}", frames=frames
            )

    def _on_room(self, peer: bytes) -> None:
        self._perform(self._held_back.pop(peer, ()))

    def _on_read(self, action: ReadChunk, chunk: bytes | None) -> None:
        self._router.redeem(action.peer, action.size)
        if chunk is not None:
            self._perform(self._engine.chunk_read(action.peer, action.transfer, chunk, self._clock()))
        else:
            self._tasks.start(self._look_again(action))

    def _on_checked(self, action: CheckPart, sha1: str | None) -> None:
        if sha1 is not None:
            self._perform(self._engine.part_checked(action.peer, action.transfer, sha1, self._clock()))
        else:
            self._tasks.start(self._look_again(action))

    def _on_changes(self, publication: Publication, changes: list[Change]) -> None:
        for change in changes:
            match change:
                case Put(entry=entry):
                    self._totals[publication.path].replace(self._catalogue.find(entry.name), entry)
                    self._publish(entry)
                case Gone(name=name) if (old := self._catalogue.find(name)) is not None:
                    self._totals[publication.path].replace(old, None)
                    self._catalogue.remove(name)
                    self._perform([Report(FileWithdrawn(name)), *self._engine.withdraw(name, self._clock())])
                case Unfit(name=name, reason=reason):
                    self._perform([Report(Refused(name, reason))])
                case Doubt(name=name, reason=reason):
                    self._catalogue.doubts[name] = reason
                    if reason:
                        self._perform([Report(Refused(name, f"{reason}; {KEPT}"))])
                case Trust(name=name):
                    self._catalogue.doubts.pop(name, None)

    def _publish(self, entry: Entry) -> None:
        replaces = self._catalogue.find(entry.name) is not None
        if self._catalogue.put(entry) and self._listening:
            news = Report(FilePublished(entry.name, entry.size, entry.sha1))
            self._perform([news, *self._engine.publish(entry, self._clock(), replaces=replaces)])

    async def _look_again(self, action: ReadChunk | CheckPart) -> None:
        """A file is not what was announced: see what it is now, and let the engine begin it again."""
        before = self._catalogue.find(action.name)
        publication = self._publication_of(action.name)
        await self._watcher.look_again(publication, action.name)
        if self._catalogue.find(action.name) is before:
            # It is being written, or cannot be read; asking again at once would find the same.
            await asyncio.sleep(self._settling.delay_s(action.peer, self._clock()))
        self._perform(self._engine.file_moved(action.peer, action.transfer, self._clock()))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._tick_s)
            self._perform(self._engine.tick(self._clock()))

    async def _follow_progress(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for event in self._looks.look(self._engine.under_way(), self._clock()):
                self._perform([Report(event)])

    # ---- what is to be done

    def _perform(self, actions: Sequence[ServerAction]) -> None:
        if not any(isinstance(action, Send) for action in actions):
            for action in actions:
                if isinstance(action, Close):
                    self._unsay(action.peer)
        self._agenda.add(actions)

    def _unsay(self, peer: bytes) -> None:
        """A client is gone for good: what still waits to be sent to it would come after its KTHXBAI."""
        self._agenda.drop(lambda action: isinstance(action, Send) and action.peer == peer)
        self._router.forget(peer)

    def _do(self, action: ServerAction) -> None:
        match action:
            case Send(command=command, peer=peer):
                self._router.send(peer, self._dialect.encode(command))
            case Report(event=event):
                self._tell(event)
            case ReadChunk(peer=peer):
                if room := self._router.reserve(peer, action.size):
                    self._readers.read(msgspec.structs.replace(action, size=room))
                else:
                    self._hold_back(action)
            case CheckPart():
                self._checks.check(action)
            case Pause(peer=peer):
                if self._router.ready(peer):
                    self._perform(self._engine.resume(peer, self._clock()))
                else:
                    self._hold_back(action)
            case Abandon(peer=peer, transfer=transfer):
                self._readers.abandon(transfer)
                self._checks.abandon(transfer)
                held = self._held_back.pop(peer, [])
                for other in held:
                    if isinstance(other, Pause) or other.transfer != transfer:
                        self._hold_back(other)
            case Close(peer=peer):
                self._held_back.pop(peer, None)
                self._settling.forget(peer)
                self._router.forget(peer)

    def _hold_back(self, action: ReadChunk | Pause) -> None:
        """Do this when its client has room again; there may be one of either kind for each."""
        self._held_back.setdefault(action.peer, []).append(action)

    # ---- places

    def _publication_of(self, name: str) -> Publication:
        return next(p for p in self._publications if covers(p.path, name))

    def _find(self, name: str) -> tuple[Publication, Entry] | None:
        entry = self._catalogue.find(name)
        return None if entry is None else (self._publication_of(name), entry)
