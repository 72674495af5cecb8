"""Session of a client: socket, store and clock around `ClientEngine`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.kernel.commits import Commit
from specwire.runtime.kernel.service import Tasks
from specwire.runtime.kernel.store import Durability, Failure
from specwire.runtime.norfab.client.actions import Action, Connect, Report, Send
from specwire.runtime.norfab.client.connection import Connection
from specwire.runtime.norfab.client.engine import ClientEngine
from specwire.runtime.norfab.client.errors import ClientClosedError
from specwire.runtime.norfab.client.events import (
    Answered,
    Happening,
    JobEnded,
    Progress,
    StoreFailed,
)
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.memory import MemoryStore
from specwire.runtime.norfab.client.store import ClientStore, DiskStore
from specwire.runtime.norfab.client.waiting import Waiting
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.pendingcommits import StoreRecovered
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.security import Security

logger = logging.getLogger(__name__)

TICK_S = 0.1
PRUNE_S = 60.0


class Session:
    """One run of a client, from `open` to `close`; arguments as in `NorfabClient`.

    An exception in a callback of the event loop, ours or the user's, ends the session: every waiting
    caller gets it.

    Attributes:
        running: between `open` and `close`, without such an exception.
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
        self._submitting: dict[int, asyncio.Future[bool]] = {}
        self.store: ClientStore = MemoryStore(settings, self._on_committed)
        if folder is not None:
            self.store = DiskStore(
                folder,
                durability,
                settings,
                on_committed=self._on_committed,
                on_refusing=self._on_refusing,
                on_notice=lambda sentence: self._emit(StoreFailed(sentence)),
            )

    async def open(self, *, resume: bool) -> None:
        """Open the store and connect; raises StoreError."""
        self._loop = asyncio.get_running_loop()
        self._offset = time.time() - self._loop.time()
        self.waiting = Waiting()
        await self.store.open()
        try:
            unfinished = await self.store.unfinished() if resume else []
        except BaseException:
            await self.store.close()
            raise
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
        self.perform(self.engine.restore(unfinished, self.now()))
        self.perform(self.engine.open(self.now()))
        self._tasks.start(self._tick())

    async def close(self) -> None:
        """Commit what is queued, and end every waiting call with ClientClosedError. May be called twice.

        Raises:
            StoreError: the disk does not answer.
        """
        if not self._open:
            return
        self._open = False
        if self.running:
            self.perform(self.engine.close(self.now()))
            self.running = False
        await self._tasks.close()
        self.waiting.close(ClientClosedError("the client was closed; the job can be collected later"))
        try:
            await self.store.close()
        finally:
            for ticket in list(self._submitting):
                self._settle(ticket, stored=False)
            await self._connection.close()

    def now(self) -> float:
        """Return seconds since the epoch, from a clock that never goes backwards."""
        return self._loop.time() + self._offset

    def when_stored(self, actions: Sequence[Action]) -> asyncio.Future[bool]:
        """Return the outcome of the commit among `actions`: True when durable, False when failed."""
        stored: asyncio.Future[bool] = self._loop.create_future()
        ticket = next(action.ticket for action in actions if isinstance(action, Commit))
        self._submitting[ticket] = stored
        return stored

    def perform(self, actions: Sequence[Action]) -> None:
        """Perform the effects of the engine."""
        if not actions:
            return
        for action in actions:
            if type(action) is Send:
                if reason := self._connection.send(action.command):
                    self.perform(self.engine.malformed(f"not sent: {reason}", self.now()))
            elif type(action) is Commit:
                self.store.write(action.ticket, action.records, refusable=action.refusable)
            elif type(action) is Report:
                self._emit(action.happening)
            elif type(action) is Connect:
                self._connect(action.endpoint)
            else:
                self._connection.drop()
        self.waiting.has_room(self.engine.room > 0)

    # --- callbacks of the event loop

    def _handle(self, method: Callable[..., list[Action]], *arguments: object) -> None:
        """Call a method of the engine, and perform its effects; an exception ends the session."""
        if self.running:
            try:
                self.perform(method(*arguments, self.now()))
            except Exception as error:
                self._end(error)
                raise

    async def _tick(self) -> None:
        pruned_at = 0.0
        while self.running:
            self._handle(self.engine.tick)
            if self.now() - pruned_at >= PRUNE_S:
                pruned_at = self.now()
                self.store.prune(self.engine.ticket(), pruned_at)
            await asyncio.sleep(TICK_S)

    def _on_command(self, command: Command) -> None:
        self._handle(self.engine.receive, command)

    def _on_lost(self, reason: str) -> None:
        self._handle(self.engine.lost, reason)

    def _end(self, fault: Exception) -> None:
        """End the session with an exception, which the event loop or the connection reports."""
        self.running = False
        self.waiting.close(fault)

    def _on_committed(self, last: int, failures: Sequence[Failure]) -> None:
        # Futures first: their callers wake up when this method has returned, or raised.
        for failure in failures:
            self._settle(failure.ticket, stored=False)
        while self._submitting and (first := next(iter(self._submitting))) <= last:
            self._settle(first, stored=True)
        for failure in failures:
            if self.running:
                self._handle(self.engine.not_stored, *failure)
            else:
                self._emit(StoreFailed(f"records could not be stored: {failure.reason}"))
        self._handle(self.engine.stored, last)

    def _settle(self, ticket: int, *, stored: bool) -> None:
        future = self._submitting.pop(ticket, None)
        if future is not None and not future.done():
            future.set_result(stored)

    def _on_refusing(self, reason: str) -> None:
        if reason:
            waiting = "new jobs are refused, and results wait in memory, until the disk accepts writes"
            self._emit(StoreFailed(f"records cannot be stored: {reason}; {waiting}"))
        else:
            self._emit(StoreRecovered())

    def _connect(self, endpoint: str) -> None:
        try:
            self._connection.open(endpoint)
        except TransportError as error:
            self._loop.call_soon(self._on_lost, str(error))

    def _emit(self, happening: Happening) -> None:
        if type(happening) is JobEnded:
            self.waiting.ended(happening.result)
        elif type(happening) is Progress:
            self.waiting.progress(happening)
        elif type(happening) is Answered:
            self.waiting.answered(happening.uuid, happening.answer)
        if self._on_event is not None:
            self._on_event(happening)
        elif type(happening) is StoreFailed:
            logger.warning("the store of client %s: %s", self._name, happening.reason)
