"""What tests of writers share."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has a minute."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())


def as_killed(folder: Path, to: Path) -> Path:
    """Return a copy of a folder as it is now, of which no process knows: so it would be found after kill -9."""
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*-lock", "*-shm"))
    return to


@contextmanager
def locked_by_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have another program hold the file for the length of a block, for which nobody waits long."""
    for module in ("database", "keeper"):
        monkeypatch.setattr(f"specwire.runtime.norfab.store.{module}.BUSY_S", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        yield
        shell.execute("ROLLBACK")
