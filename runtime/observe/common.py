"""Metrics and tables that the pages of all servers have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specwire import __version__
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.observe.families import Family, gauge
from specwire.runtime.observe.view import Column, Table, tabulate


def tabulate_taps(taps: Sequence[TapCounts]) -> tuple[Table, ...]:
    """Return a table of the taps, none without a capture."""
    if not taps:
        return ()
    columns = (
        Column("tap"),
        Column("recorded", "count"),
        Column("written", "count"),
        Column("dropped", "count"),
    )
    rows = tabulate(
        "Capture",
        columns,
        taps,
        lambda tap: (tap.tap, tap.recorded, tap.written, tap.dropped),
        empty="",
    )
    return (rows,)


def about(role: str, protocol: str, up_s: float) -> list[Family]:
    """Return the metrics that say which server this is and how long it runs."""
    info = Family(
        "specwire_info", "gauge", "What runs here; always 1.", labels=("role", "protocol", "version")
    )
    info.add(1, role, protocol, __version__)
    return [info, gauge("specwire_uptime_seconds", "Time since the server began.", up_s)]


def measure_taps(taps: Iterable[TapCounts]) -> list[Family]:
    """Return the metrics of the taps, none without a capture."""
    recorded = Family(
        "specwire_capture_messages_recorded", "counter", "Messages that the tap took.", ("tap",)
    )
    written = Family(
        "specwire_capture_messages_written", "counter", "Messages that are in finished segments.", ("tap",)
    )
    dropped = Family(
        "specwire_capture_messages_dropped", "counter", "Messages that will be in no segment.", ("tap",)
    )
    for tap in taps:
        recorded.add(tap.recorded, tap.tap)
        written.add(tap.written, tap.tap)
        dropped.add(tap.dropped, tap.tap)
    return [family for family in (recorded, written, dropped) if family.samples]
