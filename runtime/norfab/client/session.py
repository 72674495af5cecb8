"""The shell of a client: a socket, a store and the clock around `ClientEngine`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq.tasks import Tasks
from specwire.runtime.norfab.client.actions import Action, Connect, Report, Send, Store
from specwire.runtime.norfab.client.connection import Connection
from specwire.runtime.norfab.client.engine import ClientEngine
from specwire.runtime.norfab.client.errors import ClientClosedError
from specwire.runtime.norfab.client.events import Answered, Happening, JobEnded, Progress, StoreFailed
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.memory import MemoryStore
from specwire.runtime.norfab.client.store import DiskStore
from specwire.runtime.norfab.client.waiting import Waiting
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.store.database import Durability
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.security import Security

TICK_S = 0.1
PRUNE_S = 60.0


class Session:
    """One run of a client, from `open` to `close`; arguments as in `NorfabClient`.

    What raises where nobody waits for it, a fault of ours or of a callback, ends it: whoever waits is told that error.

    Attributes:
        running: between `open` and `close`, and no fault.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        name: str,
        folder: Path | None,
        security: Security,
        durability: Durability,
        settings: ClientSettings,
        dialect: Dialect,
        tap: Recorder | None,
        on_event: Callable[[Happening], None] | None,
    ) -> None:
        self.engine = ClientEngine(endpoints, settings, now=time.time(), observed=on_event is not None)
        self.running = self._open = False
        self._name, self._security, self._dialect, self._tap = name, security, dialect, tap
        self._settings, self._on_event = settings, on_event
        self._tasks = Tasks("the NORFAB client")
        self._submitting: dict[int, asyncio.Future[None]] = {}
        self.store: DiskStore | MemoryStore = MemoryStore(settings, self._on_stored)
        if folder is not None:
            self.store = DiskStore(
                folder,
                durability,
                settings,
                on_committed=self._on_stored,
                on_failed=self._on_not_stored,
                on_damaged=lambda told: self._tell(StoreFailed(told)),
            )

    async def open(self, *, resume: bool) -> None:
        """Open the store and connect; raises StoreError."""
        self._loop = asyncio.get_running_loop()
        self._offset = time.time() - self._loop.time()
        self.waiting = Waiting()
        await self.store.open()
        self._connection = Connection(
            self._name,
            on_command=self._on_command,
            on_malformed=lambda reason: self.perform(self.engine.malformed(reason, self.now())),
            on_lost=self._on_lost,
            dialect=self._dialect,
            security=self._security,
            body_octets=self._settings.body_octets,
            tap=self._tap,
        )
        self.running = self._open = True
        if resume:
            self.perform(self.engine.restore(await self.store.unfinished(), self.now()))
        self.perform(self.engine.open(self.now()))
        self._tasks.start(self._tick())

    async def close(self) -> None:
        """Keep what is to be kept, and let everybody know who waits. May be called twice."""
        if not self._open:
            return
        self._open = False
        if self.running:
            self.perform(self.engine.close(self.now()))
            self.running = False
        await self._tasks.close()
        self.waiting.close(ClientClosedError("the client was closed; the job can be collected later"))
        await self.store.close()
        await self._connection.close()

    def now(self) -> float:
        """Return the seconds since the epoch, as a clock that does not go backwards."""
        return self._loop.time() + self._offset

    def when_stored(self, actions: Sequence[Action]) -> asyncio.Future[None]:
        """Return what is done when the first of these that is to be stored is, or cannot be."""
        stored: asyncio.Future[None] = self._loop.create_future()
        ticket = next(action.ticket for action in actions if isinstance(action, Store))
        self._submitting[ticket] = stored
        return stored

    def perform(self, actions: Sequence[Action]) -> None:
        """Do what the engine wants done."""
        if not actions:
            return
        for action in actions:
            if type(action) is Send:
                if reason := self._connection.send(action.command):
                    self.perform(self.engine.malformed(f"not sent: {reason}", self.now()))
            elif type(action) is Store:
                self.store.write(action.ticket, action.records)
            elif type(action) is Report:
                self._tell(action.happening)
            elif type(action) is Connect:
                self._connect(action.endpoint)
            else:
                self._connection.drop()
        self.waiting.has_room(self.engine.room > 0)

    # --- what happens

    async def _tick(self) -> None:
        pruned_at = 0.0
        while self.running:
            try:
                self.perform(self.engine.tick(self.now()))
                if self.now() - pruned_at >= PRUNE_S:
                    pruned_at = self.now()
                    self.store.prune(self.engine.ticket(), pruned_at)
            except Exception as error:
                self._end(error)
                raise
            await asyncio.sleep(TICK_S)

    def _on_command(self, command: Command) -> None:
        if self.running:
            try:
                self.perform(self.engine.receive(command, self.now()))
            except Exception as error:
                self._end(error)
                raise

    def _on_lost(self, reason: str) -> None:
        if self.running:
            try:
                self.perform(self.engine.lost(reason, self.now()))
            except Exception as error:
                self._end(error)
                raise

    def _end(self, fault: Exception) -> None:
        """Let a fault end the session; the event loop, or the link, reports it."""
        self.running = False
        self.waiting.close(fault)

    def _on_stored(self, ticket: int) -> None:
        if self.running:
            self.perform(self.engine.stored(ticket, self.now()))
        while self._submitting and (first := next(iter(self._submitting))) <= ticket:
            self._settle(self._submitting.pop(first))

    def _on_not_stored(self, ticket: int, reason: str) -> None:
        if self.running:
            self.perform(self.engine.not_stored(ticket, reason, self.now()))
        stored = self._submitting.pop(ticket, None)
        if stored is not None:
            self._settle(stored)

    @staticmethod
    def _settle(stored: asyncio.Future[None]) -> None:
        if not stored.done():
            stored.set_result(None)

    def _connect(self, endpoint: str) -> None:
        try:
            self._connection.open(endpoint)
        except TransportError as error:
            self._loop.call_soon(self._on_lost, str(error))

    def _tell(self, happening: Happening) -> None:
        if type(happening) is JobEnded:
            self.waiting.ended(happening.result)
        elif type(happening) is Progress:
            self.waiting.progress(happening)
        elif type(happening) is Answered:
            self.waiting.answered(happening.uuid, happening.answer)
        if self._on_event is not None:
            self._on_event(happening)
