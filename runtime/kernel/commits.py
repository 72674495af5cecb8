"""Records on their way to a store.

Nothing is acknowledged, sent or passed on before its record is durable. A story yields a `Commit`
and is resumed with the outcome; `RecordWriter` is the host's part of it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import msgspec

from specwire.runtime.kernel.events import Committed
from specwire.runtime.kernel.status import StoreStatus
from specwire.runtime.kernel.store import Durability, Failure, Schema, Statement, Store

STEP = 256
"""Most committed tickets that a host reports in one iteration of the event loop."""


class Records(Protocol):
    """How the records of a protocol are stored."""

    @property
    def schema(self) -> Schema:
        """Tables of the database."""

    def statements(self, record: Any) -> Sequence[Statement]:
        """Return the statements that store a record."""

    def load(self, connection: sqlite3.Connection) -> Any:
        """Return what is stored, for `Started.restored`. Runs in the store's thread."""


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a host stores records.

    Attributes:
        waiting_octets: the host stops receiving while more octets wait for the disk.
        options: further options of `Store`, for tests.
    """

    path: Path
    records: Records
    durability: Durability = "process"
    waiting_octets: int = 64 << 20
    options: dict[str, Any] = {}


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Effect: commit these records together or not at all.

    The host reports the outcome with a `Committed` event. NORFAB's hosts call `stored` and
    `not_stored` of the engine.

    Attributes:
        ticket: grows with each commit of an engine.
        records: in the order of writing; of the engine's own record types.
        refusable: fails at once while the disk fails; every other commit waits for the disk.
    """

    ticket: int
    records: tuple[Any, ...]
    refusable: bool = False


class RecordWriter:
    """The store of one host.

    Args:
        on_committed: called on the event loop, with at most `STEP` durable tickets per iteration.
        on_failing: called with the reason when the disk fails, with "" when it works again.
        on_notice: called with a sentence about a damaged file.
    """

    def __init__(
        self,
        settings: StoreSettings,
        *,
        on_committed: Callable[[Committed], None],
        on_failing: Callable[[str], None],
        on_notice: Callable[[str], None],
    ) -> None:
        self._records, self._waiting_octets = settings.records, settings.waiting_octets
        self._on_committed = on_committed
        self._counts = StoreStatus()
        self._store = Store(
            settings.path,
            settings.records.schema,
            settings.durability,
            on_committed=self._on_attempt,
            on_refusing=on_failing,
            on_notice=on_notice,
            **settings.options,
        )
        self._begun: dict[int, float] = {}
        self._durable = self._reported = 0
        self._next: asyncio.Handle | None = None

    @property
    def is_behind(self) -> bool:
        """Whether more octets wait than allowed."""
        return self._store.waiting_octets > self._waiting_octets

    def status(self) -> StoreStatus:
        """Return the counts of this moment."""
        return msgspec.structs.replace(self._counts, pending=self._store.waiting)

    async def open(self) -> Any:
        """Open the store and return what it holds; raises StoreError."""
        await self._store.open()
        return await self._store.call(self._records.load)

    def write(self, commit: Commit) -> None:
        """Queue a commit. After an exception of `Records.statements` the store has nothing of it."""
        statements = [one for record in commit.records for one in self._records.statements(record)]
        self._store.put(commit.ticket, statements, refusable=commit.refusable)
        self._begun[commit.ticket] = monotonic()  # only what the store has can become durable

    async def close(self) -> None:
        """Commit what is queued and close; nothing is reported any more. Raises StoreError."""
        self._on_committed = _ignore
        if self._next is not None:
            self._next.cancel()
        await self._store.close()

    def _on_attempt(self, last: int, failures: Sequence[Failure]) -> None:
        for failure in failures:
            self._begun.pop(failure.ticket, None)
        self._counts.failed += len(failures)
        self._durable = max(self._durable, last)
        if failures:
            self._on_committed(Committed(self._reported, tuple(failures)))
        if self._next is None:
            self._report()

    def _report(self) -> None:
        """Report the next durable tickets; the others in the next iterations of the event loop."""
        self._next = None
        now, begun = monotonic(), self._begun
        ended = 0
        while begun and ended < STEP and (ticket := next(iter(begun))) <= self._durable:
            self._counts.commit_s.add(now - begun.pop(ticket))
            self._reported = ticket
            ended += 1
        if ended:
            self._counts.commits += ended
            self._on_committed(Committed(self._reported))
        if begun and next(iter(begun)) <= self._durable:
            self._next = asyncio.get_running_loop().call_soon(self._report)


def _ignore(event: Committed) -> None:
    """Report to nobody: the host has stopped."""
