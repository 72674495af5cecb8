"""Status: one struct per peer, which is the only source of what is shown about it.

A peer's status is a msgspec struct. ``specwire … status`` prints it, as JSON or as text. A field that is
also a metric carries a `Measure`:

    class ZreStatus(msgspec.Struct):
        messages_in: Annotated[int, Measure("counter", "Messages received.")]
        peers: Annotated[tuple[RemoteStatus, ...], Measure("gauge", "Known peers.")]

`measure` turns these fields into the families that ``--metrics`` exports. The value of a measured field is
a number, a `Distribution`, a mapping from the value of one label to a number, or something with a length.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate
from typing import Annotated, Any, get_type_hints

import msgspec

from specwire import __version__
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.observe.families import Family, Histogram, Kind


class Measure(msgspec.Struct, frozen=True):
    """Marks a field of a status as a metric.

    Attributes:
        kind: ``counter`` only grows, ``gauge`` does not, ``histogram`` is a `Distribution`.
        name: of the family, after the prefix; the name of the field by default. Fields may share a
            family, with different `labels`.
        labels: constant labels.
        label: name of the label whose values are the keys of a mapping.
    """

    kind: Kind
    help: str
    name: str = ""
    labels: Mapping[str, str] = {}
    label: str = ""


class Distribution(msgspec.Struct):
    """How many values were at most each limit; `counts` has one more number, for larger ones.

    Attributes:
        limits: in rising order.
    """

    limits: tuple[float, ...]
    counts: list[int] = []
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        if not self.counts:
            self.counts = [0] * (len(self.limits) + 1)
        self.counts[bisect_left(self.limits, value)] += 1
        self.total += value


COMMIT_LIMITS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


class ProcessStatus(msgspec.Struct, frozen=True):
    """The process of a peer; `started` is the time (ISO 8601, UTC)."""

    pid: int
    version: str
    started: str
    uptime_s: Annotated[float, Measure("gauge", "Time since the peer started.", name="uptime_seconds")]


class ProcessClock:
    """Start time and uptime of a peer. Create it when the peer starts."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._began_s = time.monotonic()

    def describe(self) -> ProcessStatus:
        """Return the status of the process."""
        uptime_s = round(time.monotonic() - self._began_s, 3)
        return ProcessStatus(os.getpid(), __version__, self._started, uptime_s)


class HostCounters(msgspec.Struct):
    """Counts of a host since its start, beside messages."""

    malformed: Annotated[int, Measure("counter", "Messages that are none of the protocol.")] = 0
    refused: Annotated[int, Measure("counter", "Clients that were not admitted.")] = 0
    cut_off: Annotated[int, Measure("counter", "Clients that were cut off in an unfinished message.")] = 0
    lost: Annotated[int, Measure("counter", "Peers that could not be reached any more.")] = 0
    commits: Annotated[int, Measure("counter", "Commits that are durable.")] = 0
    failed_commits: Annotated[int, Measure("counter", "Commits that failed.")] = 0
    faults: Annotated[int, Measure("counter", "Faults of specwire itself.")] = 0
    commit_s: Annotated[
        Distribution, Measure("histogram", "Time until a commit is durable.", name="commit_seconds")
    ] = msgspec.field(default_factory=lambda: Distribution(COMMIT_LIMITS_S))


class HostStatus(msgspec.Struct, frozen=True):
    """Status of a host, included in the status of every peer."""

    process: ProcessStatus
    endpoints: Mapping[str, str]
    paused: Annotated[bool, Measure("gauge", "Whether receiving is paused.")]
    connections: Annotated[int, Measure("gauge", "Connections that this side opened.")]
    pending_effects: Annotated[int, Measure("gauge", "Effects that are still to be performed.")]
    pending_commits: Annotated[int, Measure("gauge", "Commits that are not durable yet.")]
    messages_in: Annotated[int, Measure("counter", "Messages.", "messages", {"direction": "in"})]
    messages_out: Annotated[int, Measure("counter", "Messages.", "messages", {"direction": "out"})]
    octets_in: Annotated[
        int, Measure("counter", "Octets of all frames.", "message_bytes", {"direction": "in"})
    ]
    octets_out: Annotated[
        int, Measure("counter", "Octets of all frames.", "message_bytes", {"direction": "out"})
    ]
    counters: HostCounters
    captures: tuple[TapCounts, ...] = ()


def measure(status: msgspec.Struct, prefix: str) -> list[Family]:
    """Return the metrics in a status and in the structs that are its fields.

    Args:
        prefix: beginning of each name, such as ``specwire_zre``.
    """
    families: dict[str, Family] = {}
    for mark, name, value in _measured(status):
        family = families.get(name)
        labels = (*mark.labels, *((mark.label,) if mark.label else ()))
        if family is None and isinstance(value, Distribution):
            family = families[name] = Histogram(f"{prefix}_{name}", mark.help, value.limits, labels)
        elif family is None:
            family = families[name] = Family(f"{prefix}_{name}", mark.kind, mark.help, labels)
        _add(family, mark, value)
    return [*families.values()]


def _measured(status: msgspec.Struct) -> Iterator[tuple[Measure, str, Any]]:
    marks = _marks(type(status))
    for name in status.__struct_fields__:
        value = getattr(status, name)
        if (mark := marks.get(name)) is not None:
            yield mark, mark.name or name, value
        elif isinstance(value, msgspec.Struct):
            yield from _measured(value)


@cache
def _marks(kind: type[msgspec.Struct]) -> Mapping[str, Measure]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: mark
        for name, hint in hints.items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, Measure)
    }


def _add(family: Family, mark: Measure, value: Any) -> None:
    constants = mark.labels.values()
    match value:
        case Distribution() if isinstance(family, Histogram):
            counts = value.counts or [0] * (len(value.limits) + 1)
            family.add_all([*accumulate(counts)], value.total, *constants)
        case int() | float():
            family.add(value, *constants)
        case Mapping() if mark.label:
            for label, number in value.items():
                family.add(number, *constants, label)
        case _:
            family.add(len(value), *constants)
