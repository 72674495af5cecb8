"""FILEMQ server as an asyncio service: a host for its engine, with published folders and readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, islice

import msgspec

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq.access import Clients, ServerSecurity, fault_in_security, judge_by
from specwire.runtime.filemq.catalogue import Change, CheckPart, PublicationTotals, ReadChunk
from specwire.runtime.filemq.codec import FilemqCodec, find_dialect
from specwire.runtime.filemq.events import ServerCounters
from specwire.runtime.filemq.names import IgnoreRule, as_utf8, covers, is_folder
from specwire.runtime.filemq.peering import Authorise
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.reading import FileReader
from specwire.runtime.filemq.server import CHUNK_OCTETS, FilesChanged, ServerState, allow_all, react
from specwire.runtime.filemq.settings import BOUNDS
from specwire.runtime.filemq.status import ClientStatus, Doubtful, PublicationStatus, Refusals, ServerStatus
from specwire.runtime.filemq.watcher import RESCAN_S, Watcher
from specwire.runtime.kernel.effects import Log
from specwire.runtime.kernel.engine import StoryEngine
from specwire.runtime.kernel.events import Noticed
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import EventStreams, LogEvent
from specwire.runtime.kernel.service import HostSettings, HostState, ListenerSettings, Service, Tasks
from specwire.runtime.kernel.sockets import MessageTap
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.inflow import InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.port import require_free
from specwire.runtime.transport.router import MAX_FRAME_OCTETS
from specwire.runtime.transport.security import NULL, CurveServer, PlainServer, refuse_exposure

LOOPBACK = "tcp://127.0.0.1:*"
LISTENER = "clients"
MAX_FRAMES = 2
"""Frames of a message that are kept: one more than a command has."""

DOUBTS_SHOWN = 20


class FilemqServer(Service):
    """Serves publications; ``async with FilemqServer(...) as server`` starts and stops it.

    Args:
        publications: the folders; their virtual paths must not overlap.
        endpoint: where to listen; the port may be ``*``.
        tap: records every message of every client.
        protocol: the dialect, one of `specwire.runtime.filemq.codec.DIALECTS`.
        chunk_octets: the largest chunk of content.
        timers: seconds by name (``heartbeat``, ``expiry``) in place of the profile's.
        rescan_s: how often the folders are walked besides the notifications.
        authorise: returns the reason to refuse a subscription, by client's name and path; None
            allows it.
        security: how clients authenticate.
        clients: the admitted clients and their paths; None: all that know the server's CURVE key.
        insecure: listen beyond this machine even without CURVE.
        bounds: what a client may send without ending a message.
        on_event: called with each event.

    Attributes:
        endpoint: the endpoint as bound, once started.

    Raises:
        ValueError: publications overlap, the endpoint is none, the protocol is unknown, or
            `clients` do not fit `security`.
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
        bounds: InflowBounds = BOUNDS,
        on_event: Callable[[LogEvent], None] | None = None,
    ) -> None:
        _refuse_overlaps(publications)
        if fault := fault_in_endpoint(endpoint, listening=True):
            raise ValueError(f"{endpoint!r} {fault}")
        if fault := fault_in_security(security, clients):
            raise ValueError(fault)
        self.endpoint = endpoint
        self._publications, self._clients, self._security = publications, clients, security
        self._on_event = on_event
        self._streams, self._refusals = EventStreams(), Refusals()
        dialect = find_dialect(protocol)
        self._counters = ServerCounters()
        self._tap = None if tap is None else MessageTap(tap, received_as="C", sent_as="S")
        self._rescan_s = rescan_s
        self._host: Host | None = None
        self._state = ServerState(
            dialect,
            chunk_octets,
            timers or {},
            judge_by(clients, authorise),
            partial(_find_enclosing, publications),
        )
        self._listener = ListenerSettings(
            endpoint=endpoint,
            security=security,
            insecure=insecure,
            names=clients.names if clients is not None and isinstance(security, CurveServer) else None,
            any_key=clients is None and isinstance(security, CurveServer),
            passwords=clients.passwords
            if clients is not None and isinstance(security, PlainServer)
            else None,
            bounds=bounds,
            frame_octets=MAX_FRAME_OCTETS,
            max_frames=MAX_FRAMES,
        )

    @property
    def clients(self) -> int:
        """Number of open peerings."""
        return len(self._state.peerings)

    @property
    def counters(self) -> ServerCounters:
        """Counts since the start."""
        return self._counters.with_host(self._host)

    def digests(self, path: str = "/") -> dict[str, str]:
        """Return the SHA-1 of every published file under `path`, by name. Empty folders are omitted."""
        digests = self._state.files.digests(path)
        return {name: sha1 for name, sha1 in digests.items() if not is_folder(name)}

    def events(self) -> AsyncIterator[LogEvent]:
        """Return an iterator over the events from now on, which ends when the server stops."""
        return self._streams.read()

    def status(self) -> ServerStatus:
        """Return the status, from `start` on."""
        host = self._running.status()
        return ServerStatus(
            endpoint=self.endpoint,
            protocol=self._state.dialect.name,
            process=host.process,
            publications=tuple(map(self._describe_publication, self._publications)),
            clients=self._describe_clients(),
            counters=self.counters,
            refusals=self._refusals.newest(),
            captures=host.captures,
        )

    def replace_clients(self, clients: Clients) -> None:
        """Admit these clients instead of the present list, and refuse what is not allowed any more.

        A client that is not in the new list, or has a subscription that it may not have now, is
        sent SRSLY.

        Raises:
            ValueError: the server has no list, or this one does not fit how clients prove
                themselves.
        """
        if self._clients is None:
            raise ValueError("this server has no list of clients")
        if fault := fault_in_security(self._security, clients):
            raise ValueError(fault)
        self._clients.replace_with(clients)
        self._running.reload(clients)

    async def change_keys(self, keys: KeyPair) -> None:
        """Use other CURVE keys; returns when the server listens with them.

        Every client is disconnected, and can connect again if it knows the new public key.

        Raises:
            ValueError: the server does not use CURVE.
            TransportError: the keys cannot be used; the old ones stay.
        """
        if not isinstance(self._security, CurveServer):
            raise ValueError("this server has no keys: it was started without CURVE")  # noqa: TRY004
        async with self._changing:
            await self._running.change_keys(keys)

    def accept_empty(self) -> None:
        """Withdraw what is missing in the publications now, although the disk may only be away."""
        for publication in self._publications:
            publication.accept()
        self._tasks.start(self._watcher.rescan())

    def ignore(self, patterns: Sequence[str]) -> None:
        """Publish no files that these patterns match; withdraw those that are published.

        Raises:
            ValueError: a pattern is not valid.
        """
        rules = [IgnoreRule(patterns, publication.path) for publication in self._publications]
        for publication, rule in zip(self._publications, rules, strict=True):
            publication.ignore = rule
        self._tasks.start(self._watcher.rescan())

    async def rescan(self) -> None:
        """Walk through every folder now: after this, `digests` is no older than the call."""
        await self._watcher.rescan()

    async def start(self) -> None:
        """Scan the publications and listen.

        Raises:
            OSError: a publication cannot be read.
            TransportError: the endpoint cannot be bound, or requires CURVE (ExposureError).
        """
        self._counters.add_host(self._host)
        self._tasks, self._changing = Tasks("the FILEMQ server"), asyncio.Lock()
        self._watcher = Watcher(
            self._publications,
            self._on_changes,
            rescan_s=self._rescan_s,
            longest_name_octets=self._state.dialect.habits.longest_name_octets,
        )
        self._reader = FileReader(self._open_file, self._look_again)
        self._engine = StoryEngine(partial(react, self._state))
        host = self._host = Host(
            self._engine,
            FilemqCodec(self._state.dialect, self._counters),
            HostSettings(
                listeners={LISTENER: self._listener},
                handlers={ReadChunk: self._reader.read, CheckPart: self._reader.check},
            ),
            on_event=self._emit,
            tap=self._tap,
        )
        try:
            refuse_exposure(self.endpoint, self._security, insecure=self._listener.insecure)
            require_free(self.endpoint)  # reading the folders may take hours
            await self._watcher.start()
            await host.start()
        except BaseException:
            await self._release()
            raise
        self.endpoint = host.status().endpoints[LISTENER]

    async def stop(self) -> None:
        """Say KTHXBAI to every client if the dialect has it, and release everything.

        May be called in every state.
        """
        if self._host is None:
            return
        try:
            await self._host.stop("the server stops")
        finally:
            await self._release()

    async def _release(self) -> None:
        try:
            await self._tasks.close()
            await self._watcher.close()
            await self._reader.close()
        finally:
            self._streams.end()
            self._streams = EventStreams()

    @property
    def _running(self) -> Host:
        assert self._host is not None, "the server was not started"
        return self._host

    # ---- folders

    def _on_changes(self, publication: Publication, changes: list[Change]) -> None:
        """Pass changes to the engine. While the host does not run, only their log events are emitted."""
        changed = FilesChanged(publication.path, changes)
        host = self._running
        if host.state is HostState.RUNNING:
            host.notice(changed)
            return
        for effect in self._engine.handle(Noticed(changed), host.now()):
            if isinstance(effect, Log):
                self._emit(effect.event)

    def _publication_of(self, name: str) -> Publication:
        return next(one for one in self._publications if covers(one.path, name))

    def _open_file(self, name: str) -> int:
        return self._publication_of(name).open_entry(name)

    async def _look_again(self, name: str) -> None:
        await self._watcher.look_again(self._publication_of(name), name)

    # ---- status

    def _describe_publication(self, publication: Publication) -> PublicationStatus:
        totals = self._state.totals.get(publication.path, PublicationTotals())
        doubts = islice(publication.doubts.items(), DOUBTS_SHOWN)
        return PublicationStatus(
            publication.path,
            as_utf8(str(publication.folder)),
            totals.files,
            totals.octets,
            tuple(Doubtful(as_utf8(name), reason) for name, reason in doubts if reason),
            publication.missing,
        )

    def _describe_clients(self) -> tuple[ClientStatus, ...]:
        now, progress = self._running.now(), self._state.progress
        described = [peering.describe(now) for peering in self._state.peerings.values()]
        return tuple(
            msgspec.structs.replace(one, under_way=one.under_way and progress.rated(one.under_way))
            for one in described
        )

    def _emit(self, event: LogEvent) -> None:
        self._counters.count_event(event)
        self._refusals.note(event)
        self._streams.add(event)
        if self._on_event is not None:
            self._on_event(event)


def _find_enclosing(publications: Sequence[Publication], path: str, marks: str) -> str | None:
    """Return why a client with an inbox in these folders cannot subscribe to `path`, None if it can."""
    for publication in publications if marks else ():
        subscribed = covers(path, publication.path) or covers(publication.path, path)
        if subscribed and publication.holds(marks):
            return (
                "cannot be subscribed to: the inbox lies in the folder that is published at "
                f"{publication.path}"
            )
    return None


def _refuse_overlaps(publications: Sequence[Publication]) -> None:
    for a, b in combinations(publications, 2):
        if a.overlaps(b):
            raise ValueError(
                f"{a.folder} and {b.folder} are published at overlapping paths: {a.path}, {b.path}"
            )
