"""Limits of a broker: sizes, counts and timeouts. Each kind of load has one of these bounds."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one broker; times in seconds."""

    keepalive_s: float = 2.5
    liveness: int = 6
    """Intervals without a sign of life after which a worker is lost."""
    queue_s: float = 60.0
    """How long a job waits for a worker before it ends with 408."""
    job_s: float = 600.0
    """How long a job may take that states no timeout."""
    longest_job_s: float = 7 * 86400.0
    poll_s: float = 5.0
    """How often a worker that owes a result is asked for it: deployed workers do not always say that they are done."""
    polls_a_tick: int = 16
    """Questions to one worker at a time."""
    window: int = 256
    """Jobs at one worker at a time; the rest waits in the broker, where clients take turns."""
    usual_window: int = 64
    """The same for a worker that ends fewer within `ahead_s`."""
    ahead_s: float = 0.1
    """A worker may have as many jobs as it ends in this time, within these bounds."""
    attempts: int = 3
    """How often one process of the broker gives a part of a job to a worker.

    Attempts of earlier processes do not count: a restart of the broker is not a fault of the job.
    """

    body_octets: int = 64 * 1024 * 1024
    open_octets: int = 1024 * 1024
    """Octets of the body of a worker's OPEN."""
    jobs_per_client: int = 20_000
    """Unfinished jobs of one client."""
    jobs: int = 120_000
    """Unfinished jobs of all clients."""
    job_octets: int = 512 * 1024 * 1024
    """Bodies of all unfinished jobs."""
    waiting_per_service: int = 120_000
    """Jobs of a service that has no worker."""
    tasks_per_job: int = 10_000
    listeners_per_job: int = 64
    events_per_job: int = 1_000
    """Events that are kept of a job."""

    parts: int = 500_000
    """Unfinished parts of all jobs; the parts of one new job may come on top."""

    kept_jobs: int = 100_000
    kept_s: float = 7 * 86400.0
    """Finished jobs: how many are kept, and for how long."""
    kept_parts: int = 200_000
    """Parts of finished jobs."""
    kept_octets: int = 4 * 1024 * 1024 * 1024
    """Results of finished jobs, on disk."""
    cached_octets: int = 32 * 1024 * 1024
    """Results in memory."""
    fetches: int = 10_000
    """Results that are requested from the store, or will be."""
    fetch_octets: int = 64 * 1024 * 1024
    """Results on their way from the store; one may always be."""

    workers: int = 20_000
    clients: int = 50_000
    inquiries: int = 10_000
    """Questions for jobs that only workers know."""
    asks: int = 10_000
    """Questions to services of the shell that were not answered yet; as many to workers themselves."""
    manage_s: float = 10.0
    """How long the answers of workers to a request about themselves are waited for."""
    uncommitted: int = 50_000
    """Commits that are not durable yet; beyond it, new jobs are refused."""
    waiting_octets: int = 256 * 1024 * 1024
    """Records that wait for the disk; beyond it nothing is received, so that results cannot fill the memory."""
    message_octets: int = 8 * 1024 * 1024
    """Octets of a connection's first message. Later ones may have `body_octets` and 1 MiB."""
    undelivered_octets: int = 256 * 1024 * 1024
    """Octets of the unfinished messages of all connections together."""

    @property
    def first_window(self) -> int:
        """How many jobs a worker may have of which nothing is known yet."""
        return min(self.usual_window, self.window)

    @property
    def expiry_s(self) -> float:
        """Silence after which a worker is lost."""
        return self.keepalive_s * self.liveness
