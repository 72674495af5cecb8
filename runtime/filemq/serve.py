"""The FILEMQ server as an asyncio service: what it is made of, and when it starts and stops; `serving` does the work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from types import TracebackType
from typing import Self

import msgspec

from specwire.runtime.capture.counts import count_taps
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq.access import Clients, ServerSecurity, fault_in_security, judge_by
from specwire.runtime.filemq.age import Age
from specwire.runtime.filemq.catalogue import Catalogue
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.counting import CountingDialect
from specwire.runtime.filemq.dialects import find_dialect
from specwire.runtime.filemq.entrance import BOUNDS, Entrance
from specwire.runtime.filemq.events import Event, EventHub, Watch
from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.peering import Authorise
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.refusals import Refusals
from specwire.runtime.filemq.server import CHUNK_OCTETS, ServerEngine, allow_all
from specwire.runtime.filemq.serving import Serving
from specwire.runtime.filemq.status import ServerStatus
from specwire.runtime.filemq.watcher import RESCAN_S
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.inflow import InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.security import NULL, CurveServer

LOOPBACK = "tcp://127.0.0.1:*"


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
        bounds: what a client may send without ending a message.
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
        bounds: InflowBounds = BOUNDS,
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
        self._dialect = CountingDialect(dialect, self.counters)
        self._engine = ServerEngine(
            self._catalogue,
            chunk_octets=chunk_octets,
            timers=timers,
            authorise=judge_by(clients, authorise),
            enclose=partial(_find_enclosing, publications),
            dialect=self._dialect,
        )
        self._security, self._known = security, clients
        self._entrance = Entrance(security, clients, insecure=insecure, bounds=bounds)
        self._tick_s = min({**dialect.timers, **(timers or {})}.values()) / 4
        self._tap, self._rescan_s = tap, rescan_s
        self._hub = EventHub(on_event)
        self._refusals = Refusals()

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

    def status(self) -> ServerStatus:
        """Tell how this server is; while it runs."""
        return ServerStatus(
            endpoint=self.endpoint,
            protocol=self._dialect.name,
            process=self._age.describe(),
            publications=self._work.describe_publications(),
            clients=self._work.describe_clients(),
            counters=self.counters.snapshot(),
            refusals=self._refusals.newest(),
            captures=count_taps(self._tap),
        )

    def replace_clients(self, clients: Clients) -> None:
        """Let in these clients instead of those of the list until now, and refuse what is not allowed any more.

        A client that is not in the new list, or has a subscription to what it may not have now, is told SRSLY.

        Raises:
            ValueError: the server has no list, or this one does not go with how its clients prove themselves.
        """
        if self._known is None:
            raise ValueError("this server has no list of clients")
        if fault := fault_in_security(self._security, clients):
            raise ValueError(fault)
        self._known.become(clients)
        self._work.review()

    async def change_keys(self, keys: KeyPair) -> None:
        """Prove to be this server by other CURVE keys; returns when it listens by them.

        Every client is disconnected, and comes in again where it knows the new public key.

        Raises:
            ValueError: the server does not use CURVE.
            TransportError: the keys are none; those before stay.
        """
        match self._security:
            case CurveServer() as security:
                async with self._changing:
                    await self._work.change_keys(keys, self.endpoint)
                    self._security = msgspec.structs.replace(security, keys=keys)
            case _:
                raise ValueError("this server has no keys: it was started without CURVE")

    def accept_empty(self) -> None:
        """Withdraw what is missing in the publications now, although it may only be out of sight."""
        self._work.accept_empty()

    def ignore(self, patterns: Sequence[str]) -> None:
        """Publish no files that these patterns match; withdraw those that are published.

        Raises:
            ValueError: a pattern is not valid.
        """
        self._work.ignore(patterns)

    async def rescan(self) -> None:
        """Look at every folder now: after this, `digests` is no older than the call."""
        await self._work.rescan()

    async def start(self) -> None:
        """Scan the publications and listen.

        Raises:
            OSError: a publication cannot be read.
            TransportError: the endpoint cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        self._age = Age()
        self._changing = asyncio.Lock()
        self._work = Serving(
            self._engine,
            self._catalogue,
            self._publications,
            dialect=self._dialect,
            tell=self._tell,
            counters=self.counters,
            tap=self._tap,
            tick_s=self._tick_s,
            rescan_s=self._rescan_s,
        )
        try:
            self.endpoint = await self._work.open(self._entrance, self.endpoint)
        except BaseException:
            self._hub.end()
            raise

    async def stop(self) -> None:
        """Say KTHXBAI to every client where the dialect has it, and release everything."""
        try:
            await self._work.close()
        finally:
            self._hub.end()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _tell(self, event: Event) -> None:
        self.counters.count_event(event)
        self._refusals.note(event)
        self._hub.tell(event)


def _find_enclosing(publications: Sequence[Publication], path: str, marks: str) -> str | None:
    """Return why a client with an inbox in these folders cannot subscribe to `path`, None where it can."""
    for publication in publications if marks else ():
        subscribed = covers(path, publication.path) or covers(publication.path, path)
        if subscribed and publication.holds(marks):
            where = f"the folder that is published at {publication.path}"
            return f"cannot be subscribed to: the inbox lies in {where}"
    return None


def _refuse_overlaps(publications: Sequence[Publication]) -> None:
    for a, b in combinations(publications, 2):
        if a.overlaps(b):
            raise ValueError(
                f"{a.folder} and {b.folder} are published at overlapping paths: {a.path}, {b.path}"
            )
