"""Status: one struct per peer, which is the only source of what is shown about it.

A peer's status is a msgspec struct. ``specwire … status`` prints it, as JSON or as text. A field
that is also a metric carries a `Measure`:

    class ZreStatus(msgspec.Struct):
        messages_in: Annotated[int, Measure("counter", "Messages received.")]
        peers: Annotated[tuple[RemoteStatus, ...], Measure("gauge", "Known peers.")]

`measure` turns these fields into the families that ``--metrics`` exports, with those of the structs
that are fields or elements of fields. The elements are added up, unless `Measure.by` tells them
apart.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from itertools import accumulate, chain
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from specwire import __version__
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.observe.families import Family, Histogram, Kind


class Measure(msgspec.Struct, frozen=True):
    """Marks a field of a status as a metric.

    The value of a field is a number, a `Distribution`, a struct or None (1 or 0), or something with
    a length. With a `label` it is a mapping to numbers, or the member of an enumeration that is 1.

    Attributes:
        kind: ``counter`` only grows, ``gauge`` does not, ``histogram`` is a `Distribution`.
        name: of the family, after the prefix; the name of the field by default. Fields may share a
            family, with different `labels`.
        labels: constant labels.
        label: name of the label whose values are the keys of a mapping, or the members.
        by: field of the same struct that is a label.
    """

    kind: Kind
    help: str
    name: str = ""
    labels: Mapping[str, str] = {}
    label: str = ""
    by: str = ""


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
    uptime_s: float


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

    malformed: Annotated[
        int, Measure("counter", "Messages that are none of the protocol.", "malformed_messages")
    ] = 0
    refused: Annotated[int, Measure("counter", "Clients that were not admitted.", "refused_clients")] = 0
    cut_off: Annotated[
        int,
        Measure("counter", "Connections that were cut off for an unfinished message.", "cut_connections"),
    ] = 0
    lost: Annotated[int, Measure("counter", "Peers that could not be reached any more.", "lost_peers")] = 0
    faults: Annotated[int, Measure("counter", "Faults of specwire itself.")] = 0


class StoreStatus(msgspec.Struct):
    """The commits of a host: those without an outcome now, and counts since its start."""

    pending: Annotated[int, Measure("gauge", "Commits that are not durable yet.", "pending_commits")] = 0
    commits: Annotated[int, Measure("counter", "Commits that are durable.")] = 0
    failed: Annotated[int, Measure("counter", "Commits that failed.", "failed_commits")] = 0
    commit_s: Annotated[
        Distribution, Measure("histogram", "Time until a commit is durable.", name="commit_seconds")
    ] = msgspec.field(default_factory=lambda: Distribution(COMMIT_LIMITS_S))


class HostStatus(msgspec.Struct, frozen=True):
    """Status of a host, included in the status of every peer; `store` is None without a store."""

    process: ProcessStatus
    endpoints: Mapping[str, str]
    paused: Annotated[bool, Measure("gauge", "Whether receiving is paused.")]
    connections: Annotated[int, Measure("gauge", "Connections that this side opened.")]
    pending_effects: Annotated[int, Measure("gauge", "Effects that are still to be performed.")]
    messages_in: Annotated[int, Measure("counter", "Messages by direction.", "messages", {"direction": "in"})]
    messages_out: Annotated[
        int, Measure("counter", "Messages by direction.", "messages", {"direction": "out"})
    ]
    octets_in: Annotated[
        int, Measure("counter", "Octets of all frames.", "message_bytes", {"direction": "in"})
    ]
    octets_out: Annotated[
        int, Measure("counter", "Octets of all frames.", "message_bytes", {"direction": "out"})
    ]
    counters: HostCounters
    store: StoreStatus | None = None
    captures: tuple[TapCounts, ...] = ()


def measure(status: msgspec.Struct, prefix: str) -> list[Family]:
    """Return the metrics in a status.

    Args:
        prefix: beginning of each name, such as ``specwire_zre``.
    """
    families: dict[str, Family] = {}
    _measure(type(status), [status], prefix, families)
    return [*families.values()]


def _measure(
    kind: type[msgspec.Struct], items: Sequence[Any], prefix: str, families: dict[str, Family]
) -> None:
    """Add the metrics in structs of one type; where there are none, those without labels are 0."""
    for field in _fields_of(kind):
        mark, values = field.mark, [getattr(item, field.name) for item in items]
        if mark is not None:
            name = f"{prefix}_{mark.name or field.name}"
            family = families.setdefault(name, _make_family(name, mark, values))
            for item, value in zip(items, values, strict=True):
                by = (getattr(item, mark.by),) if mark.by else ()
                _add(family, mark, value, *mark.labels.values(), *by)
            if not items and not family.labels:
                family.add(0)
        inner = chain.from_iterable(values) if field.is_tuple else filter(None, values)
        if field.inner is not None and ((structs := [*inner]) or field.is_tuple):
            _measure(field.inner, structs, prefix, families)


class _Field(NamedTuple):
    """Field of a status; `inner` is the type of its struct, if any, or of the structs in its tuple."""

    name: str
    mark: Measure | None
    inner: type[msgspec.Struct] | None
    is_tuple: bool


@cache
def _fields_of(kind: type[msgspec.Struct]) -> Sequence[_Field]:
    fields = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        mark = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Measure)), None)
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        is_tuple = get_origin(plain) is tuple
        inner = get_args(plain)[0] if is_tuple or get_origin(plain) is UnionType else plain
        is_struct = isinstance(inner, type) and issubclass(inner, msgspec.Struct)
        is_struct = is_struct and inner is not Distribution
        fields.append(_Field(name, mark, inner if is_struct else None, is_tuple))
    return fields


def _make_family(name: str, mark: Measure, values: Sequence[Any]) -> Family:
    labels = (*mark.labels, *filter(None, (mark.by, mark.label)))
    if mark.kind == "histogram":
        return Histogram(name, mark.help, values[0].limits, labels)
    return Family(name, mark.kind, mark.help, labels)


def _add(family: Family, mark: Measure, value: Any, *labels: str) -> None:
    match value:
        case Distribution() if isinstance(family, Histogram):
            counts = value.counts or [0] * (len(value.limits) + 1)
            family.add_all([*accumulate(counts)], value.total, *labels)
        case Enum():
            for member in type(value):
                family.add(member is value, *labels, str(member.value))
        case Mapping() if mark.label:
            for label, number in value.items():
                family.add(number, *labels, label)
        case int() | float():
            family.add(value, *labels)
        case None | msgspec.Struct():
            family.add(value is not None, *labels)
        case _:
            family.add(len(value), *labels)
