"""What one segment holds, read from its footer: which taps' messages, which protocols, which times.

Parquet keeps the least and the greatest value of each column; a tap's segment has one tap, one protocol and as
many rows as its `seq` spans, and then nothing but the footer is read. A file that another tool wrote may
differ; then the columns themselves are read, `frames` never.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import read_footer
from specwire.runtime.spark.pipeline.ledger import runs_of
from specwire.runtime.spark.reading.position import Stretch

DATES_WIDE = 366
"""Days that the times of one segment may span before its dates are counted."""

DATES_MOST = 366
"""Dates that one segment may have; each becomes a folder."""

_DAY_US = 86_400_000_000

PLACED = ("tap", "seq", "ts")
"""What a message must have, or it cannot be told from others."""


class Holding(msgspec.Struct, frozen=True):
    """Messages of one tap in one segment.

    Attributes:
        stretches: their `seq`.
        rows: how many rows there are, repeated ones included.
    """

    tap: str
    stretches: tuple[Stretch, ...]
    rows: int


class Inspected(msgspec.Struct, frozen=True):
    """A segment that can be read.

    Attributes:
        rows: messages in it.
        holdings: the same by tap.
        protocols: what its rows state, None among them where one states nothing; what its metadata states where
            it has no rows.
        tap: the tap in its metadata, which may have dropped messages without having any here.
        dropped: messages that this tap had dropped when it wrote the segment.
        edition: of the specification, as the tap stated it.
        first, last: the least and the greatest `ts`, microseconds since 1970; None without rows.
    """

    rows: int
    holdings: tuple[Holding, ...]
    protocols: tuple[str | None, ...]
    tap: str | None
    dropped: int
    edition: str
    first: int | None
    last: int | None


class _Range(msgspec.Struct, frozen=True):
    """The extremes of one column, and whether a row has none."""

    least: object
    most: object
    nulls: bool


def inspect(path: Path) -> Inspected:
    """Return what a segment holds; CaptureError with the reason where it cannot be read or placed."""
    segment = read_footer(path)
    source = segment.source
    holdings: tuple[Holding, ...] = ()
    protocols: tuple[str | None, ...] = (source.protocol,) if source else ()
    first = last = None
    if segment.rows:
        footer = pq.read_metadata(path)
        ranges = {name: _find_range(path, footer, name) for name in (*PLACED, "protocol")}
        for name in PLACED:
            if ranges[name].nulls:
                raise CaptureError(f"{path}: a row has no {name!r}, so its messages cannot be told apart")
        holdings = _find_holdings(path, segment.rows, ranges)
        protocols = _find_protocols(path, ranges["protocol"])
        first, last = _micros(ranges["ts"].least), _micros(ranges["ts"].most)
        if last - first > DATES_WIDE * _DAY_US:
            _check_dates(path)
    return Inspected(
        rows=segment.rows,
        holdings=holdings,
        protocols=protocols,
        tap=source.tap if source else None,
        dropped=segment.dropped,
        edition=source.edition if source else "",
        first=first,
        last=last,
    )


def _find_range(path: Path, footer: pq.FileMetaData, name: str) -> _Range:
    at = footer.schema.to_arrow_schema().get_field_index(name)
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    found: list[tuple[Any, Any, int]] = []
    for group in groups:
        part = group.column(at).statistics
        if part is None or not part.has_min_max or part.null_count is None:
            return _range_of(path, name)
        try:
            found.append((part.min, part.max, part.null_count))
        except (OverflowError, ValueError) as error:
            raise CaptureError(f"{path}: a row's {name!r} is no value that there can be: {error}") from error
    least, most, nulls = zip(*found, strict=True)
    return _Range(min(least), max(most), any(nulls))


def _range_of(path: Path, name: str) -> _Range:
    """Read the column, because the footer does not say; of a group without values it says nothing."""
    column = _read(path, [name])[name]
    ends = pc.min_max(column)
    try:
        return _Range(ends["min"].as_py(), ends["max"].as_py(), column.null_count > 0)
    except (OverflowError, ValueError) as error:
        raise CaptureError(f"{path}: a row's {name!r} is no value that there can be: {error}") from error


def _find_holdings(path: Path, rows: int, ranges: dict[str, _Range]) -> tuple[Holding, ...]:
    tap, seq = ranges["tap"], ranges["seq"]
    assert isinstance(seq.least, int) and isinstance(seq.most, int)
    if tap.least == tap.most and seq.most - seq.least + 1 == rows:
        return (Holding(str(tap.least), ((seq.least, seq.most),), rows),)
    by_tap: dict[str, list[int]] = {}
    for row in _values(path, ["tap", "seq"]):
        by_tap.setdefault(row["tap"], []).append(row["seq"])
    return tuple(Holding(name, runs_of(seqs), len(seqs)) for name, seqs in sorted(by_tap.items()))


def _find_protocols(path: Path, found: _Range) -> tuple[str | None, ...]:
    if not found.nulls and found.least == found.most:
        return (str(found.least),)
    return _sorted({row["protocol"] for row in _values(path, ["protocol"])})


def _check_dates(path: Path) -> None:
    """A clock may jump by years; a file whose messages lie all over the calendar is no capture."""
    times = _read(path, ["ts"])["ts"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    dates = len({time // _DAY_US for time in times if time is not None})
    if dates > DATES_MOST:
        raise CaptureError(
            f"{path}: its messages have {dates} dates, more than the {DATES_MOST} that are read"
        )


def _sorted(names: Iterable[str | None]) -> tuple[str | None, ...]:
    return tuple(sorted(names, key=lambda name: (name is not None, name)))


def _read(path: Path, names: list[str]) -> pa.Table:
    try:
        return pq.read_table(path, columns=names)
    except (OSError, pa.ArrowException) as error:
        raise CaptureError(f"{path}: the segment's columns cannot be read: {error}") from error


def _values(path: Path, names: list[str]) -> list[dict[str, Any]]:
    """Rows of some columns; CaptureError where the first, a text, is not UTF-8 in one."""
    try:
        return _read(path, names).to_pylist()
    except UnicodeDecodeError as error:
        raise CaptureError(f"{path}: a row's {names[0]!r} is not UTF-8: {error}") from error


def _micros(value: object) -> int:
    array = pa.array([value], pa.timestamp("us", tz="UTC"))
    micros = array.cast(pa.int64())[0].as_py()
    assert isinstance(micros, int)
    return micros
