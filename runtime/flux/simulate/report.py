"""What a simulation found. Times are seconds of virtual time; nothing depends on the machine that it ran on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Quantiles(msgspec.Struct, frozen=True):
    """How durations are spread."""

    number: int
    least_s: float
    p50_s: float
    p90_s: float
    p99_s: float
    most_s: float


def quantiles(durations_s: Sequence[float]) -> Quantiles | None:
    """Return the quantiles, each one of the durations; None where there are none."""
    if not durations_s:
        return None
    ordered = sorted(durations_s)
    last = len(ordered) - 1
    p50, p90, p99 = (ordered[round(last * share)] for share in (0.5, 0.9, 0.99))
    return Quantiles(len(ordered), ordered[0], p50, p90, p99, ordered[-1])


class StartReport(msgspec.Struct, frozen=True):
    """When the tree was there; None where it was not in time."""

    joined_s: float | None
    """Every broker had been welcomed by its parent."""
    full_s: float | None
    """Rank 0 knew it."""


class HopsReport(msgspec.Struct, frozen=True):
    """Requests that took so many links, there and back."""

    hops: int
    latency: Quantiles


class LoadReport(msgspec.Struct, frozen=True):
    """One load of the scenario, in its order."""

    topic: str
    to: str
    asked: int
    answered: int
    """Without an error."""
    errors: dict[str, int]
    """Answers with an error, by its name."""
    died: int
    """Requests of clients that died with their broker: nobody awaits the answer."""
    open: int
    """Not answered when the simulation ended."""
    repeated: int
    """Final answers after the final answer, which must not be."""
    latency: Quantiles | None
    """Of those that were answered without an error."""
    hops: tuple[HopsReport, ...]


class EventsReport(msgspec.Struct, frozen=True):
    """Events of one topic."""

    topic: str
    number: int
    complete: int
    """Those that came to every other broker."""
    least_reached: int
    fan_out: Quantiles | None
    """From rank 0 until the last broker had it, of those that are complete."""
    to_clients: int


class FaultReport(msgspec.Struct, frozen=True):
    """One fault of the scenario: all times are since it began, None for what did not happen (any more)."""

    kind: str
    at_s: float
    brokers: int
    pending: int
    """Requests of clients that live on that were open at that moment."""
    answered_s: float | None
    """The last of them was answered."""
    failed: int
    """Those of them that got an error."""
    failed_s: float | None
    """The last of those got it."""
    noticed_s: float | None
    """Rank 0 knew that something is missing."""
    full_s: float | None
    """Rank 0 knew that all is there again."""
    joined_s: float | None
    """Every broker was in the tree again."""


class LevelReport(msgspec.Struct, frozen=True):
    """Messages that the brokers of one level received from neighbours, and sent to them."""

    level: int
    brokers: int
    received: int
    most_received: int
    sent: int
    most_sent: int


class Report(msgspec.Struct, frozen=True):
    """All of it."""

    title: str
    size: int
    fanout: int
    height: int
    seed: int
    duration_s: float
    start: StartReport
    rpc: tuple[LoadReport, ...]
    events: tuple[EventsReport, ...]
    faults: tuple[FaultReport, ...]
    levels: tuple[LevelReport, ...]
    told: dict[str, int]
    """How often brokers told of each kind of happening."""
    messages: int
    """Received, by all brokers."""
