"""A disk that fails at random, between commits and in them: what was told durable is there, once, in order, and nothing is forgotten."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.store import secured
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.keeper import Keeper, Ticket
from specwire.runtime.norfab.store.writer import Writer
from tests.runtime.norfab_store.stories import run

SCHEMA = ["CREATE TABLE thing (place INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER)"]
INSERT = "INSERT INTO thing (number) VALUES (?)"
UPDATE = "UPDATE thing SET number = number WHERE number = ?"
NUMBERS = "SELECT number FROM thing ORDER BY place"
CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY)


class Faults:
    """Has attempts of a keeper fail or take long, and sees to it that no two threads use it together."""

    def __init__(self, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self.part = 0.0
        self.met = 0
        self._chance, self._used = chance, threading.Lock()
        self._attempt, self._ask = Keeper._attempt, Keeper.ask
        monkeypatch.setattr(Keeper, "_attempt", lambda keeper, tickets: self.attempt(keeper, tickets))
        monkeypatch.setattr(Keeper, "ask", lambda keeper, question: self.ask(keeper, question))

    def attempt(self, keeper: Keeper, tickets: Sequence[Ticket]) -> Exception | None:
        """Do what a keeper does, or fail as it may."""
        assert self._used.acquire(blocking=False), "two threads use the database"
        try:
            if self._chance.random() < self.part:
                self.met += 1
                error = sqlite3.OperationalError("a fault of the disk")
                error.sqlite_errorcode = self._chance.choice(CODES)
                keeper._mend(error)
                return error
            if self._chance.random() < 0.1:
                time.sleep(self._chance.random() * 0.003)  # a commit that waits for the disk
            return self._attempt(keeper, tickets)
        finally:
            self._used.release()

    def ask(self, keeper: Keeper, question: Any) -> Any:
        """Do what a keeper does."""
        assert self._used.acquire(blocking=False), "two threads use the database"
        try:
            return self._ask(keeper, question)
        finally:
            self._used.release()


class Author:
    """Puts tickets at random, and notes what it is told."""

    def __init__(self, chance: random.Random, path: Path) -> None:
        self._chance = chance
        self.last = 0
        self.failed: list[int] = []
        self.told: list[tuple[str, int]] = []
        self.missed: list[int] = []
        self.writer = Writer(path, SCHEMA, on_committed=self._committed, on_failed=self._not_kept)

    def _committed(self, ticket: int) -> None:
        self.told.append(("committed", ticket))

    def _not_kept(self, ticket: int, reason: str) -> None:
        assert reason
        self.failed.append(ticket)
        self.told.append(("failed", ticket))

    def put(self, count: int = 1, others: int = 0) -> list[Ticket]:
        """Return so many tickets, each with so many statements that are no INSERT."""
        numbers = range(self.last + 1, self.last + count + 1)
        self.last += count
        return [
            Ticket.of(number, [(INSERT, (number,)), *[(UPDATE, (number,))] * others]) for number in numbers
        ]

    async def question(self) -> None:
        """Ask for everything: what was put before and did not fail is there."""
        before = self.last
        with suppress(StoreError):
            found = {number for (number,) in await self.writer.read(NUMBERS)}
            self.missed += {*range(1, before + 1)} - {*self.failed} - found

    async def go(self) -> None:
        """Put, ask and wait, three hundred times."""
        chance, writer = self._chance, self.writer
        questions: list[asyncio.Task[None]] = []
        for _ in range(300):
            what = chance.random()
            if what < 0.6:
                writer.gathering.hold()
                writer.put(self.put(), patient=chance.random() < 0.1)
                if chance.random() < 0.8:
                    writer.gathering.finish()
                else:
                    writer.gathering.settle()
            elif what < 0.75:
                writer.put(self.put(chance.randint(1, 6)))
            elif what < 0.8:
                writer.put(self.put(others=chance.randint(0, 12)))
            elif what < 0.85:
                questions.append(asyncio.create_task(self.question()))
            else:
                await asyncio.sleep(chance.random() * 0.004 if what < 0.95 else 0)
        self._ended = asyncio.gather(*questions)

    async def close(self) -> None:
        """End the writer; all questions are answered."""
        await self.writer.close()
        await self._ended


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_disk_does_what_was_told_is_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(secured, "SECURED_S", 0.002)
    monkeypatch.setattr(secured, "AGAIN_S", 0.005)
    chance = random.Random(seed)
    faults = Faults(chance, monkeypatch)
    path = tmp_path / "s.db"

    async def story() -> None:
        author = Author(chance, path)
        await author.writer.open()
        faults.part = (0.0, 0.05, 0.3)[seed % 3]
        await author.go()
        if seed % 2:
            faults.part = 0.0  # the last that is in the log is brought in by this process, else by the next
        await author.close()
        faults.part = 0.0
        assert author.missed == []
        committed = [ticket for kind, ticket in author.told if kind == "committed"]
        assert committed == sorted(committed)
        assert max([*committed, *author.failed]) == author.last
        for place, (kind, ticket) in enumerate(author.told):
            before = [other for earlier, other in author.told[:place] if earlier == "committed"]
            assert kind == "committed" or ticket > max(before, default=0)
        again = Writer(path, SCHEMA)
        await again.open()
        found = [number for (number,) in await again.read(NUMBERS)]
        await again.close()
        assert found == [number for number in range(1, author.last + 1) if number not in author.failed]

    run(story)
    assert bool(faults.met) is (seed % 3 > 0)
