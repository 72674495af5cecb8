"""What the pages of all servers have."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.observe.view import Column, Table, tabulate


def captured(taps: Sequence[TapCounts]) -> tuple[Table, ...]:
    """Return a table of the taps, none where nothing is captured."""
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
