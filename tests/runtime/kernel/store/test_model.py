"""Any history of writes, faults, kills and starts, against a dict of what was acknowledged.

A kill is the copy of a store's folder while its thread waits between two statements, or has nothing
to do; the history continues with the copy, and the abandoned store ends in the folder that nobody
looks at any more. For SQLite that is what kill -9 is: a process leaves exactly the octets that it has
handed to the operating system, and all that it held in memory, its file locks, and the index of the
WAL (``-shm``, which the first process to open the file builds again) are gone. Reports that the event
loop has not delivered yet are lost with it: such writes are durable, and nobody knows. What happens
to a kill inside a statement is SQLite's own claim, and `test_store` kills real processes.

``SPECWIRE_SOAK_HISTORIES`` is the number of histories. With it, each run draws others.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from specwire.runtime.kernel.store import Execute, Failure, Insert, Schema, Statement, Store, StoreError
from tests.runtime.kernel.store.stores import CANTOPEN, FULL, IOERR, Disk, as_killed

T = TypeVar("T")

HISTORIES = int(os.environ.get("SPECWIRE_SOAK_HISTORIES", "150"))
TIMEOUT_S = 100
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A file system in memory: nobody pulls the plug, and a disk takes most of the time."""

SCHEMA = Schema(
    1,
    (
        "CREATE TABLE entry (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
        "CREATE TABLE log (number INTEGER PRIMARY KEY, ticket INTEGER NOT NULL)",
    ),
)
ROWS, LOG = "SELECT name, value FROM entry ORDER BY name", "SELECT ticket FROM log ORDER BY number"
REASONS = {str(error) for error in (FULL, IOERR, CANTOPEN)}


class State(NamedTuple):
    """Rows of a store: the entries by name, and the tickets of its writes in order."""

    entries: tuple[tuple[str, int], ...] = ()
    log: tuple[int, ...] = ()


class Write(NamedTuple):
    """A write: operations (``insert``, ``replace``, ``delete`` or ``faulty``) on names."""

    ticket: int
    operations: tuple[tuple[str, str], ...]
    refusable: bool

    def statements(self) -> list[Statement]:
        """Return the statements, of which the first notes the ticket."""
        statements: list[Statement] = [Insert("INSERT INTO log (ticket) VALUES", (self.ticket,))]
        for operation, name in self.operations:
            match operation:
                case "delete":
                    statements.append(Execute("DELETE FROM entry WHERE name = ?", (name,)))
                case "faulty":
                    statements.append(Insert("INSERT INTO entry (name, value) VALUES", (f"{name}\ud800", 1)))
                case _:
                    into = f"{operation.upper()} INTO entry (name, value) VALUES"
                    statements.append(Insert(into, (name, self.ticket)))
        return statements

    def apply(self, state: State) -> State | None:
        """Return the state after this write; None where it fails."""
        entries = dict(state.entries)
        for operation, name in self.operations:
            if operation == "faulty" or (operation == "insert" and name in entries):
                return None
            if operation == "delete":
                entries.pop(name, None)
            else:
                entries[name] = self.ticket
        return State(tuple(sorted(entries.items())), (*state.log, self.ticket))


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "replace", "delete", "delete", "faulty"]),
        st.sampled_from("abcdef"),
    ),
    max_size=4,
).map(tuple)
WRITES = st.lists(st.tuples(OPERATIONS, st.booleans()), min_size=1, max_size=8)
AT = st.sampled_from(["BEGIN", "INSERT", "REPLACE", "DELETE", "COMMIT", "ROLLBACK", "connect", ""])
ERRORS = st.sampled_from([FULL, IOERR, CANTOPEN])


