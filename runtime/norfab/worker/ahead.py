"""Jobs that begin when the one before has ended, where that ended: without a word from the worker's loop and back.

The way there and back takes longer than a small task, and with one place for all tasks nothing else could be done meanwhile.
So the engine has the next few jobs lined up here. Who leaves a place takes the next one, and notes that it begins before
it begins; the engine hears of it together with the end of the one before. What has not begun can be taken back.

All of it may be used from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple


class Lined(NamedTuple):
    """A job as `Start` has it, with its number."""

    number: int
    uuid: str
    task: str
    body: bytes
    client: str


class Ahead:
    """The places of a runner, and who is next.

    Args:
        places: how many jobs run at a time.
        mark: notes that jobs up to a number have begun; see `Mark`.
    """

    def __init__(self, places: int, mark: Callable[[int], None]) -> None:
        self._places, self._mark = places, mark
        self._lock = threading.Lock()
        self._holders: set[str] = set()
        self._waiting: dict[str, Lined] = {}

    def occupy(self, uuid: str) -> None:
        """A job has a place, by order of the engine."""
        with self._lock:
            self._holders.add(uuid)

    def line_up(self, job: Lined) -> Lined | None:
        """Have a job wait for a place; return the one that is to begin now, if there is a place."""
        with self._lock:
            self._waiting[job.uuid] = job
            return self._next()

    def leave(self, uuid: str) -> Lined | None:
        """A job has left its place, or lost it; return the one that is to begin now."""
        with self._lock:
            if uuid not in self._holders:
                return None
            self._holders.discard(uuid)
            return self._next()

    def withdraw(self, uuid: str) -> bool:
        """Take a job back; return whether it has not begun, and will not."""
        with self._lock:
            return self._waiting.pop(uuid, None) is not None

    def clear(self) -> None:
        """Nobody begins any more."""
        with self._lock:
            self._waiting.clear()

    def _next(self) -> Lined | None:
        if not self._waiting or len(self._holders) >= self._places:
            return None
        job = self._waiting.pop(next(iter(self._waiting)))
        self._mark(job.number)
        self._holders.add(job.uuid)
        return job
