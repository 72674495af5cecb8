"""Store on disk against the store in memory, through any history of writes, disk failures and restarts.

Each rule writes to a `DiskStore` and keeps the commit. Whenever all outcomes are known, the store must have
exactly the commits that have not failed, as a `MemoryStore` has them after the same writes. The disk may
fail at any statement, be gone when the store is closed, and the store is started twice in a row.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from specwire.runtime.kernel.store import Failure
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.memory import MemoryStore
from specwire.runtime.norfab.client.records import (
    EventRecord,
    ForgottenRecord,
    JobRecord,
    Record,
    ResultRecord,
    StateRecord,
)
from specwire.runtime.norfab.client.store import ClientStore, DiskStore
from tests.runtime.kernel.store.stores import FULL, IOERR, Disk

T = TypeVar("T")

UUIDS = [f"u{number}" for number in range(6)]
SETTINGS = ClientSettings(kept_jobs=2, kept_octets=21, kept_s=20.0)
uuids, workers = st.sampled_from(UUIDS), st.sampled_from(["w0", "w1"])


class Histories(RuleBasedStateMachine):
    """Writes of a client, and faults of its disk."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.commits: dict[int, tuple[Record, ...] | float] = {}  # a number: prune at that time
        self.last = self.ticket = 0
        self.failed: set[int] = set()
        self.refusable: set[int] = set()
        self.lost: set[int] = set()
        self.closing = False
        self.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, 100))

    def start(self) -> None:
        self.disk = Disk()
        self.store = DiskStore(
            self.folder,
            "process",
            SETTINGS,
            on_committed=self.on_committed,
            connect=self.disk.connect,
            probe_s=0.002,
        )
        self.run(self.store.open())

    def on_committed(self, last: int, failures: Sequence[Failure]) -> None:
        self.last = max(self.last, last)
        failed = {failure.ticket for failure in failures}
        self.failed |= failed
        if not self.closing:
            self.lost |= failed - self.refusable

    def put(self, *records: Record, refusable: bool = False) -> None:
        async def put() -> None:
            self.store.write(self.ticket, records, refusable=refusable)

        self.ticket += 1
        self.commits[self.ticket] = records
        if refusable:
            self.refusable.add(self.ticket)
        self.run(put())

    def check(self) -> None:
        """Compare the store with a new one in memory."""
        assert not self.lost, "what is not refusable waits for the disk"
        model = MemoryStore(SETTINGS, lambda last, failures: None)
        for ticket, commit in self.commits.items():
            if ticket in self.failed:
                continue
            if isinstance(commit, float):
                model.prune(ticket, commit)
            else:
                model.write(ticket, commit)
        assert self.run(contents(self.store)) == self.run(contents(model))

    # --- writes

    @rule(uuid=uuids)
    def submit(self, uuid: str) -> None:
        at = float(self.ticket)
        self.put(JobRecord(uuid, "svc", "add", "all", b"{}", at, at + 60), refusable=True)

    @rule(uuid=uuids, worker=workers)
    def answer(self, uuid: str, worker: str) -> None:
        result = ResultRecord(uuid, worker, 200, b"%d" % self.ticket, 1.0)
        self.put(result, StateRecord(uuid, "STARTED", (worker,), 60.0))

    @rule(uuid=uuids, worker=workers, octets=st.sampled_from([1, 10, 20]))
    def end(self, uuid: str, worker: str, octets: int) -> None:
        at = self.ticket + 1.0
        job = JobRecord(uuid, "svc", "add", "all", b"", at, 60.0)
        result = ResultRecord(uuid, worker, 200, b"%d" % self.ticket, at)
        self.put(job, result, StateRecord(uuid, "COMPLETED", (worker,), 60.0, 200, "", at, octets))

    @rule(uuid=uuids)
    def progress(self, uuid: str) -> None:
        self.put(EventRecord(uuid, 1.0, b"%d" % self.ticket))

    @rule(uuid=uuids)
    def forget(self, uuid: str) -> None:
        self.put(ForgottenRecord(uuid))

    @rule()
    def prune(self) -> None:
        async def prune() -> None:
            self.store.prune(self.ticket, now)

        self.ticket += 1
        now = self.commits[self.ticket] = float(self.ticket)
        self.run(prune())

    # --- the disk

    @rule(at=st.sampled_from(["BEGIN", "INSERT", "DELETE", "COMMIT"]), times=st.sampled_from([1, 2, 1000]))
    def disk_fails(self, at: str, times: int) -> None:
        self.disk.fail(FULL, at, times)

    @rule()
    def disk_recovers(self) -> None:
        self.disk.recover()

    @rule()
    def settle(self) -> None:
        """Wait for all outcomes."""

        async def wait() -> None:
            while any(ticket > self.last and ticket not in self.failed for ticket in self.commits):
                await asyncio.sleep(0.001)

        self.disk.recover()
        self.run(wait())
        self.check()

    # --- the process

    @rule(disk_is_gone=st.booleans())
    def restart(self, disk_is_gone: bool) -> None:
        if disk_is_gone:
            self.disk.fail(IOERR)
        else:
            self.disk.recover()
        for _ in range(2):
            self.closing = True
            self.run(self.store.close())
            self.closing = False
            assert all(ticket <= self.last or ticket in self.failed for ticket in self.commits)
            self.start()
            self.check()

    def teardown(self) -> None:
        self.disk.recover()
        self.run(self.store.close())
        self.loop.close()
        shutil.rmtree(self.folder)


async def contents(store: ClientStore) -> list[Any]:
    """Return everything that a store has."""
    return [
        (
            await store.find(uuid),
            await store.events(uuid),
            sorted(await store.history(9), key=lambda one: one.uuid),
        )
        for uuid in UUIDS
    ]


TestHistories = Histories.TestCase
