"""The page of a NORFAB broker, whose tree is services with their workers; and that of a worker."""

from __future__ import annotations

from collections import defaultdict

from specwire.runtime.norfab.serve.status import BrokerStatus, ServiceStatus
from specwire.runtime.norfab.serve.status import WorkerStatus as RegisteredWorker
from specwire.runtime.norfab.worker.status import WorkerStatus
from specwire.runtime.observe.view import (
    Column,
    Fact,
    Health,
    Node,
    Notice,
    View,
    branch,
    newest,
    tabulate,
    word,
)
from specwire.runtime.observe.views.common import captured
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
    """Return what the page of a broker shows."""
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
            *captured(status.captures),
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
    """Return what the page of a worker shows."""
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
            *captured(status.captures),
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
