"""How much a worker takes, and how long it waits."""

from __future__ import annotations

import msgspec


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one worker; times in seconds."""

    keepalive_s: float = 2.5
    liveness: int = 6
    """Intervals of silence after which the broker is lost."""
    hello_s: float = 5.0
    """Silence after which a fresh connection is given up; doubled with each one that stays silent, up to `expiry_s`."""
    first_retry_s: float = 0.1
    longest_retry_s: float = 1.0
    """Between two attempts to reach a broker: the first wait, doubled with each failure up to the longest."""
    patience_s: float = 10.0
    """How long a broker that was lost is tried before the next of the list."""
    hold_s: float = 5.0
    """How long after a registration the broker may take to ask for what it is owed."""
    acknowledge_s: float = 0.1
    """How long the word that a job was taken waits for its result, which says so, too; 0: it is said at once."""

    concurrency: int = 1
    """Jobs that run at a time."""
    queue: int = 1_000
    """Jobs that have not ended; beyond it they are refused."""
    queue_octets: int = 256 * 1024 * 1024
    """Bodies of these jobs; the first one may be as large as a message can be."""
    job_s: float = 600.0
    """How long a job may take that states no timeout."""
    longest_job_s: float = 7 * 86400.0
    grace_s: float = 10.0
    """How long a job whose time is over may go on before its place is given to another."""
    abandoned: int = 8
    """Jobs that go on without a place; beyond it places are not given up."""
    drain_s: float = 30.0
    """How long what runs may take to end when the worker is told to stop."""

    body_octets: int = 64 * 1024 * 1024
    """The largest result."""
    messages: int = 100
    """Progress of a job that its result repeats."""
    kept_jobs: int = 10_000
    kept_s: float = 7 * 86400.0
    kept_octets: int = 256 * 1024 * 1024
    """What has ended is kept to be asked for: so many, so long, so large in all."""
    uncommitted: int = 10_000
    """Stores that were not confirmed yet; beyond it jobs are refused."""

    @property
    def expiry_s(self) -> float:
        """Silence after which the broker is lost."""
        return self.keepalive_s * self.liveness
