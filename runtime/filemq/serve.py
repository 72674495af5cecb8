"""The FILEMQ server as an asyncio service: sockets, files and the clock around `ServerEngine`.

Everything that happens (a message, a change of a file, a chunk read, a tick) is given to the engine, whose actions
are performed in order from one queue, a bounded number before the loop gets its turn. Backpressure: a chunk is
read only when everything sent to that client before has been taken by the socket, whose own queue is short.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import combinations
from types import TracebackType
from typing import Self

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq.access import Clients, ServerSecurity, judge_by
from specwire.runtime.filemq.actions import Abandon, Close, Pause, ReadChunk, Report, Send, ServerAction
from specwire.runtime.filemq.catalogue import Catalogue, Entry
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.dialects import find_dialect
from specwire.runtime.filemq.endpoint import fault_in_endpoint
from specwire.runtime.filemq.entrance import Entrance
from specwire.runtime.filemq.events import Event, EventHub, FilePublished, FileWithdrawn, Refused, Watch
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.peering import Authorise
from specwire.runtime.filemq.publication import Change, Gone, Publication, Put, Unfit
from specwire.runtime.filemq.readers import Readers
from specwire.runtime.filemq.server import CHUNK_OCTETS, ServerEngine, allow_all
from specwire.runtime.filemq.watcher import RESCAN_S, Watcher
from specwire.runtime.transport.security import NULL

LOOPBACK = "tcp://127.0.0.1:*"
AT_A_TIME = 64
SETTLE_S = 0.05
LINGER_S = 0.5


class FilemqServer:
    """Serves publications; ``async with FilemqServer(...) as server`` starts and stops it.

    Args:
        publications: the folders; their virtual paths must not overlap.
        endpoint: where to listen; the port may be ``*``.
        tap: gets every message of every client, in both directions.
        protocol: the dialect spoken, one of `specwire.runtime.filemq.dialects.DIALECTS`.
        chunk_octets: the largest chunk of content.
        timers: seconds by name (``heartbeat``, ``expiry``) in place of the profile's.
        rescan_s: how often the folders are walked besides the notifications.
        authorise: given client's name and path of a subscription, the reason to refuse it, None to allow it.
        security: what clients have to prove.
        clients: who is let in, and to which paths; without it whoever knows the server's CURVE key.
        insecure: listen beyond this machine even without CURVE.
        on_event: called with each event.

    Attributes:
        endpoint: the endpoint as bound, once started.
        counters: what was done so far.

    Raises:
        ValueError: publications overlap, the endpoint is none, the protocol is not spoken, or `clients` do not go with
            `security`.
    """

    def __init__(
        self,
        publications: Sequence[Publication],
        endpoint: str = LOOPBACK,
        *,
        tap: Recorder | None = None,
        protocol: str = "filemq",
        chunk_octets: int = CHUNK_OCTETS,
        timers: Mapping[str, float] | None = None,
        rescan_s: float = RESCAN_S,
        authorise: Authorise = allow_all,
        security: ServerSecurity = NULL,
        clients: Clients | None = None,
        insecure: bool = False,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        _refuse_overlaps(publications)
        if fault := fault_in_endpoint(endpoint, listening=True):
            raise ValueError(f"{endpoint!r} {fault}")
        dialect = find_dialect(protocol)
        self.endpoint = endpoint
        self.counters = Counters()
        self._publications = publications
        self._catalogue = Catalogue()
        self._dialect = dialect
        self._engine = ServerEngine(
            self._catalogue,
            chunk_octets=chunk_octets,
            timers=timers,
            authorise=judge_by(clients, authorise),
            dialect=dialect,
        )
        self._entrance = Entrance(security, clients, insecure=insecure)
        self._tick_s = min({**dialect.timers, **(timers or {})}.values()) / 4
        self._tap, self._rescan_s = tap, rescan_s
        self._hub = EventHub(on_event)
        self._todo: deque[ServerAction] = deque()
        self._turn: asyncio.Handle | None = None
        self._held_back: dict[bytes, ReadChunk | Pause] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session = os.urandom(4).hex()
        self._listening = False

    @property
    def clients(self) -> int:
        """Number of open peerings."""
        return self._engine.clients

    def digests(self, path: str = "/") -> dict[str, str]:
        """Return the SHA-1 of every published file under `path`, by name: what an inbox is to hold."""
        return self._catalogue.digests(path)

    def events(self) -> Watch:
        """Return an asynchronous iterator over the events from now on."""
        return self._hub.watch()

    async def rescan(self) -> None:
        """Look at every folder now: after this, `digests` is no older than the call."""
        await self._watcher.rescan()

    async def start(self) -> None:
        """Scan the publications and listen.

        Raises:
            OSError: a publication cannot be read.
            TransportError: the endpoint cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        await self._entrance.open(
            self.endpoint,
            on_message=self._on_message,
            on_sent=self._on_sent,
            on_room=self._on_room,
            on_gone=lambda peer, reason: self._perform(self._engine.gone(peer, reason)),
            on_turned_away=lambda reason: self._perform([Report(Refused("a client", reason))]),
        )
        self._router = self._entrance.router
        self._readers = Readers(self._find, self._on_read)
        self._watcher = Watcher(
            self._publications,
            self._on_changes,
            rescan_s=self._rescan_s,
            longest_name_octets=self._dialect.habits.longest_name_octets,
        )
        try:
            await self._watcher.start()
            self.endpoint = self._router.bind(self.endpoint)
            self._listening = True
        except BaseException:
            await self._release(linger_s=0.0)
            raise
        self._start_task(self._tick())

    async def stop(self) -> None:
        """Say KTHXBAI to every client where the dialect has it, and release everything."""
        self._router.pause()  # what is still under way is not to be answered after the goodbye
        self._perform(self._engine.close(self._clock()))
        try:
            while self._todo:
                self._take_turn()
        finally:
            await self._release(linger_s=LINGER_S)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _release(self, *, linger_s: float) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._watcher.close()
        await self._readers.close()
        if self._turn is not None:
            self._turn.cancel()
        await self._entrance.close(linger_s=linger_s)
        self._hub.end()

    # ---- what happens

    def _on_message(self, peer: bytes, frames: list[bytes]) -> None:
        self.counters.count_in(frames, self._dialect.content_octets(frames))
        self._record("C", peer, frames)
        user = self._router.user
        # Performed by itself: what still waits for the one that was displaced is not for the newcomer.
        self._perform(self._engine.displace(peer, user))
        self._perform(self._engine.receive(peer, frames, self._clock(), user=user))

    def _on_sent(self, peer: bytes, frames: Sequence[bytes]) -> None:
        self.counters.count_out(frames, self._dialect.content_octets(frames))
        self._record("S", peer, frames)

    def _record(self, sender: str, peer: bytes, frames: Sequence[bytes]) -> None:
        if self._tap is not None:
            label = peer.hex()
            self._tap.record(
                sender=sender, peer=label, conversation=f"{self._session}-{label}", frames=frames
            )

    def _on_room(self, peer: bytes) -> None:
        action = self._held_back.pop(peer, None)
        if action is not None:
            self._perform([action])

    def _on_read(self, action: ReadChunk, chunk: bytes | None) -> None:
        if chunk is not None:
            self._perform(self._engine.chunk_read(action.peer, action.transfer, chunk, self._clock()))
        else:
            self._start_task(self._look_again(action))

    def _on_changes(self, publication: Publication, changes: list[Change]) -> None:
        for change in changes:
            match change:
                case Put(entry=entry):
                    self._publish(entry)
                case Gone(name=name) if self._catalogue.remove(name):
                    self._perform([Report(FileWithdrawn(name)), *self._engine.withdraw(name, self._clock())])
                case Unfit(name=name, reason=reason):
                    self._perform([Report(Refused(name, reason))])

    def _publish(self, entry: Entry) -> None:
        replaces = self._catalogue.find(entry.name) is not None
        if self._catalogue.put(entry) and self._listening:
            news = Report(FilePublished(entry.name, entry.size, entry.sha1))
            self._perform([news, *self._engine.publish(entry, self._clock(), replaces=replaces)])

    async def _look_again(self, action: ReadChunk) -> None:
        """A file is not what was announced: see what it is now, and let the engine begin it again."""
        before = self._catalogue.find(action.name)
        publication = self._publication_of(action.name)
        await self._watcher.look_again(publication, action.name)
        if self._catalogue.find(action.name) is before:
            await asyncio.sleep(SETTLE_S)  # it is being written; asking again at once would find the same
        self._perform(self._engine.file_moved(action.peer, action.transfer, self._clock()))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._tick_s)
            self._perform(self._engine.tick(self._clock()))

    # ---- what is to be done

    def _perform(self, actions: Sequence[ServerAction]) -> None:
        if not any(isinstance(action, Send) for action in actions):
            for action in actions:
                if isinstance(action, Close):
                    self._unsay(action.peer)
        self._todo.extend(actions)
        if self._todo and self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _unsay(self, peer: bytes) -> None:
        """A client is gone for good: what still waits to be sent to it would come after its KTHXBAI."""
        self._todo = deque(a for a in self._todo if not (isinstance(a, Send) and a.peer == peer))
        self._router.forget(peer)

    def _take_turn(self) -> None:
        try:
            for _ in range(AT_A_TIME):
                if self._todo:  # an action may take others out
                    self._do(self._todo.popleft())
        finally:  # a fault of ours in one action is told by the loop, and costs no other client
            self._turn = None
            self._perform(())

    def _do(self, action: ServerAction) -> None:
        match action:
            case Send(command=command, peer=peer):
                self._router.send(peer, self._dialect.encode(command))
            case Report(event=event):
                self.counters.count_event(event)
                self._hub.tell(event)
            case ReadChunk(peer=peer) | Pause(peer=peer) if not self._router.ready(peer):
                self._held_back[peer] = action
            case ReadChunk():
                self._readers.read(action)
            case Pause(peer=peer):
                self._perform(self._engine.resume(peer, self._clock()))
            case Abandon(peer=peer, transfer=transfer):
                self._readers.abandon(transfer)
                held = self._held_back.get(peer)
                if isinstance(held, ReadChunk) and held.transfer == transfer:
                    del self._held_back[peer]
            case Close(peer=peer):
                self._held_back.pop(peer, None)
                self._router.forget(peer)

    # ---- places

    def _publication_of(self, name: str) -> Publication:
        return next(p for p in self._publications if covers(p.path, name))

    def _find(self, name: str) -> tuple[Publication, Entry] | None:
        entry = self._catalogue.find(name)
        return None if entry is None else (self._publication_of(name), entry)

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Nobody waits for these tasks: without this a server would go on with a part of it dead.
            context = {"message": "a part of the FILEMQ server has failed", "exception": error, "task": task}
            asyncio.get_running_loop().call_exception_handler(context)


def _refuse_overlaps(publications: Sequence[Publication]) -> None:
    for a, b in combinations(publications, 2):
        if a.overlaps(b):
            raise ValueError(
                f"{a.folder} and {b.folder} are published at overlapping paths: {a.path}, {b.path}"
            )
