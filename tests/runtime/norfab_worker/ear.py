"""Who hears of tasks, and jobs as they are lined up."""

from __future__ import annotations

import asyncio
from typing import Any

from specwire.runtime.norfab.worker.ahead import Lined
from specwire.runtime.norfab.worker.bodies import Outcome, Progress
from tests.runtime.norfab_worker.laboratory import job


def lined(number: int, task: str = "add", **fields: Any) -> Lined:
    return Lined(number, f"j{number}", task, job(task, **fields), "c1")


class Ear:
    """Hears in order what happens."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.changed = asyncio.Event()

    def on_began(self, uuid: str, at: float) -> None:
        """Take a beginning."""
        self._hear("began", uuid)

    def on_ended(self, uuid: str, outcome: Outcome, began: float | None = None) -> None:
        """Take an end, and the beginning where it was not told before."""
        if began is not None:
            self._hear("began", uuid)
        self._hear("failed" if outcome.failed else "ended", uuid)

    def on_progress(self, uuid: str, progress: Progress) -> None:
        """Take progress."""

    def on_stream(self, uuid: str, data: bytes) -> None:
        """Take a piece."""

    def _hear(self, what: str, uuid: str) -> None:
        self.heard.append((what, uuid))
        self.changed.set()

    async def until(self, count: int) -> None:
        """Wait until so much has happened."""
        while len(self.heard) < count:
            self.changed.clear()
            await self.changed.wait()
