"""A worker's happenings as lines for a person. What comes from others is shown so that it forges no line."""

from __future__ import annotations

from collections.abc import Callable

from specwire.runtime.log.stamp import Level
from specwire.runtime.log.text import show
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
    StoreRecovered,
)

LONGEST = 300


def level_of(happening: Happening) -> Level:
    """Return how grave something is, for a log that programs read."""
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
    """Tells happenings.

    Args:
        write: takes one line.
        jobs: tell of single jobs; those that fail are told in any case.
    """

    def __init__(self, write: Callable[[str], None], *, jobs: bool = True) -> None:
        self._write, self._jobs = write, jobs
        self._reason = ""

    def tell(self, happening: Happening) -> None:
        """Write what happened, if it is worth a line."""
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
        """Return a line for the first of many attempts that fail alike."""
        told = f"{happening.reason}; next: {happening.broker}"
        if told == self._reason:
            return ""
        self._reason = told
        return f"not connected: {told}"