class Histories(RuleBasedStateMachine):
    """One store after the other, each on the files that the one before has left."""

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.TemporaryDirectory(prefix="store-", dir=MEMORY)
        self.loop = asyncio.new_event_loop()
        self.broken: list[str] = []
        self.loop.set_exception_handler(lambda loop, context: self.broken.append(repr(context)))
        self.state, self.states = State(), [State()]
        self.unanswered: dict[int, Write] = {}
        self.ticket = self.folders = 0
        self.failing = False  # the disk, at a moment since the last start
        self.folder = Path(self.root.name) / "0"
        self.disk = Disk()
        self.store: Store | None = None
        self.refusals = [""]
        self.start()

    # --- what a history consists of

    @rule(writes=WRITES)
    def put(self, writes: Sequence[tuple[tuple[tuple[str, str], ...], bool]]) -> None:
        """Queue some writes in one turn of the event loop."""

        async def story() -> None:
            assert self.store
            for operations, refusable in writes:
                self.ticket += 1
                write = Write(self.ticket, operations, refusable)
                self.unanswered[write.ticket] = write
                self.store.put(write.ticket, write.statements(), refusable=refusable)

        self.run(story())

    @rule(turns=st.integers(1, 5), seconds=st.sampled_from([0, 0, 0.001, 0.003]))
    def wait(self, turns: int, seconds: float) -> None:
        """Let the event loop run."""

        async def story() -> None:
            for _ in range(turns):
                await asyncio.sleep(seconds)

        self.run(story())

    @rule(error=ERRORS, at=AT, skipped=st.integers(0, 6), times=st.sampled_from([1, 2, 1000]))
    def fail(self, error: Exception, at: str, skipped: int, times: int) -> None:
        """Let the disk fail at some statement from now on."""
        left = [skipped, times]

        def before(sql: str) -> None:
            if not sql.startswith(at):
                return
            if left[0]:
                left[0] -= 1
            elif left[1]:
                left[1] -= 1
                raise error

        self.failing = True
        self.disk.before = before

    @rule()
    def recover(self) -> None:
        """End the failure; everything gets its outcome, in order."""
        assert self.store
        self.disk.recover()
        self.run(self.settle())
        assert not self.unanswered and not self.store.refusing
        assert self.run(self.read()) == self.state, "each read sees the writes before it"

    @rule()
    def read_now(self) -> None:
        """Read while anything may happen: a state that was acknowledged since the question."""
        first = len(self.states) - 1
        try:
            found = self.run(self.read())
        except StoreError as error:
            assert self.failing, error
        else:
            assert found in self.states[first:]
            if not self.failing:
                assert not self.unanswered and found == self.state

    @rule(second=st.booleans(), fault=st.none() | st.tuples(ERRORS, st.integers(0, 12)))
    def close(self, second: bool, fault: tuple[Exception, int] | None) -> None:
        """Close and start twice: everything has an outcome, and nothing else is in the file."""
        for _ in range(1 + second):
            self.run(self.end())
            assert not self.unanswered and self.stored() == self.state
            self.start(fault)
            assert self.run(self.read()) == self.state

    @rule(
        writes=WRITES,
        statement=st.integers(0, 12),
        deliver=st.booleans(),
        again=st.none() | st.integers(0, 15),
    )
    def kill(
        self,
        writes: Sequence[tuple[tuple[tuple[str, str], ...], bool]],
        statement: int,
        deliver: bool,
        again: int | None,
    ) -> None:
        """Kill before a statement that follows, and perhaps the next process while it starts."""
        self.stop_before(statement)
        self.put(writes)
        self.run(self.until_stopped(deliver=deliver))
        self.abandon()
        if again is not None:
            self.stop_before(again)
            self.store = self.make_store()
            opening = self.loop.create_task(self.store.open())
            self.run(self.until_stopped(opening=opening))
            self.abandon(opening)
        self.start()
        found = self.run(self.read())
        assert found in self.possible(), "what was acknowledged, and then a beginning of what was queued"
        self.unanswered.clear()
        self.note(found)
        self.run(self.end())
        self.start()
        assert self.run(self.read()) == found, "the same after another start"

    def teardown(self) -> None:
        """Close, and compare the file with the model."""
        self.disk.recover()
        self.run(self.end())
        assert not self.unanswered and self.stored() == self.state
        self.loop.close()
        self.root.cleanup()

    # --- stores

    def make_store(self) -> Store:
        """Return a store in the current folder that reports to this history."""
        store = Store(
            self.folder / "a.sqlite3",
            SCHEMA,
            on_committed=lambda last, failures: self.committed(store, last, failures),
            on_refusing=lambda reason: self.refused(store, reason),
            on_notice=self.broken.append,
            probe_s=0.002,
            connect=self.disk.connect,
        )
        return store

    def start(self, fault: tuple[Exception, int] | None = None) -> None:
        """Open the store; if there is a fault, the first attempt may fail."""
        self.disk, self.failing, self.refusals = Disk(), False, [""]
        if fault is not None:
            self.fail(fault[0], "", fault[1], 1)
        self.store = self.make_store()
        try:
            self.run(self.store.open())
        except StoreError as error:
            assert fault is not None and str(fault[0]) in str(error)
            self.start()
        else:
            self.disk.recover()
            self.failing = False

    async def end(self) -> None:
        """Close the store: whatever has no outcome now never gets one."""
        assert self.store
        await self.store.close()
        assert self.store.waiting == self.store.waiting_octets == len(self.unanswered) == 0

    def stop_before(self, statement: int) -> None:
        """Have the thread stop before so many statements have been executed; faults continue until then."""
        before, left = self.disk.before, [statement]
        self.disk.entered, self.disk.gate = threading.Event(), threading.Event()
        entered, gate = self.disk.entered, self.disk.gate

        def stop(sql: str) -> None:
            if left[0]:
                left[0] -= 1
                before(sql)
            elif not entered.is_set():
                entered.set()
                assert gate.wait(TIMEOUT_S)

        self.disk.before = stop

    async def until_stopped(self, *, deliver: bool = True, opening: asyncio.Task[None] | None = None) -> None:
        """Wait until the thread has stopped, or has nothing to do."""
        assert self.store
        if not deliver:
            self.disk.entered.wait(0.01)  # while the event loop gets no turn
        while not self.disk.entered.is_set():
            if opening.done() if opening else not (self.store.waiting or self.store.refusing):
                return
            await asyncio.sleep(0.0005)

    def abandon(self, opening: asyncio.Task[None] | None = None) -> None:
        """Continue with a copy of the files, as kill -9 leaves them."""
        killed, disk, self.store = self.store, self.disk, None
        assert killed
        self.folders += 1
        self.folder = as_killed(self.folder, Path(self.root.name) / str(self.folders))
        self.disk = Disk()

        async def end() -> None:
            disk.recover()
            disk.gate.set()
            if opening:
                await opening
            await killed.close()
            await asyncio.to_thread(shutil.rmtree, killed.path.parent)

        self.run(end())

    # --- the model

    def committed(self, store: Store, last: int, failures: Sequence[Failure]) -> None:
        """Handle a report, unless the store was killed."""
        if store is not self.store:
            return
        failed = dict(failures)
        assert len(failed) == len(failures) and failed.keys() <= self.unanswered.keys(), "one outcome each"
        for ticket in [ticket for ticket in self.unanswered if ticket <= last or ticket in failed]:
            write = self.unanswered.pop(ticket)
            after = write.apply(self.state)
            reason = failed.get(ticket, "")
            if not reason:
                assert after is not None, "a faulty write is not durable"
                self.note(after)
            elif any(reason.endswith(text) for text in REASONS):
                closed = f"{self.folder / 'a.sqlite3'} is closed: "
                assert self.failing and (write.refusable or reason.startswith(closed)), reason
            else:
                assert after is None and ticket == last, f"{reason}: it fails in its turn"

    def note(self, state: State) -> None:
        """Note the acknowledged state."""
        self.state = state
        self.states.append(state)

    def refused(self, store: Store, reason: str) -> None:
        """Handle the begin and the end of a refusal, unless the store was killed."""
        if store is not self.store:
            return
        assert bool(reason) != bool(self.refusals[-1]), "only changes are reported"
        assert self.failing
        self.refusals.append(reason)

    def possible(self) -> set[State]:
        """Return the states that a kill may leave."""
        states = now = {self.state}
        for write in self.unanswered.values():
            after = {write.apply(state) or state for state in now}
            now = now | after if write.refusable and self.failing else after
            states = states | now
        return states

    # --- help

    async def settle(self) -> None:
        """Wait until everything has an outcome."""
        assert self.store
        while self.store.waiting or self.store.refusing:
            await asyncio.sleep(0.0005)

    async def read(self) -> State:
        """Read the rows in one call."""
        assert self.store
        entries, log = await self.store.call(
            lambda connection: (connection.execute(ROWS).fetchall(), connection.execute(LOG).fetchall())
        )
        return State(tuple(entries), tuple(ticket for (ticket,) in log))

    def stored(self) -> State:
        """Return the rows of the file, which no store has open."""
        with closing(sqlite3.connect(self.folder / "a.sqlite3")) as connection:
            entries, log = connection.execute(ROWS).fetchall(), connection.execute(LOG).fetchall()
        return State(tuple(entries), tuple(ticket for (ticket,) in log))

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and raise what a report has raised."""

        async def bounded() -> T:
            async with asyncio.timeout(TIMEOUT_S):
                return await story

        result = self.loop.run_until_complete(bounded())
        assert not self.broken, self.broken[0]
        return result


def test_any_history_keeps_what_was_acknowledged() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=12,
            deadline=None,
            phases=[Phase.generate],  # threads: the same history again may go another way
            derandomize="SPECWIRE_SOAK_HISTORIES" not in os.environ,
            suppress_health_check=list(HealthCheck),
        ),
    )
