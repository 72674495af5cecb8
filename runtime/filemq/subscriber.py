"""FILEMQ client as an asyncio service: a host for the engine, an inbox, and its thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path

import msgspec

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq import journal
from specwire.runtime.filemq.access import ClientSecurity, origin_of
from specwire.runtime.filemq.client import ClientEngine
from specwire.runtime.filemq.codec import FilemqCodec, find_dialect
from specwire.runtime.filemq.connection import (
    WINDOW_OCTETS,
    ClientOptions,
    ConfirmDeletions,
    Subscribe,
)
from specwire.runtime.filemq.disk import marks_above
from specwire.runtime.filemq.diskwork import AwaitFiles, BatchDone, DiskBatch
from specwire.runtime.filemq.events import PeerClosed, SubscriberCounters
from specwire.runtime.filemq.inbox import DEFAULT_RULES, Inbox
from specwire.runtime.filemq.names import RESERVED, as_utf8
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.filemq.status import Refusals, SubscriberStatus
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import EventStreams, LogEvent, Refused
from specwire.runtime.kernel.service import (
    ConnectionSettings,
    HostSettings,
    HostState,
    HostStoppedError,
    Service,
)
from specwire.runtime.kernel.sockets import MessageTap
from specwire.runtime.transport.dealer import MAX_FRAME_OCTETS
from specwire.runtime.transport.endpoint import fault_in_endpoint
from specwire.runtime.transport.security import NULL

JOURNAL = f"{RESERVED}/{journal.NAME}"
JOURNAL_LOST = "a file that only they name counts as not received from a server"


class FilemqClient(Service):
    """Keeps an inbox equal to a server's publications; ``async with`` starts and stops it.

    Args:
        endpoint: of the server.
        inbox: folder that receives the files, each under its full virtual path.
        paths: virtual paths to subscribe to.
        tap: records every message.
        resync: at each connection, ask for everything that the inbox lacks. Without it only files
            that change from now on arrive, and `holdings` has only those.
        window_octets: content that may be on the way or wait for the disk.
        timers: seconds by name (``heartbeat``, ``expiry``, ``reconnect``); default: the dialect's.
        protocol: dialect, one of `specwire.runtime.filemq.codec.DIALECTS`.
        sync: wait for the disk before a file is moved to its place.
        check: compute the SHA-1 of arriving files, and refuse one that differs; see `Inbox`.
        security: how this client proves its identity, and which server it expects.
        rules: settings of the inbox: how much may be deleted at once, and how long it is kept.
        origin: name of the server in the inbox, instead of its public key or endpoint.
        preserve: give files the modes and modification times that they have at the server, and
            create empty folders.
        on_event: called with each event.

    Attributes:
        finished: done with the reason when the client has ended for good, by request or by the
            server. It raises a fault of the inbox.

    Raises:
        ValueError: a path is no virtual path, the endpoint is none, or the protocol is unknown.
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
        preserve: bool = False,
        rules: InboxRules = DEFAULT_RULES,
        on_event: Callable[[LogEvent], None] = lambda event: None,
    ) -> None:
        if fault := fault_in_endpoint(endpoint, listening=False):
            raise ValueError(f"{endpoint!r} {fault}")
        self._dialect = dialect = find_dialect(protocol)
        is_ours = dialect.habits.deletes_reliably  # others do not know our options
        self._folder, self._security, self._tap = inbox.absolute(), security, tap
        self._counts, self._refusals = SubscriberCounters(), Refusals()
        self._on_event = on_event
        self._settings = ClientOptions(
            endpoint=endpoint,
            paths=paths,
            resync=resync,
            window_octets=window_octets,
            timers=timers or {},
            check_s=rules.check_s,
            marks=marks_above(inbox) if is_ours else "",
            attributes=preserve and is_ours,
            renames=rules.trash_s > 0 and is_ours,
        )
        self._inbox = Inbox(
            inbox,
            sync=sync,
            check=check,
            rules=rules,
            repeats=dialect.habits.deletes_reliably,
            origin=origin or origin_of(endpoint, security),
        )
        self._prepare()

    def _prepare(self) -> None:
        """Create what one run needs."""
        self._engine = ClientEngine(self._settings, self._dialect, new_identity=make_identity)
        self._disk, self._streams = ThreadPoolExecutor(1, "filemq-disk"), EventStreams()
        self._closing = asyncio.Lock()
        self._fault: BaseException | None = None
        self._host = Host(
            self._engine,
            FilemqCodec(self._dialect, self._counts),
            HostSettings(
                connections=ConnectionSettings(
                    security=self._security,
                    high_water=self._dialect.habits.queue_messages,
                    frame_octets=MAX_FRAME_OCTETS,
                ),
                handlers={DiskBatch: self._perform},
                stop_s=inf,  # what was received is written, however long the disk takes
            ),
            on_event=self._emit,
            tap=None if self._tap is None else MessageTap(self._tap, received_as="S", sent_as="C"),
        )

    @property
    def holdings(self) -> Mapping[str, str]:
        """SHA-1 by name of the files in the inbox under the paths, as far as they were listed."""
        return self._engine.holdings

    @property
    def counters(self) -> SubscriberCounters:
        """Counts since the start."""
        return self._counts.with_host(self._host)

    def events(self) -> AsyncIterator[LogEvent]:
        """Return an iterator over the events from now on, which ends when this client stops."""
        return self._streams.read()

    def status(self) -> SubscriberStatus:
        """Return the status, from `start` on."""
        engine, host = self._engine, self._host.status()
        return SubscriberStatus(
            endpoint=self._settings.endpoint,
            protocol=self._dialect.name,
            process=host.process,
            inbox=as_utf8(str(self._folder)),
            paths=engine.paths,
            connection=engine.phase,
            files=len(engine.holdings),
            under_way=engine.under_way,
            pending_octets=engine.pending_octets,
            withheld=self._inbox.withheld,
            counters=self.counters,
            refusals=self._refusals.newest(),
            captures=host.captures,
        )

    async def until_equal(self, expected: Mapping[str, str], *, timeout_s: float) -> None:
        """Return when the inbox holds exactly `expected`, as `FilemqServer.digests` returns it.

        Raises:
            TimeoutError: with the names of some files that differ.
            HostStoppedError: the client has stopped.
        """
        await self._host.call(AwaitFiles(dict(expected), timeout_s))

    async def start(self) -> None:
        """Open the inbox and connect; also again after `stop`.

        Raises:
            InboxError: the inbox cannot be used.
            TransportError: the credentials are invalid.
            HostStoppedError: the client runs already, or was stopped while it started.
        """
        if self._host.state is HostState.STOPPED:
            self._counts.add_host(self._host)
            self._settings = msgspec.structs.replace(self._settings, paths=self._engine.paths)
            self._prepare()
        elif self._host.state is not HostState.NEW:
            raise HostStoppedError(f"the client is {self._host.state.value}")
        self.finished: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._inbox.open)
            if lost := self._inbox.lines_lost:
                self._emit(Refused(JOURNAL, f"{lost} of its lines cannot be read; {JOURNAL_LOST}"))
            await self._host.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Say KTHXBAI, finish the disk work that was ordered, and release everything.

        May be called in every state.
        """
        await self._host.stop()
        await self._release()

    def accept_deletions(self) -> None:
        """Perform the withheld deletions, and the next ones, however many there are."""
        self._host.notice(ConfirmDeletions())

    def subscribe(self, path: str) -> None:
        """Subscribe to another path, too; raises ValueError."""
        self._host.notice(Subscribe(self._engine.check_path(path)))

    async def _release(self) -> None:
        async with self._closing:  # a start that fails because of `stop` releases, too
            await asyncio.to_thread(self._close)
        self._streams.end()

    def _close(self) -> None:
        self._disk.shutdown()
        self._inbox.close()

    def _perform(self, batch: DiskBatch) -> asyncio.Future[BatchDone]:
        """Perform orders in the inbox's thread, after all earlier ones."""
        return asyncio.get_running_loop().run_in_executor(self._disk, self._perform_now, batch)

    def _perform_now(self, batch: DiskBatch) -> BatchDone:
        try:
            outcomes = self._inbox.perform(batch.orders)
        except BaseException as fault:
            self._fault = fault  # the engine ends the client
            raise
        return BatchDone(outcomes, self._inbox.pending)

    def _emit(self, event: LogEvent) -> None:
        self._counts.count_event(event)
        self._refusals.note(event)
        if isinstance(event, PeerClosed) and event.final and not self.finished.done():
            if self._fault is None:
                self.finished.set_result(event.reason)
            else:
                self.finished.set_exception(self._fault)
        self._streams.add(event)
        self._on_event(event)


def make_identity() -> bytes:
    """Return a new routing id. One that begins with NUL would be libzmq's own."""
    return b"\x01" + os.urandom(7)
