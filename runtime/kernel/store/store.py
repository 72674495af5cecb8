"""Durable writes of one peer, committed by one thread.

`put` queues a *write*: statements that are committed together or not at all, under a number
(ticket) that grows. All writes in the queue when a commit ends are the next transaction. After each
attempt, `on_committed(last, failures)` is called on the event loop: every write up to `last` is
durable, except those in `failures` of this call or an earlier one.

Failures:

- A faulty write (a constraint, a value that SQLite does not have) fails alone: the transaction is
  repeated in halves until the faulty write is alone.
- While the disk fails (full, EIO, locked by another process), the store *refuses*: a `refusable`
  write, whose sender can handle that, fails at once with the reason. Every other write stays in the
  queue, in order, and is tried again every `probe_s` seconds. The first success ends the refusal.
- A damaged file is replaced by one with the rows that can still be read (see `salvage`), once.

Nothing else is dropped. Reads run in the same thread, after the writes that were queued before
them, except those that a failing disk keeps waiting.

A commit that failed may be complete in the WAL: SQLite overwrites it there with the next commit of
the same connection, but a new connection would restore it. So the connection is kept while the disk
fails. Where the process is killed meanwhile, writes that have failed may be there afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from specwire.runtime.kernel.store.database import (
    Connect,
    Durability,
    Execute,
    Schema,
    Statement,
    connect,
    is_damage,
    is_faulty,
    open_database,
    transaction,
    write,
)
from specwire.runtime.kernel.store.lock import StoreError, StoreLock
from specwire.runtime.kernel.store.salvage import finish_salvage, salvage

logger = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 4096
"""Writes of one transaction at most."""

PROBE_S = 1.0
CLOSE_S = 30.0

_PROBE = (
    Execute("CREATE TABLE specwire_probe (octets BLOB)", ()),
    Execute("INSERT INTO specwire_probe VALUES (zeroblob(65536))", ()),
    Execute("DROP TABLE specwire_probe", ()),
)
"""64 KiB that nobody needs: committed to learn whether the disk takes writes again."""

_SIZED = (bytes, bytearray, str)


class Failure(NamedTuple):
    """A write that was not committed, and why."""

    ticket: int
    reason: str


class _Write(NamedTuple):
    ticket: int
    statements: Sequence[Statement]
    octets: int
    refusable: bool


class _Call(NamedTuple):
    """A function to run in the thread, with the connection."""

    function: Callable[[sqlite3.Connection], Any]
    answer: asyncio.Future[Any]


class Store:
    """One database file. `open` comes first and `close` last; all methods are for one event loop.

    Args:
        path: the file. Its folder is created if necessary.
        schema: its tables.
        durability: ``process`` or ``full``; see `database`.
        on_committed: called after each attempt with `last` and `failures`; see the module.
        on_refusing: called with the reason when the store begins to refuse, with "" when it accepts
            again.
        on_notice: called with a sentence about a damaged file.
        probe_s: seconds between attempts while the disk fails.
        close_s: seconds that `close` waits for a disk that does not answer.
        connect: opens a connection; tests pass one that fails.

    Attributes:
        refusing: why the store refuses now; empty where it accepts.
        waiting: writes without an outcome; `waiting_octets`: of their texts and blobs.
        commits: transactions so far.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        durability: Durability = "process",
        *,
        on_committed: Callable[[int, Sequence[Failure]], None],
        on_refusing: Callable[[str], None] = lambda reason: None,
        on_notice: Callable[[str], None] = logger.warning,
        probe_s: float = PROBE_S,
        close_s: float = CLOSE_S,
        connect: Connect = connect,
    ) -> None:
        self.path, self.refusing = path, ""
        self.waiting = self.waiting_octets = self.commits = 0
        self._schema, self._durability, self._connect = schema, durability, connect
        self._on_committed, self._on_refusing, self._on_notice = on_committed, on_refusing, on_notice
        self._probe_s, self._close_s = probe_s, close_s
        self._last = 0  # every write up to this ticket is durable or has failed
        self._accepting = False
        self._ended: asyncio.Future[None] | None = None
        self._queue: queue.SimpleQueue[_Write | _Call | None] = queue.SimpleQueue()
        # Of the thread:
        self._connection: sqlite3.Connection | None = None
        self._backlog: deque[_Write] = deque()
        self._fault = ""  # why the disk fails; empty where it does not
        self._retry_at = 0.0
        self._salvaged = False

    async def open(self) -> None:
        """Lock, check, salvage or upgrade the file, and start the thread.

        Raises:
            StoreInUseError: another process has it.
            StoreVersionError: another version of this program made it.
            StoreError: it cannot be used.
        """
        self._loop = asyncio.get_running_loop()
        try:
            self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path.parent} cannot be created: {error.strerror}") from None
        self._lock = StoreLock(self.path)
        self._ended = self._loop.create_future()
        self._accepting = True
        threading.Thread(target=self._run, name=f"store {self.path.name}", daemon=True).start()
        try:
            await self.call(lambda connection: None)
        except StoreError:
            await self.close()
            raise
        except asyncio.CancelledError:
            self._stop()
            raise

    def put(self, ticket: int, statements: Sequence[Statement], *, refusable: bool = False) -> None:
        """Commit the statements together; returns at once.

        Args:
            ticket: larger than every one before.
            statements: executed in this order.
            refusable: fail at once, instead of waiting, while the disk fails.
        """
        octets = sum([len(value) for _, row in statements for value in row if isinstance(value, _SIZED)])
        self.waiting += 1
        self.waiting_octets += octets
        if self._accepting and not (refusable and self.refusing):
            self._queue.put(_Write(ticket, statements, octets, refusable))
        else:
            reason = self.refusing if self._accepting else f"{self.path} is closed"
            asyncio.get_running_loop().call_soon(self._report, None, (Failure(ticket, reason),), 1, octets)

    async def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; raises StoreError."""
        return await self.call(lambda connection: connection.execute(sql, parameters).fetchall())

    async def call(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` in the thread with the connection, in autocommit mode; raises StoreError.

        It is run again after a damaged file was replaced.
        """
        if not self._accepting:
            raise StoreError(f"{self.path} is closed")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Call(function, answer))
        return await answer

    async def close(self) -> None:
        """Commit what is queued, and release the file. Writes that the disk does not take fail.

        Raises:
            StoreError: the disk does not answer within `close_s`.
        """
        self._stop()
        if self._ended is not None:
            await asyncio.wait([self._ended], timeout=self._close_s)
            if not self._ended.done():
                raise StoreError(f"{self.path}: the disk has not answered for {self._close_s:g} s")

    def _stop(self) -> None:
        if self._accepting:
            self._accepting = False
            self._queue.put(None)

    # --- on the event loop, called by the thread

    def _report(self, last: int | None, failures: Sequence[Failure], writes: int, octets: int) -> None:
        self.waiting -= writes
        self.waiting_octets -= octets
        self._last = self._last if last is None else last
        self._on_committed(self._last, failures)

    def _set_refusing(self, reason: str) -> None:
        before, self.refusing = self.refusing, reason
        if bool(reason) != bool(before):
            self._on_refusing(reason)

    # --- in the thread

    def _run(self) -> None:
        closing = False
        while not closing:
            for item in self._dequeue():
                if item is None:
                    closing = True
                elif isinstance(item, _Call):
                    self._commit_backlog()
                    self._answer(item)
                elif self._fault and item.refusable:
                    self._fail([item], self._fault)
                else:
                    self._backlog.append(item)
            self._commit_backlog(now=closing)
        self._fail(self._backlog, f"{self.path} is closed: {self._fault}")
        self._disconnect()
        self._lock.release()
        self._on_loop(_settle, self._ended, None)

    def _dequeue(self) -> list[_Write | _Call | None]:
        """Return what is queued, at most `BATCH`; wait for the first item, or for the next attempt."""
        wait_s = max(0.0, self._retry_at - monotonic()) if self._fault else None
        items: list[_Write | _Call | None] = []
        with suppress(queue.Empty):
            items.append(self._queue.get(timeout=wait_s))
            while len(items) < BATCH:
                items.append(self._queue.get_nowait())
        return items

    def _commit_backlog(self, *, now: bool = False) -> None:
        """Commit the backlog. While the disk fails, try that, or a probe, if it is time or `now`."""
        size = BATCH
        while (now or monotonic() >= self._retry_at) if self._fault else self._backlog:
            batch = list(islice(self._backlog, size))
            error = self._commit(batch)
            if error is None:
                self._set_fault("")
                self._remove(batch, ())
                size = min(BATCH, size * 2)
            elif not (is_faulty(error) and batch):
                if reason := self._recover(error):
                    self._set_fault(reason)
                    return
            elif len(batch) > 1:
                size = len(batch) // 2
            else:
                self._remove(batch, [Failure(batch[0].ticket, str(error))])
                size = 2

    def _commit(self, batch: Sequence[_Write]) -> Exception | None:
        """Commit the writes together, or a probe if there are none; return why that failed."""
        try:
            connection = self._get_connection()
            with transaction(connection):
                write(connection, [one for item in batch for one in item.statements] if batch else _PROBE)
        except Exception as error:  # noqa: BLE001 - any value may raise anything
            return error
        self.commits += 1
        return None

    def _remove(self, batch: Sequence[_Write], failures: Sequence[Failure]) -> None:
        """Remove the first writes of the backlog, which have an outcome now."""
        for _ in batch:
            self._backlog.popleft()
        if batch:
            self._send_report(batch[-1].ticket, failures, batch)

    def _set_fault(self, reason: str) -> None:
        if reason or self._fault:
            self._on_loop(self._set_refusing, reason)
        if reason:
            self._retry_at = monotonic() + self._probe_s
            refused = [item for item in self._backlog if item.refusable]
            self._backlog = deque(item for item in self._backlog if not item.refusable)
            self._fail(refused, reason)
            if not self._fault:
                logger.warning("%s: %s", self.path, reason)
        self._fault = reason

    def _recover(self, error: Exception) -> str:
        """Prepare the next attempt; return why it has to wait, "" after a damaged file was replaced."""
        connection = self._connection
        if connection is not None:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            if is_damage(error) or connection.in_transaction:
                self._disconnect()
        if not is_damage(error):
            return str(error) or repr(error)
        if self._salvaged:
            return f"{error}; it was replaced before, so the disk cannot be trusted: stop, and look at it"
        try:
            self._on_loop(self._on_notice, salvage(self.path, self._schema, str(error)))
        except Exception as reason:  # noqa: BLE001 - a damaged file has anything
            return f"it is damaged ({error}) and cannot be replaced: {reason}"
        self._salvaged = True
        return ""

    def _answer(self, call: _Call) -> None:
        while True:
            try:
                connection = self._get_connection()
                answer = call.function(connection)
                if connection.in_transaction:
                    raise ValueError("a transaction was left open")
            except StoreError as error:
                return self._on_loop(_settle, call.answer, None, error)
            except Exception as error:  # noqa: BLE001 - raised by `call`
                if reason := self._recover(error):
                    failure = StoreError(f"{self.path} cannot be used: {reason}")
                    return self._on_loop(_settle, call.answer, None, failure)
            else:
                return self._on_loop(_settle, call.answer, answer)

    def _get_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            if aside := finish_salvage(self.path):
                notice = f"{self.path} was damaged, and was replaced; the damaged file is {aside}"
                self._on_loop(self._on_notice, notice)
            self._connection = open_database(self.path, self._schema, self._durability, self._connect)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _fail(self, writes: Iterable[_Write], reason: str) -> None:
        if writes := [*writes]:
            self._send_report(None, [Failure(item.ticket, reason) for item in writes], writes)

    def _send_report(self, last: int | None, failures: Sequence[Failure], writes: Sequence[_Write]) -> None:
        self._on_loop(self._report, last, failures, len(writes), sum(item.octets for item in writes))

    def _on_loop(self, function: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(function, *arguments)


def _settle(answer: asyncio.Future[Any], result: object, error: Exception | None = None) -> None:
    if answer.done():
        return  # cancelled
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
