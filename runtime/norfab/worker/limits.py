"""Settings of a worker."""

from __future__ import annotations

import msgspec


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and times of one worker; times in seconds."""

    keepalive_s: float = 2.5
    liveness: int = 6
    """The broker is lost after so many intervals of silence."""
    hello_s: float = 5.0
    """A new connection is given up after this silence, which doubles with each one, up to `expiry_s`."""
    first_retry_s: float = 0.1
    longest_retry_s: float = 1.0
    """Pause between attempts to connect: the first one, doubled with each failure up to the longest."""
    patience_s: float = 10.0
    """How long a lost broker is tried before the next one of the list."""
    hold_s: float = 5.0
    """After a registration: how long the broker has to ask for held jobs and for results."""
    acknowledge_s: float = 0.1
    """How long an acknowledgement waits for the result, which replaces it; 0 to send it at once."""

    concurrency: int = 1
    """Jobs that run at a time."""
    queue: int = 1_000
    """Jobs that have not ended; more are refused."""
    queue_octets: int = 256 * 1024 * 1024
    """Total size of their bodies; a single job may be larger."""
    job_s: float = 600.0
    """Time limit of a job that states none."""
    longest_job_s: float = 7 * 86400.0
    grace_s: float = 10.0
    """How long a cancelled task keeps its place if it does not end."""
    abandoned: int = 8
    """Tasks that run without a place; beyond it, tasks keep their places."""
    drain_s: float = 30.0
    """When the worker stops: how long running tasks may take to end."""
    disk_s: float = 10.0
    """How long the disk may then take to store their results."""

    body_octets: int = 64 * 1024 * 1024
    """Size of a result."""
    messages: int = 100
    """Progress messages that the result of a job repeats."""
    kept_jobs: int = 10_000
    kept_s: float = 7 * 86400.0
    kept_octets: int = 256 * 1024 * 1024
    """Retention of ended jobs: their number, age, and total size of results."""
    uncommitted: int = 10_000
    """Commits that are not durable yet; beyond it, new jobs are refused."""

    @property
    def expiry_s(self) -> float:
        """Silence after which the broker is lost."""
        return self.keepalive_s * self.liveness
