"""Status of a running broker: the document that `specwire norfab show broker` prints.

Names in it may come from the wire and are not escaped. Durations are in seconds, sizes in octets,
timestamps in ISO 8601 (UTC).
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import msgspec

from specwire import __version__
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.kernel.service import descriptor_limit
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.durations import Durations
from specwire.runtime.norfab.serve.counters import Counters

ROLE = "norfab-broker"
"""How the status socket of a broker is named."""


class WorkerStatus(msgspec.Struct, frozen=True):
    """A worker: what it was given, what waits for it, and how long it has been registered."""

    name: str
    service: str
    jobs: int
    queued: int
    resources: int
    registered_s: float
    silent_s: float


class ServiceStatus(msgspec.Struct, frozen=True):
    """A service: its workers, and jobs that wait because it has none."""

    name: str
    workers: int
    waiting: int


class Refusal(msgspec.Struct, frozen=True):
    """Something that was not accepted; `at` is the time."""

    at: str
    reason: str


class JobsStatus(msgspec.Struct, frozen=True):
    """Jobs that have not ended with the octets of their bodies, and ended ones with those of their results."""

    open: int
    open_octets: int
    kept: int
    kept_octets: int
    waiting_for_disk: int


class BrokerStatus(msgspec.Struct, frozen=True, tag="broker", tag_field="role"):
    """A broker. `descriptors` is how many files and connections its process may have open.

    `durations` are those of parts of jobs that ended, from acceptance on, by service. `store` is why the store refuses new
    jobs at present; empty where it accepts them.
    """

    endpoints: tuple[str, ...]
    back: tuple[str, ...]
    folder: str
    durability: str
    pid: int
    version: str
    started: str
    up_s: float
    descriptors: int
    workers: tuple[WorkerStatus, ...]
    services: tuple[ServiceStatus, ...]
    clients: int
    jobs: JobsStatus
    counters: Counters
    refusals: tuple[Refusal, ...]
    captures: tuple[TapCounts, ...] = ()
    durations: dict[str, Durations] = {}
    store: str = ""


class Age:
    """The age of a broker that is made now."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self._began_s = time.monotonic()

    @property
    def seconds(self) -> float:
        """How old it is."""
        return round(time.monotonic() - self._began_s, 3)


def describe(
    engine: BrokerEngine,
    *,
    endpoints: tuple[str, ...],
    back: tuple[str, ...],
    folder: str,
    durability: str,
    age: Age,
    counters: Counters,
    refusals: tuple[Refusal, ...],
    captures: tuple[TapCounts, ...] = (),
    durations: dict[str, Durations],
) -> BrokerStatus:
    """Return the status of the broker with this engine."""
    now = engine.now
    return BrokerStatus(
        endpoints=endpoints,
        back=back,
        folder=folder,
        durability=durability,
        pid=os.getpid(),
        version=__version__,
        started=age.started,
        up_s=age.seconds,
        descriptors=descriptor_limit(),
        workers=tuple(
            WorkerStatus(
                worker.name,
                worker.service,
                len(worker.tasks),
                worker.queue.size,
                len(worker.resources),
                round(now - worker.ready_at, 1),
                round(now - worker.seen_at, 1),
            )
            for worker in engine.registry.workers.values()
        ),
        services=tuple(
            ServiceStatus(service.name, len(service.workers), service.waiting)
            for service in engine.registry.services.values()
        ),
        clients=len(engine.clients),
        jobs=JobsStatus(
            engine.jobs.open,
            engine.jobs.octets,
            len(engine.jobs.kept),
            engine.jobs.kept_octets,
            len(engine.commits),
        ),
        counters=counters,
        refusals=refusals,
        captures=captures,
        durations=durations,
        store=engine.refusing,
    )
