"""Inspection of one segment by its footer: taps, protocols and times of its messages.

Parquet stores the least and the greatest value of each column. A segment of a tap has one tap, one
protocol and as many rows as its `seq` spans, so only the footer is read. A file that another tool
wrote may differ. In that case the columns are read, but never `frames`.
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
"""Maximum days that the times of one segment may span without a count of its dates."""

DATES_MOST = 366
"""Maximum number of dates in one segment; each becomes a folder."""

_DAY_US = 86_400_000_000

PLACED = ("tap", "seq", "ts")
"""Columns without nulls: they identify a message and its place."""


class Holding(msgspec.Struct, frozen=True):
    """Messages of one tap in one segment.

    Attributes:
        stretches: the `seq` of these messages.
        rows: number of rows, including repeated ones.
    """

    tap: str
    stretches: tuple[Stretch, ...]
    rows: int


class Inspected(msgspec.Struct, frozen=True):
    """Content of a readable segment.

    Attributes:
        rows: number of messages.
        holdings: messages by tap.
        protocols: protocols that the rows state, with None if a row states none. Without rows, the
            protocol that the metadata states.
        tap: tap in the metadata. It may have dropped messages even if it has none in this segment.
        dropped: messages that this tap had dropped when it wrote the segment.
        edition: edition of the specification, as the tap stated it.
        first, last: least and greatest `ts` in microseconds since 1970; None without rows.
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
    """Least and greatest value of one column, and whether it has nulls."""

    least: object
    most: object
    nulls: bool


def inspect(path: Path) -> Inspected:
    """Return the content of a segment; CaptureError with the reason if the segment is unusable."""
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
    """Return the range from the column itself; a footer has none for a row group without values."""
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
    """Raise CaptureError if a file has too many dates.

    A clock may jump by years, but a file with messages at hundreds of dates is not a capture.
    """
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
    """Return rows of some columns; CaptureError if a text of the first column is not UTF-8."""
    try:
        return _read(path, names).to_pylist()
    except UnicodeDecodeError as error:
        raise CaptureError(f"{path}: a row's {names[0]!r} is not UTF-8: {error}") from error


def _micros(value: object) -> int:
    array = pa.array([value], pa.timestamp("us", tz="UTC"))
    micros = array.cast(pa.int64())[0].as_py()
    assert isinstance(micros, int)
    return micros
