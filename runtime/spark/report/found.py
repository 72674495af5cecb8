"""What the report shows of the answers, as values; moments are in UTC."""

from __future__ import annotations

from datetime import datetime

import msgspec

BINS_PER_DECADE = 20
"""Of the latency distribution: each bin is 12 % wider than the one before."""

FRAMES_KEPT_OCTETS = 4096
"""Of each frame of a violation, from its beginning; the rest is said in octets."""


class LatencyBin(msgspec.Struct, frozen=True):
    """How many of a kind took from `bin` steps of a decade's twentieth above 1 µs to the next."""

    kind: str
    bin: int
    count: int


class Topic(msgspec.Struct, frozen=True):
    """What was asked of one topic; quantiles in microseconds, None where nothing was answered."""

    protocol: str
    kind: str
    service: str | None
    topic: str | None
    begun: int
    answered: int
    errors: int
    unanswered: int
    p50_us: int | None
    p99_us: int | None
    max_us: int | None


class File(msgspec.Struct, frozen=True):
    """One file that was sent."""

    protocol: str
    peer: str | None
    filename: str
    outcome: str
    octets: int
    octets_per_s: float | None
    duration_us: int
    stalls: int
    stalled_us: int


class Presence(msgspec.Struct, frozen=True):
    """A conversation from its first to its last message."""

    protocol: str
    tap: str
    conversation: str
    peer: str | None
    first_ts: datetime
    last_ts: datetime
    messages: int


class Silence(msgspec.Struct, frozen=True):
    """A side that said nothing for longer than its heartbeat allows; `until_ts` is None where it has not spoken since."""

    tap: str
    conversation: str
    sender: str
    ts: datetime
    until_ts: datetime | None
    silent_s: float
    outcome: str
    protocol: str = ""
    peer: str | None = None


class ViolationCount(msgspec.Struct, frozen=True):
    """Violations of one kind."""

    protocol: str
    reading: str
    kind: str
    message: str | None
    conversations: int
    violations: int


class Violation(msgspec.Struct, frozen=True):
    """A message that broke the dialog; `frames` is None where the captured frames are not kept.

    `frames` are cut to `FRAMES_KEPT_OCTETS` each, `sizes` are their whole sizes.
    """

    protocol: str
    tap: str
    seq: int
    conversation: str
    peer: str | None
    ts: datetime
    reading: str
    kind: str
    sender: str | None
    message: str | None
    state: str | None
    text: str
    frames: tuple[bytes, ...] | None = None
    sizes: tuple[int, ...] = ()


class Edge(msgspec.Struct, frozen=True):
    """Who sent to whom, or asked which service, over all days."""

    protocol: str
    kind: str
    source: str
    source_role: str
    target: str
    target_role: str
    messages: int
    octets: int
    errors: int


class Findings(msgspec.Struct, frozen=True):
    """All of it; a sequence is empty where there was nothing, or where its table is not written."""

    latency: tuple[LatencyBin, ...] = ()
    topics: tuple[Topic, ...] = ()
    files: tuple[File, ...] = ()
    presences: tuple[Presence, ...] = ()
    silences: tuple[Silence, ...] = ()
    violation_counts: tuple[ViolationCount, ...] = ()
    violations: tuple[Violation, ...] = ()
    edges: tuple[Edge, ...] = ()
