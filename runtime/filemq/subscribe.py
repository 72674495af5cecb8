"""The FILEMQ client as an asyncio service: a connection, an inbox and the clock around `ClientEngine`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from specwire.runtime.capture.counts import count_taps
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq import journal
from specwire.runtime.filemq.actions import (
    AcceptDeletions,
    ClientAction,
    Close,
    Connect,
    DiskAction,
    Held,
    Outcome,
    Report,
    Send,
)
from specwire.runtime.filemq.client import WINDOW_OCTETS, ClientEngine
from specwire.runtime.filemq.connection import Connection
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.counting import CountingDialect
from specwire.runtime.filemq.credentials import ClientSecurity, origin_of
from specwire.runtime.filemq.dialects import find_dialect
from specwire.runtime.filemq.disk import marks_above
from specwire.runtime.filemq.diskwork import DiskWork
from specwire.runtime.filemq.events import FileDeleted, FileReceived, FileRestored, PeerClosed
from specwire.runtime.filemq.holdings import Holdings
from specwire.runtime.filemq.inbox import DEFAULT_RULES, Inbox
from specwire.runtime.filemq.names import RESERVED, as_utf8
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.filemq.progress import LOOK_S, ProgressLooks
from specwire.runtime.filemq.refusals import Refusals
from specwire.runtime.filemq.status import SubscriberStatus
from specwire.runtime.kernel.log import EventStreams, LogEvent, Refused
from specwire.runtime.kernel.service import Tasks
from specwire.runtime.kernel.status import ProcessClock
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.errors import ShortageError
from specwire.runtime.transport.security import NULL

MAX_BACKLOG = 2000
JOURNAL = f"{RESERVED}/{journal.NAME}"
NEVER_ANSWERED = "no answer at all: nothing speaks FILEMQ there, or the network lets nothing through"
JOURNAL_LOST = "a file that was told of there alone counts as not received from a server"


class FilemqClient:
    """Keeps an inbox equal to a server's publications; ``async with`` starts and stops it.

    Args:
        endpoint: the server's.
        inbox: folder that receives the files, each under its full virtual path.
        paths: virtual paths to subscribe to.
        tap: gets every message, in both directions.
        resync: at each connection, ask for everything that the inbox lacks; without it only files that
            change from now on arrive, and `holdings` counts those alone.
        window_octets: content that may be under way or wait for the disk.
        timers: seconds by name (``heartbeat``, ``expiry``, ``reconnect``) in place of the profile's.
        protocol: the dialect spoken, one of `specwire.runtime.filemq.dialects.DIALECTS`.
        sync: wait for the disk before a file is put in its place.
        check: take the SHA-1 of what comes, and refuse a file that has another than was announced; see `Inbox`.
        security: how this client proves who it is, and which server it expects.
        rules: settings of the inbox: how much may be deleted at once, and how long it is kept.
        origin: the inbox knows the server by this, in place of its public key or endpoint: it has moved, say.
        on_event: called with each event.

    Attributes:
        counters: what was done so far.
        finished: done with the reason when the client has ended for good, by request or by the server.

    Raises:
        ValueError: a path is not a virtual path, the endpoint is none, or the protocol is not spoken.
    """

    def __init__(
        self,
        endpoint: str,
        inbox: Path,
        paths: Sequence[str],
        *,
        tap: Recorder | None = None,
        resync: bool = True,
        window_octets: int = WINDOW_OCTETS,
        timers: Mapping[str, float] | None = None,
        protocol: str = "filemq",
        sync: bool = True,
        check: bool = True,
        security: ClientSecurity = NULL,
        origin: str | None = None,
        rules: InboxRules = DEFAULT_RULES,
        on_event: Callable[[LogEvent], None] | None = None,
    ) -> None:
        if fault := fault_in_endpoint(endpoint, listening=False):
            raise ValueError(f"{endpoint!r} {fault}")
        self.counters = Counters()
        self._endpoint = endpoint
        self._dialect = CountingDialect(find_dialect(protocol), self.counters)
        self._engine = ClientEngine(
            paths,
            resync=resync,
            window_octets=window_octets,
            timers=timers,
            dialect=self._dialect,
            server=endpoint,
            check_s=rules.check_s,
            marks=marks_above(inbox) if self._dialect.habits.deletes_reliably else "",
        )
        self._tick_s = min({**self._dialect.timers, **(timers or {})}.values()) / 4
        self._folder = inbox.absolute()
        self._inbox = Inbox(
            inbox,
            sync=sync,
            check=check,
            rules=rules,
            repeats=self._dialect.habits.deletes_reliably,
            origin=origin or origin_of(endpoint, security),
        )
        self._tap, self._window_octets, self._security = tap, window_octets, security
        self._listening = True
        self._on_event, self._streams = on_event, EventStreams()
        self._holdings = Holdings()
        self._refusals = Refusals()
        self._looks = ProgressLooks()
        self._tasks = Tasks("the FILEMQ client")

    @property
    def holdings(self) -> Mapping[str, str]:
        """SHA-1 by name of the files in the inbox under the subscribed paths, as far as they were listed."""
        return self._holdings.digests

    def events(self) -> AsyncIterator[LogEvent]:
        """Return an iterator over the events from now on, which ends when this peer stops."""
        return self._streams.read()

    def status(self) -> SubscriberStatus:
        """Tell how this client is; while it runs."""
        file = self._engine.under_way
        return SubscriberStatus(
            endpoint=self._endpoint,
            protocol=self._dialect.name,
            process=self._age.describe(),
            inbox=as_utf8(str(self._folder)),
            paths=self._engine.paths,
            connection=self._engine.phase.value,
            files=len(self._holdings.digests),
            under_way=file and self._looks.rated(file),
            pending_octets=self._engine.pending_octets,
            withheld=self._inbox.withheld,
            counters=copy(self.counters),
            refusals=self._refusals.newest(),
            captures=count_taps(self._tap),
        )

    async def until_equal(self, expected: Mapping[str, str], *, timeout_s: float) -> None:
        """Return when the inbox holds exactly `expected` (SHA-1 by name, see `FilemqServer.digests`).

        Raises TimeoutError, with the names of some files that differ.
        """
        await self._holdings.until_equal(expected, timeout_s=timeout_s)

    async def start(self) -> None:
        """Open the inbox and connect; raises InboxError or TransportError."""
        loop = asyncio.get_running_loop()
        self._age = ProcessClock()
        self._clock = loop.time
        self.finished: asyncio.Future[str] = loop.create_future()
        await asyncio.to_thread(self._inbox.open)
        if self._inbox.lines_lost:
            self._tell(
                Refused(JOURNAL, f"{self._inbox.lines_lost} of its lines cannot be read; {JOURNAL_LOST}")
            )
        self._disk = DiskWork(
            self._inbox.perform_some,
            pending=lambda: self._inbox.pending,
            on_outcomes=self._on_outcomes,
            on_fault=self._on_fault,
        )
        self._connection = Connection(
            self._endpoint,
            self._on_message,
            self._on_lost,
            dialect=self._dialect,
            counters=self.counters,
            tap=self._tap,
            security=self._security,
        )
        try:
            self._perform(self._engine.open(self._clock()))
        except BaseException:
            await self._release()
            raise
        self._tasks.start(self._tick())
        self._tasks.start(self._follow_progress())

    async def stop(self) -> None:
        """Say KTHXBAI, finish the disk work that was ordered, and release everything."""
        self._perform(self._engine.close(self._clock()))
        await self._tasks.close()
        await self._release()

    def accept_deletions(self) -> None:
        """Perform the deletions that are withheld, and those that come next, however many there are."""
        self._order(AcceptDeletions(self._engine.connection))

    def subscribe(self, path: str) -> None:
        """Subscribe to a further path; raises ValueError."""
        self._perform(self._engine.subscribe(path, self._clock()))

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _release(self) -> None:
        self._connection.drop()
        await self._disk.close()
        await asyncio.to_thread(self._inbox.close)
        await self._connection.close()
        self._streams.end()

    def _on_message(self, frames: list[bytes]) -> None:
        self._perform(self._engine.receive(frames, self._clock()))

    def _on_lost(self, reason: str) -> None:
        self._perform(self._engine.lost(reason, self._clock()))

    def _on_outcomes(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Held):
                self._holdings.replace(outcome.path, outcome.digests)
            self._perform(self._engine.settle(outcome, self._clock()))
        self._listen_or_not()

    def _on_fault(self, error: BaseException) -> None:
        """The inbox failed in a way that it does not know of: end, and let `finished` raise it."""
        if not self.finished.done():
            self.finished.set_exception(error)
        self._perform(self._engine.close(self._clock()))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._tick_s)
            if not self._listening:
                self._engine.excuse_silence(self._clock())
            self._perform(self._engine.tick(self._clock()))

    async def _follow_progress(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            file = self._engine.under_way
            for event in self._looks.look([] if file is None else [file], self._clock()):
                self._tell(event)

    def _perform(self, actions: Sequence[ClientAction]) -> None:
        for action in actions:
            match action:
                case Send(command=command):
                    self._connection.send(command)
                case Report(event=event):
                    self._tell(self._explain(event))
                case Close():
                    self._connection.drop()
                case Connect():
                    self._connect()
                case _:
                    self._order(action)

    def _connect(self) -> None:
        try:
            self._connection.open()
        except ShortageError as error:
            self._on_lost(str(error))
        self._connection.listen(self._listening)

    def _order(self, action: DiskAction) -> None:
        self._disk.order(action)
        self._listen_or_not()

    def _listen_or_not(self) -> None:
        """Receive while the disk keeps up: what credit does not hold back, the socket's queue must."""
        busy = self._disk.backlog >= MAX_BACKLOG or self._engine.pending_octets > self._window_octets
        if self._listening == busy:
            self._listening = not busy
            self._connection.listen(self._listening)

    def _explain(self, event: LogEvent) -> LogEvent:
        """Say what silence from the start may mean."""
        if isinstance(event, PeerClosed) and not event.final and self._connection.silent:
            return msgspec.structs.replace(event, reason=f"{event.reason}, {NEVER_ANSWERED}")
        return event

    def _tell(self, event: LogEvent) -> None:
        self.counters.count_event(event)
        self._refusals.note(event)
        match event:
            case FileReceived(path=path, sha1=sha1) | FileRestored(path=path, sha1=sha1):
                self._holdings.put(path, sha1)
            case FileDeleted(path=path):
                self._holdings.remove(path)
            case PeerClosed(reason=reason, final=True) if not self.finished.done():
                self.finished.set_result(reason)
        self._streams.add(event)
        if self._on_event is not None:
            self._on_event(event)
