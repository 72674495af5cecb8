"""Log lines for the events of a broker, with text of peers escaped and their rate limited."""

from __future__ import annotations

from collections.abc import Callable

from specwire.runtime.log.quota import Quota
from specwire.runtime.log.stamp import Level
from specwire.runtime.log.text import show
from specwire.runtime.norfab.events import (
    Dropped,
    JobAccepted,
    JobEnded,
    JobRedispatched,
    Refused,
    StoreAccepts,
    StoreFailed,
    StoreRefuses,
    WorkerGone,
    WorkerReady,
)
from specwire.runtime.norfab.management import SERVICE as MANAGEMENT
from specwire.runtime.norfab.serve.events import (
    Began,
    BrokerEvent,
    CutOff,
    Ended,
    Managed,
    Noticed,
    TurnedAway,
)

LONGEST = 400


class Narrator:
    """Writer of events as log lines.

    Args:
        write: takes one line.
        clock: monotonic clock, in seconds.
        jobs: write a line for each job, too. May be changed.
    """

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float], *, jobs: bool = False
    ) -> None:
        self._write, self.jobs = write, jobs
        self._refusals = Quota(write, clock, "more were refused or dropped")
        self._workers = Quota(write, clock, "more lines about workers were left out")
        self._failures = Quota(write, clock, "more lines about jobs were left out")

    def tell(self, event: BrokerEvent) -> None:
        """Write the line for an event."""
        match event:
            case Began(endpoints=endpoints, jobs=jobs):
                self._write(f"listening on {', '.join(endpoints)}; {jobs:,} jobs from before")
            case Ended(restart=restart, reason=reason):
                self._write(_cut(f"{'restarting' if restart else 'ended'}: {reason}"))
            case Noticed(sentence=sentence):
                self._write(_cut(sentence))
            case TurnedAway(reason=reason):
                self._refusals.write(_cut(f"somebody was not let in: {reason}"))
            case CutOff(reason=reason):
                self._refusals.write(_cut(reason))
            case Refused(peer=peer, reason=reason):
                self._refusals.write(_cut(f"refused {_name(peer)}: {reason}"))
            case Dropped(peer=peer, kind=kind, reason=reason):
                self._refusals.write(_cut(f"dropped a message of {_name(peer)} ({kind}): {reason}"))
            case Managed(peer=peer, task=task, target=target, allowed=allowed):
                verb = "asks for" if allowed else "may not ask for"
                of = f" of {target}" if target and event.service != MANAGEMENT else ""
                self._refusals.write(_cut(f"{_name(peer)} {verb} {task}{of}"))
            case WorkerReady(worker=worker, service=service, again=again):
                self._workers.write(
                    _cut(f"worker {worker} is ready for {service}{' again' if again else ''}")
                )
            case WorkerGone(worker=worker, service=service, reason=reason):
                self._workers.write(_cut(f"worker {worker} of {service} is gone: {reason}"))
            case StoreFailed(reason=reason):
                self._failures.write(_cut(f"a record could not be stored: {reason}"))
            case StoreRefuses(reason=reason):
                self._failures.write(_cut(f"new jobs are refused, as the disk fails: {reason}"))
            case StoreAccepts():
                self._failures.write("the disk works again, and jobs are accepted")
            case _:
                self._tell_job(event)

    def _tell_job(self, event: BrokerEvent) -> None:
        match event:
            case JobRedispatched(uuid=uuid, before=before, worker=worker, attempt=attempt):
                self._failures.write(_cut(f"job {uuid} goes from {before} to {worker}, attempt {attempt}"))
            case JobEnded(uuid=uuid, worker=worker, failure=failure) if failure:
                self._failures.write(_cut(f"job {uuid} failed at {worker or 'no worker'}: {failure}"))
            case JobEnded(uuid=uuid, worker=worker, status=status) if self.jobs:
                self._write(_cut(f"job {uuid} ended at {worker} with {status}"))
            case JobAccepted(uuid=uuid, client=client, service=service, task=task) if self.jobs:
                self._write(_cut(f"job {uuid} of {_name(client)}: {service}:{task}"))


def level_of(event: BrokerEvent) -> Level:
    """Return how grave an event is, for a log that programs read."""
    match event:
        case StoreFailed() | StoreRefuses():
            return "error"
        case Refused() | TurnedAway() | CutOff() | Dropped() | Managed(allowed=False):
            return "warning"
        case JobRedispatched() | WorkerGone():
            return "warning"
        case JobEnded(failure=failure) if failure:
            return "warning"
        case _:
            return "info"


def _name(peer: bytes) -> str:
    return peer.decode(errors="backslashreplace")


def _cut(text: str) -> str:
    shown = show(text[:LONGEST])
    return shown if len(text) <= LONGEST else shown + "…"
