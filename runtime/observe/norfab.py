"""Page and metrics of a NORFAB broker, whose tree is services with their workers, and of a worker.

The names of services come from workers, so only `MAX_VALUES` of them are labels of metrics. Totals
have no such label.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from specwire.runtime.norfab.durations import LIMITS_S, Durations
from specwire.runtime.norfab.serve.status import BrokerStatus, ServiceStatus
from specwire.runtime.norfab.serve.status import WorkerStatus as RegisteredWorker
from specwire.runtime.norfab.worker.status import WorkerStatus
from specwire.runtime.observe.common import about, measure_taps, tabulate_taps
from specwire.runtime.observe.families import MAX_VALUES, Family, Histogram, counter, gauge
from specwire.runtime.observe.view import (
    Column,
    Counted,
    Fact,
    Health,
    Node,
    Notice,
    Subject,
    View,
    branch,
    newest,
    tabulate,
    word,
)
from specwire.runtime.quantities import show_count

WORKER_COLUMNS = (
    Column("worker"),
    Column("service"),
    Column("has", "count"),
    Column("to come", "count"),
    Column("resources", "count"),
    Column("silent", "seconds"),
    Column("registered", "seconds"),
)
JOB_COLUMNS = (
    Column("job"),
    Column("task"),
    Column("client"),
    Column("state"),
    Column("took", "seconds"),
    Column("failure"),
)


def view_broker(status: BrokerStatus) -> View:
    """Return the page of a broker."""
    jobs, counters = status.jobs, status.counters
    endpoints = ", ".join(status.endpoints)
    by_service: dict[str, list[RegisteredWorker]] = defaultdict(list)
    for worker in status.workers:
        by_service[worker.service].append(worker)
    return View(
        title="NORFAB broker",
        name=word(endpoints),
        health=_health_of_broker(status),
        facts=(
            Fact("up", status.up_s, "seconds"),
            *((Fact("workers come to", word(", ".join(status.back))),) if status.back else ()),
            Fact("folder", word(status.folder)),
            Fact("acknowledged jobs survive", _survived(status.durability)),
            Fact("process", str(status.pid)),
            Fact("specwire", status.version),
        ),
        gauges=(
            Fact("open jobs", jobs.open, "count"),
            Fact("wait for a service", sum(service.waiting for service in status.services), "count"),
            Fact("wait for a worker", sum(worker.queued for worker in status.workers), "count"),
            Fact("wait for the disk", jobs.waiting_for_disk, "count"),
            Fact("workers", len(status.workers), "count"),
            Fact("clients", status.clients, "count"),
            Fact("parts failed", counters.parts_failed, "count"),
            Fact("results kept", jobs.kept_octets, "octets"),
        ),
        tree=branch(endpoints, status.services, lambda service: _service(service, by_service[service.name])),
        tables=(
            tabulate("Workers", WORKER_COLUMNS, status.workers, _worker, empty="no worker is registered"),
            *tabulate_taps(status.captures),
        ),
        notices=newest(Notice(refusal.at, word(refusal.reason)) for refusal in status.refusals),
    )


def _health_of_broker(status: BrokerStatus) -> Health:
    without = sum(not service.workers and service.waiting > 0 for service in status.services)
    if status.counters.store_failures:
        return Health("records could not be kept", "fair")  # once, and perhaps not any more
    if without:
        return Health(f"jobs wait for {show_count(without, 'service')}", "fair")
    return Health("serving", "good")


def _survived(durability: str) -> str:
    return "the loss of power" if durability == "full" else "the end of the process"


def _service(service: ServiceStatus, workers: list[RegisteredWorker]) -> Node:
    notes = [show_count(service.workers, "worker")]
    if service.waiting:
        notes.append(f"{show_count(service.waiting, 'job')} to come")
    tone = "good" if service.workers else "fair"
    return branch(
        service.name,
        workers,
        lambda worker: Node(word(worker.name), show_count(worker.jobs, "job"), "good"),
        note=", ".join(notes),
        tone=tone,  # type: ignore[arg-type]
    )


def _worker(worker: RegisteredWorker) -> tuple[str | float | None, ...]:
    return (
        worker.name,
        worker.service,
        worker.jobs,
        worker.queued,
        worker.resources,
        worker.silent_s,
        worker.registered_s,
    )


def view_worker(status: WorkerStatus) -> View:
    """Return the page of a worker."""
    counters = status.counters
    broker = word(status.broker)
    return View(
        title="NORFAB worker",
        name=word(f"{status.name} for {status.service}"),
        health=_health_of_worker(status),
        facts=(
            Fact("up", status.up_s, "seconds"),
            Fact("broker", broker),
            Fact("jobs at a time", str(status.concurrency)),
            Fact("process", str(status.pid)),
            Fact("specwire", status.version),
        ),
        gauges=(
            Fact("running", status.running, "count"),
            Fact("waiting", status.waiting, "count"),
            Fact("held", status.held, "count"),
            Fact("completed", counters.completed, "count"),
            Fact("failed", counters.failed, "count"),
            Fact("wait for the disk", status.waiting_for_disk, "count"),
            Fact("results kept", status.kept_octets, "octets"),
            Fact("resources", status.resources, "count"),
        ),
        tree=branch(broker, (status,), lambda worker: Node(word(worker.name), word(worker.service))),
        tables=(
            tabulate(
                "Newest jobs",
                JOB_COLUMNS,
                status.newest,
                lambda job: (job.uuid, job.task, job.client, job.state, job.seconds, job.failure),
                empty="no job has come",
            ),
            *tabulate_taps(status.captures),
        ),
    )


def _health_of_worker(status: WorkerStatus) -> Health:
    if status.stopping:
        return Health("stopping", "fair")
    if status.registered_s is None:
        return Health("not connected", "bad")
    if status.store:
        return Health(f"the disk fails, and jobs are refused: {word(status.store)}", "bad")
    return Health("registered", "good")


PROTOCOL = "norfab"


def measure_broker(status: BrokerStatus) -> list[Family]:
    """Return the metrics of a broker."""
    jobs = status.jobs
    return [
        *about("norfab-broker", PROTOCOL, status.up_s),
        gauge("specwire_norfab_clients", "Clients that were heard lately.", status.clients),
        gauge("specwire_norfab_open_jobs", "Jobs that have not ended.", jobs.open),
        gauge("specwire_norfab_open_job_bytes", "Octets of their bodies.", jobs.open_octets),
        gauge("specwire_norfab_kept_jobs", "Ended jobs whose results are kept.", jobs.kept),
        gauge("specwire_norfab_kept_result_bytes", "Octets of these results.", jobs.kept_octets),
        gauge(
            "specwire_norfab_records_waiting_for_disk",
            "What is not durable yet, and so not acknowledged.",
            jobs.waiting_for_disk,
        ),
        gauge(
            "specwire_norfab_descriptor_limit", "Files and connections that may be open.", status.descriptors
        ),
        *_of_workers(status),
        _took(
            "specwire_norfab_part_duration_seconds",
            "Time from a job's acceptance to the end of a part of it.",
            "service",
            status.durations,
        ),
        *_counted(status),
        *measure_taps(status.captures),
    ]


def _of_workers(status: BrokerStatus) -> list[Family]:
    workers = Family("specwire_norfab_workers", "gauge", "Workers that are registered.", ("service",))
    waiting = Family(
        "specwire_norfab_waiting_jobs",
        "gauge",
        "Jobs that wait because their service has no worker.",
        ("service",),
    )
    given = Family("specwire_norfab_given_jobs", "gauge", "Parts of jobs that workers have.", ("service",))
    queued = Family(
        "specwire_norfab_queued_jobs", "gauge", "Parts of jobs that wait for a worker.", ("service",)
    )
    shown = [service.name for service in status.services[:MAX_VALUES]]
    for service in status.services[:MAX_VALUES]:
        workers.add(service.workers, service.name)
        waiting.add(service.waiting, service.name)
    known = set(shown)
    for worker in status.workers:
        if worker.service in known:
            given.add(worker.jobs, worker.service)
            queued.add(worker.queued, worker.service)
    services = gauge(
        "specwire_norfab_services", "Services that have a worker or a job.", len(status.services)
    )
    registered = gauge("specwire_norfab_registered_workers", "Workers of all services.", len(status.workers))
    return [services, registered, workers, waiting, given, queued]


def _counted(status: BrokerStatus) -> list[Family]:
    counters = status.counters
    messages = Family("specwire_norfab_messages", "counter", "Messages by direction.", ("direction",))
    messages.add_each({"in": counters.messages_in, "out": counters.messages_out})
    octets = Family("specwire_norfab_message_bytes", "counter", "Octets of all frames.", ("direction",))
    octets.add_each({"in": counters.octets_in, "out": counters.octets_out})
    dropped = Family(
        "specwire_norfab_dropped_messages",
        "counter",
        "Messages that were not passed on, by the reason.",
        ("kind",),
    )
    dropped.add_each(counters.dropped)
    return [
        messages,
        octets,
        counter("specwire_norfab_accepted_jobs", "Jobs that were acknowledged.", counters.jobs_accepted),
        counter("specwire_norfab_ended_parts", "Parts of jobs that have ended.", counters.parts_ended),
        counter("specwire_norfab_failed_parts", "Those that no worker answered.", counters.parts_failed),
        counter(
            "specwire_norfab_redispatched_parts", "Parts given to a worker once more.", counters.redispatched
        ),
        counter("specwire_norfab_worker_registrations", "Workers that became ready.", counters.workers_ready),
        counter("specwire_norfab_worker_losses", "Workers that are gone.", counters.workers_gone),
        counter("specwire_norfab_refusals", "Requests that were not granted.", counters.refusals),
        counter("specwire_norfab_turned_away_peers", "Peers that were not let in.", counters.turned_away),
        counter(
            "specwire_norfab_cut_connections",
            "Connections that were cut off for an unfinished message.",
            counters.cut_off,
        ),
        counter("specwire_norfab_store_failures", "Records that could not be kept.", counters.store_failures),
        counter(
            "specwire_norfab_undelivered_messages", "Messages whose peer had gone.", counters.undelivered
        ),
        dropped,
    ]


def _took(name: str, help: str, label: str, durations: dict[str, Durations]) -> Histogram:
    """Return a histogram of durations with this label."""
    family = Histogram(name, help, LIMITS_S, (label,))
    for key, one in durations.items():
        family.add_all(one.at_most(), one.total_s, key)
    return family


def measure_worker(status: WorkerStatus) -> list[Family]:
    """Return the metrics of a worker."""
    counters = status.counters
    jobs = Family("specwire_norfab_worker_jobs", "gauge", "Jobs that have not ended, by state.", ("state",))
    jobs.add_each({"running": status.running, "waiting": status.waiting, "held": status.held})
    ended = Family("specwire_norfab_worker_ended_jobs", "counter", "Jobs that have ended.", ("outcome",))
    ended.add_each({"completed": counters.completed, "failed": counters.failed})
    keepalives = Family("specwire_norfab_worker_keepalives", "counter", "Signs of life.", ("direction",))
    keepalives.add_each({"in": counters.keepalives_in, "out": counters.keepalives_out})
    return [
        *about("norfab-worker", PROTOCOL, status.up_s),
        gauge(
            "specwire_norfab_worker_registered",
            "1 where a broker was heard.",
            status.registered_s is not None,
        ),
        gauge("specwire_norfab_worker_places", "Jobs that run at a time.", status.concurrency),
        jobs,
        gauge(
            "specwire_norfab_worker_abandoned_jobs",
            "Jobs that run on although their end was ordered.",
            status.abandoned,
        ),
        gauge("specwire_norfab_worker_kept_results", "Ended jobs whose results are kept.", status.kept),
        gauge("specwire_norfab_worker_kept_result_bytes", "Octets of these results.", status.kept_octets),
        gauge(
            "specwire_norfab_worker_records_waiting_for_disk",
            "What is not durable yet.",
            status.waiting_for_disk,
        ),
        gauge("specwire_norfab_worker_resources", "What the worker manages.", status.resources),
        ended,
        _took(
            "specwire_norfab_worker_job_duration_seconds",
            "Time that a job ran.",
            "task",
            status.durations,
        ),
        counter(
            "specwire_norfab_worker_registrations",
            "Connections on which a broker was heard.",
            counters.registrations,
        ),
        keepalives,
        counter("specwire_norfab_worker_dropped_messages", "Messages that made no sense.", counters.dropped),
        *measure_taps(status.captures),
    ]


if TYPE_CHECKING:
    from specwire.runtime.norfab.serve import NorfabBroker
    from specwire.runtime.norfab.worker.serve import NorfabWorker


def broker_subject(broker: NorfabBroker) -> Subject:
    """Return a running broker for page and metrics."""

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
    """Return a running worker for page and metrics."""

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
