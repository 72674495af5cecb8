"""The FILEMQ client as an asyncio service: a socket, an inbox and the clock around `ClientEngine`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq import journal
from specwire.runtime.filemq.actions import (
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
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.credentials import ClientSecurity
from specwire.runtime.filemq.dialects import find_dialect
from specwire.runtime.filemq.diskwork import DiskWork
from specwire.runtime.filemq.endpoint import fault_in_endpoint
from specwire.runtime.filemq.events import (
    Event,
    EventHub,
    FileDeleted,
    FileReceived,
    PeerClosed,
    Refused,
    Watch,
)
from specwire.runtime.filemq.holdings import Holdings
from specwire.runtime.filemq.inbox import Inbox
from specwire.runtime.filemq.names import RESERVED
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.security import NULL

MAX_BACKLOG = 2000
LINGER_S = 0.5
JOURNAL = f"{RESERVED}/{journal.NAME}"
NEVER_ANSWERED = "no answer at all: it is not there, or its keys or passwords and ours do not fit"
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
        security: how this client proves who it is, and which server it expects.
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
        security: ClientSecurity = NULL,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        if fault := fault_in_endpoint(endpoint, listening=False):
            raise ValueError(f"{endpoint!r} {fault}")
        self.counters = Counters()
        self._endpoint = endpoint
        self._dialect = find_dialect(protocol)
        self._engine = ClientEngine(
            paths,
            resync=resync,
            window_octets=window_octets,
            timers=timers,
            dialect=self._dialect,
            server=endpoint,
        )
        self._tick_s = min({**self._dialect.timers, **(timers or {})}.values()) / 4
        self._inbox = Inbox(inbox, sync=sync, keep_deleted=not self._dialect.habits.deletes_reliably)
        self._tap, self._window_octets, self._security = tap, window_octets, security
        self._listening = True
        self._hub = EventHub(on_event)
        self._holdings = Holdings()
        self._dealer: Dealer | None = None
        self._answered = False
        self._conversation = ""

    @property
    def holdings(self) -> Mapping[str, str]:
        """SHA-1 by name of the files in the inbox under the subscribed paths, as far as they were listed."""
        return self._holdings.digests

    def events(self) -> Watch:
        """Return an asynchronous iterator over the events from now on."""
        return self._hub.watch()

    async def until_equal(self, expected: Mapping[str, str], *, timeout_s: float) -> None:
        """Return when the inbox holds exactly `expected` (SHA-1 by name, see `FilemqServer.digests`).

        Raises TimeoutError, with the names of some files that differ.
        """
        await self._holdings.until_equal(expected, timeout_s=timeout_s)

    async def start(self) -> None:
        """Open the inbox and connect; raises InboxError or TransportError."""
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        self.finished: asyncio.Future[str] = loop.create_future()
        await asyncio.to_thread(self._inbox.open)
        if self._inbox.lines_lost:
            self._tell(
                Refused(JOURNAL, f"{self._inbox.lines_lost} of its lines cannot be read; {JOURNAL_LOST}")
            )
        self._disk = DiskWork(self._inbox.perform_all, on_outcomes=self._on_outcomes, on_fault=self._on_fault)
        self._context = TransportContext()
        try:
            self._perform(self._engine.open(self._clock()))
        except BaseException:
            await self._release()
            raise
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Say KTHXBAI, finish the disk work that was ordered, and release everything."""
        self._perform(self._engine.close(self._clock()))
        self._ticking.cancel()
        with suppress(asyncio.CancelledError):
            await self._ticking
        await self._release()

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
        self._disconnect()
        await self._disk.close()
        await asyncio.to_thread(self._inbox.close)
        await self._context.close()
        self._hub.end()

    def _on_message(self, frames: list[bytes]) -> None:
        self._answered = True
        self.counters.count_in(frames, self._dialect.content_octets(frames))
        self._record("S", frames)
        self._perform(self._engine.receive(frames, self._clock()))

    def _on_sent(self, frames: Sequence[bytes]) -> None:
        self.counters.count_out(frames, self._dialect.content_octets(frames))
        self._record("C", frames)

    def _record(self, sender: str, frames: Sequence[bytes]) -> None:
        if self._tap is not None:
            self._tap.record(
                sender=sender, peer=self._endpoint, conversation=self._conversation, frames=frames
            )

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

    def _perform(self, actions: Sequence[ClientAction]) -> None:
        for action in actions:
            match action:
                case Send(command=command):
                    if self._dealer is not None:
                        self._dealer.send(self._dialect.encode(command))
                case Report(event=event):
                    self._tell(self._explain(event))
                case Close():
                    self._disconnect()
                case Connect():
                    self._connect()
                case _:
                    self._order(action)

    def _order(self, action: DiskAction) -> None:
        self._disk.order(action)
        self._listen_or_not()

    def _listen_or_not(self) -> None:
        """Receive while the disk keeps up: what credit does not hold back, the socket's queue must."""
        busy = self._disk.backlog >= MAX_BACKLOG or self._engine.pending_octets > self._window_octets
        self._listening = not busy
        if self._dealer is not None:
            if busy:
                self._dealer.pause()
            else:
                self._dealer.resume()

    def _connect(self) -> None:
        self._disconnect()
        self._conversation = os.urandom(8).hex()
        self._answered = False
        self._dealer = Dealer(
            self._context,
            self._endpoint,
            on_message=self._on_message,
            on_sent=self._on_sent,
            high_water=self._dialect.habits.queue_messages,
            security=self._security,
        )

    def _disconnect(self) -> None:
        dealer, self._dealer = self._dealer, None
        if dealer is not None:
            dealer.close(linger_s=LINGER_S)

    def _explain(self, event: Event) -> Event:
        """ZMTP tells a client nothing about why it is kept out: say what silence from the start may mean."""
        if isinstance(event, PeerClosed) and not event.final and not self._answered:
            return msgspec.structs.replace(event, reason=f"{event.reason}, {NEVER_ANSWERED}")
        return event

    def _tell(self, event: Event) -> None:
        self.counters.count_event(event)
        match event:
            case FileReceived(path=path, sha1=sha1):
                self._holdings.put(path, sha1)
            case FileDeleted(path=path):
                self._holdings.remove(path)
            case PeerClosed(reason=reason, final=True) if not self.finished.done():
                self.finished.set_result(reason)
        self._hub.tell(event)
