"""A NORFAB broker or worker, as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.runtime.observe.metrics.norfab import measure_broker, measure_worker
from specwire.runtime.observe.rates import Counted
from specwire.runtime.observe.subject import Subject
from specwire.runtime.observe.views.norfab import view_broker, view_worker

if TYPE_CHECKING:
    from specwire.runtime.norfab.serve import NorfabBroker
    from specwire.runtime.norfab.worker.serve import NorfabWorker


def broker_subject(broker: NorfabBroker) -> Subject:
    """Return a broker as it is shown while it runs."""

    def totals() -> tuple[float, ...]:
        counters = broker.counters
        return counters.jobs_accepted, counters.parts_ended, counters.messages_in, counters.messages_out

    return Subject(
        counted=(
            Counted("jobs accepted"),
            Counted("parts ended"),
            Counted("messages in"),
            Counted("messages out"),
        ),
        totals=totals,
        measure=lambda: measure_broker(broker.status()),
        view=lambda: view_broker(broker.status()),
        health=lambda: view_broker(broker.status()).health,
    )


def worker_subject(worker: NorfabWorker) -> Subject:
    """Return a worker as it is shown while it runs."""

    def totals() -> tuple[float, ...]:
        jobs = worker.engine.jobs
        return jobs.completed, jobs.failed

    return Subject(
        counted=(Counted("jobs completed"), Counted("jobs failed")),
        totals=totals,
        measure=lambda: measure_worker(worker.status()),
        view=lambda: view_worker(worker.status()),
        health=lambda: view_worker(worker.status()).health,
    )
