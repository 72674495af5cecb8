"""The measures of a NORFAB broker and of a worker.

The names of services come from workers, so only `MAX_VALUES` of them are told apart; totals have no such label.
"""

from __future__ import annotations

from specwire.runtime.norfab.durations import LIMITS_S, Durations
from specwire.runtime.norfab.serve.status import BrokerStatus
from specwire.runtime.norfab.worker.status import WorkerStatus
from specwire.runtime.observe.families import MAX_VALUES, Family, Histogram, counter, gauge
from specwire.runtime.observe.metrics.common import about, captured

PROTOCOL = "norfab"


def measure_broker(status: BrokerStatus) -> list[Family]:
    """Return the measures of a broker."""
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
        *captured(status.captures),
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
    """Return durations by the name of what took so long."""
    family = Histogram(name, help, LIMITS_S, (label,))
    for key, one in durations.items():
        family.add_all(one.at_most(), one.total_s, key)
    return family


def measure_worker(status: WorkerStatus) -> list[Family]:
    """Return the measures of a worker."""
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
        *captured(status.captures),
    ]
