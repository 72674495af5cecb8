"""Stores for tests: a table, a store that records what it reports, and a disk that fails on demand."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from specwire.runtime.kernel.store import Failure, Insert, Schema, Statement, Store

SCHEMA = Schema(
    1, ("CREATE TABLE entry (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value BLOB)",)
)
INTO = "INSERT INTO entry (name, value) VALUES"
NAMES = "SELECT name FROM entry ORDER BY number"
BUSY_S = 0.05


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine function, for 100 s at most; raise what callbacks have raised."""
    broken: list[dict[str, Any]] = []

    async def bounded() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
        async with asyncio.timeout(100):
            await story()

    asyncio.run(bounded())
    assert not broken, broken


def start_python(code: str, *arguments: object, **environment: object) -> subprocess.Popen[bytes]:
    """Start a process that can import what tests import."""
    more = {name: str(value) for name, value in environment.items()}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def row(name: str, value: bytes | None = None) -> Insert:
    """Return the statement that inserts an entry."""
    return Insert(INTO, (name, value))


def names_in(path: Path) -> list[str]:
    """Return the names of the entries in a file that no store has open, in the order of writing."""
    with closing(sqlite3.connect(path.absolute())) as connection:
        return [name for (name,) in connection.execute(NAMES)]


def as_killed(folder: Path, to: Path) -> Path:
    """Copy the files of a store as kill -9 would leave them now; return the folder `to`.

    The operating system has every octet that SQLite has written, and forgets the process's locks. The
    index in shared memory (``-shm``) is omitted: the first process to open the file builds it again.
    """
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*-lock", "*-shm"))
    return to


def fault(code: int, message: str) -> sqlite3.OperationalError:
    """Return an error as SQLite raises it."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


FULL = fault(sqlite3.SQLITE_FULL, "database or disk is full")
IOERR = fault(sqlite3.SQLITE_IOERR_WRITE, "disk I/O error")
BUSY = fault(sqlite3.SQLITE_BUSY, "database is locked")
CANTOPEN = fault(sqlite3.SQLITE_CANTOPEN, "unable to open database file")
NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Disk:
    """Disk that a test stops or lets fail. `connect` is for a `Store`.

    Attributes:
        statements: what was executed, without parameters; `connections`: how many there were.
        before: called in the store's thread before each statement, and with "connect"; it may raise.
    """

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.connections = 0
        self.before: Callable[[str], None] = lambda sql: None
        self.entered, self.gate = threading.Event(), threading.Event()

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open a connection; see `before`."""
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
                disk.statements.append(sql)
                disk.before(sql)
                return super().execute(sql, parameters)

        self.before("connect")
        self.connections += 1
        return sqlite3.connect(path.absolute(), timeout=BUSY_S, isolation_level=None, factory=Connection)

    def fail(self, error: Exception, at: str = "", times: int = 1_000_000) -> None:
        """Raise `error` at so many statements that begin with `at`."""
        left = [times]

        def before(sql: str) -> None:
            if sql.startswith(at) and left[0]:
                left[0] -= 1
                raise error

        self.before = before

    def recover(self) -> None:
        """Do not fail any more."""
        self.before = lambda sql: None

    def stop_at(self, at: str) -> None:
        """Have the next statement that begins with `at` set `entered` and wait for `gate`."""
        self.entered.clear()
        self.gate.clear()

        def before(sql: str) -> None:
            if sql.startswith(at) and not self.entered.is_set():
                self.entered.set()
                assert self.gate.wait(30)

        self.before = before

    async def stopped(self) -> None:
        """Wait until a statement waits for `gate`."""
        assert await asyncio.to_thread(self.entered.wait, 30)


class RecordedStore(Store):
    """Store that records its reports.

    Attributes:
        last, failures: of all reports so far.
        events: reports as ``("committed", last, failed tickets)`` and ``("refusing", reason)``.
        notices: sentences.
    """

    def __init__(self, path: Path, schema: Schema = SCHEMA, *arguments: Any, **options: Any) -> None:
        self.last, self.failures = 0, dict[int, str]()
        self.events: list[tuple[Any, ...]] = []
        self.notices: list[str] = []
        self._reported = asyncio.Event()
        super().__init__(
            path,
            schema,
            *arguments,
            on_committed=self._committed,
            on_refusing=lambda reason: self._record("refusing", reason),
            on_notice=self.notices.append,
            **{"probe_s": 0.02, **options},
        )

    async def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for a report after which the condition is true."""
        while not condition():
            self._reported.clear()
            await self._reported.wait()

    async def write(self, ticket: int, *statements: Statement, refusable: bool = False) -> str:
        """Put, and wait for the outcome; return why it has failed."""
        self.put(ticket, statements, refusable=refusable)
        await self.wait_until(lambda: self.last >= ticket or ticket in self.failures)
        return self.failures.get(ticket, "")

    async def names(self) -> list[str]:
        """Read the names of the entries."""
        return [name for (name,) in await self.read(NAMES)]

    def _committed(self, last: int, failures: Sequence[Failure]) -> None:
        assert last >= self.last, "it grows"
        for ticket, reason in failures:
            assert ticket > self.last, "a write that was reported durable has not failed"
            assert reason and ticket not in self.failures, "it fails once, with a reason"
        self.last = last
        self.failures.update(failures)
        self._record("committed", last, [ticket for ticket, _ in failures])

    def _record(self, *event: Any) -> None:
        self.events.append(event)
        self._reported.set()


@asynccontextmanager
async def opened(path: Path, *arguments: Any, **options: Any) -> AsyncIterator[RecordedStore]:
    """Open a store, and close it after the block."""
    store = RecordedStore(path, *arguments, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
