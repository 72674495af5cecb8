"""How much a client takes, and how long it waits."""

from __future__ import annotations

import msgspec


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of one client; times in seconds."""

    jobs: int = 10_000
    """Jobs that have not ended; whoever submits one more waits."""
    window: int = 512
    """Questions to the broker that wait for its first word; the rest waits here."""
    untried_window: int = 16
    """The same, before the broker has said anything on this connection."""
    questions: int = 1_000
    """Management requests and deletions that wait for an answer."""
    body_octets: int = 64 * 1024 * 1024
    """Of a job."""

    silence_s: float = 10.0
    """A question that has no answer for so long is asked again; where nothing came at all the connection is lost."""
    poll_s: float = 5.0
    """A job is asked for after so long without news of it, then ever more seldom: results that are not pushed, or got lost."""
    longest_poll_s: float = 60.0
    retry_s: float = 0.5
    """A broker that cannot take a job now is asked again after so long, then ever more seldom."""
    longest_retry_s: float = 10.0
    grace_s: float = 1.0
    """After the time of a job: the broker knows better why there is no result, and gets so long to say so."""
    settle_s: float = 15.0
    """After a connection is made: so long a broker may not know a job that was accepted, as its workers are not back."""

    first_reconnect_s: float = 0.1
    longest_reconnect_s: float = 2.0
    move_on_s: float = 5.0
    """After so long without a connection the next broker of the list is tried."""

    events_per_job: int = 1_000
    """What is kept of a job's progress."""
    stale_jobs: int = 1_000
    """Jobs that nobody waits for any more and whose late results are still taken."""
    ended_jobs: int = 20_000
    """Uuids of ended jobs that are known, so that what comes twice is told from what is forged."""

    kept_jobs: int = 100_000
    kept_s: float = 7 * 86400.0
    kept_octets: int = 512 * 1024 * 1024
    """Ended jobs in the store: how many, how long, and how many octets of results."""
