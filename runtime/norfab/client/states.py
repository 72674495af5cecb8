"""The states of a job at its client, by the names of deployed clients."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """How a job stands."""

    NEW = "NEW"
    """It is not on disk yet."""
    SUBMITTING = "SUBMITTING"
    """It is on disk, and the broker has not said which workers get it."""
    DISPATCHED = "DISPATCHED"
    """The broker has said which workers get it."""
    STARTED = "STARTED"
    """A worker has it."""
    COMPLETED = "COMPLETED"
    """Every worker has answered, and none has failed."""
    FAILED = "FAILED"
    """It has ended, and not every worker has done it."""
    STALE = "STALE"
    """Its time is over, and nobody waits for it; its result is still taken, and may be asked for."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing to wait for."""
        return self in ENDED


NEW, SUBMITTING, DISPATCHED, STARTED, COMPLETED, FAILED, STALE = State
"""The same by short names: Python 3.11 takes ten times as long to look a member up in its class."""

ENDED = (COMPLETED, FAILED, STALE)
