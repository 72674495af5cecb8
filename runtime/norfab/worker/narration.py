"""Lines of a worker's log. Text from other peers is shown so that it cannot forge a line."""

from __future__ import annotations

from collections.abc import Callable

from specwire.runtime.log.stamp import Level
from specwire.runtime.log.text import show
from specwire.runtime.norfab.pendingcommits import StoreRecovered
from specwire.runtime.norfab.worker.events import (
    Connected,
    Disconnected,
    Dropped,
    Happening,
    JobEnded,
    JobRefused,
    JobsGivenBack,
    JobStarted,
    JobTaken,
    StoreFailed,
)

LONGEST = 300


def level_of(happening: Happening) -> Level:
    """Return the level of an event, for a log that programs read."""
    match happening:
        case StoreFailed():
            return "error"
        case Disconnected() | JobRefused() | JobsGivenBack() | Dropped():
            return "warning"
        case JobEnded(failure=failure) if failure:
            return "warning"
        case _:
            return "info"


class Narrator:
    """Writes events as lines.

    Args:
        write: called with each line.
        jobs: write a line for each job, not only for failures.
    """

    def __init__(self, write: Callable[[str], None], *, jobs: bool = True) -> None:
        self._write, self._jobs = write, jobs
        self._reason = ""

    def tell(self, happening: Happening) -> None:
        """Write a line, if the event deserves one."""
        line = self._words(happening)
        if line:
            self._write(show(line)[:LONGEST])

    def _words(self, happening: Happening) -> str:
        match happening:
            case Connected(broker=broker, service=service):
                self._reason = ""
                return f"registered for {service} at {broker}"
            case Disconnected():
                return self._lost(happening)
            case JobStarted(uuid=uuid, task=task) if self._jobs:
                return f"{uuid} {task} begins"
            case JobEnded(uuid=uuid, task=task, seconds=seconds, failure=failure) if failure:
                return f"{uuid} {task} failed after {seconds:.3f} s: {failure}"
            case JobEnded(uuid=uuid, task=task, seconds=seconds) if self._jobs:
                return f"{uuid} {task} done in {seconds:.3f} s"
            case JobRefused(uuid=uuid, reason=reason):
                return f"{uuid} refused: {reason}"
            case JobsGivenBack(uuids=uuids):
                return f"given back, not begun: {len(uuids)} jobs"
            case Dropped(kind=kind, reason=reason):
                return f"dropped, {kind}: {reason}"
            case StoreFailed(reason=reason):
                return f"the store: {reason}"
            case StoreRecovered():
                return "the store: the disk works again, and jobs are accepted"
            case JobTaken() | JobStarted() | JobEnded():
                return ""

    def _lost(self, happening: Disconnected) -> str:
        """Return a line for the first of several attempts that fail for the same reason."""
        line = f"{happening.reason}; next: {happening.broker}"
        if line == self._reason:
            return ""
        self._reason = line
        return f"not connected: {line}"
