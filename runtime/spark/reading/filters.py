"""Filters of a query on the tap's columns, evaluated before messages are decoded.

Spark passes the filters of a query to a Python data source (``pushFilters``). Filters on the tap's
columns are evaluated here as one Arrow expression. Row groups are skipped by the minima and maxima
in a segment's footer. Rows that do not match are dropped before they are decoded. All other filters
are returned to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from specwire.runtime.capture.segments import COLUMNS, Segment

PUSHED = ("ts", "seq", "protocol", "tap", "conversation", "sender")
"""Columns of a segment whose filters are evaluated here."""

SETTING = "spark.sql.python.filterPushdown.enabled"
"""Spark setting that must be on: without it, Spark refuses to read a source with `pushFilters`."""

_compute: Any = pc
_FORMAT = ds.ParquetFileFormat()


class PushedFilters:
    """Conjunction of the filters that are evaluated here.

    Attributes:
        columns: the columns of a segment that the filters use.
    """

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self._expression: Any = None

    def take(self, filters: Iterable[Filter], named: Mapping[str, str]) -> list[Filter]:
        """Take the filters that can be evaluated here and return the others.

        `named` maps each decoded column that comes from the tap to its name in a segment.
        """
        left: list[Filter] = []
        for one in filters:
            expression = _translate(one, named)
            if expression is None:
                left.append(one)
                continue
            column = named[_column(one)]
            self.columns = tuple(dict.fromkeys([*self.columns, column]))
            self._expression = expression if self._expression is None else self._expression & expression
        return left

    def row_groups(self, segment: Segment) -> list[tuple[int, int]]:
        """Return number and size in octets of each row group that may have matching messages."""
        fragment: Any = _FORMAT.make_fragment(str(segment.path), fs.LocalFileSystem())
        if self._expression is not None:
            fragment = fragment.subset(self._expression, schema=COLUMNS)
        return [(group.id, group.total_byte_size) for group in fragment.row_groups]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the matching messages of a batch."""
        return batch if self._expression is None else batch.filter(self._expression)

    @property
    def takes_nothing(self) -> bool:
        """Whether the filters match a row without values, as it is returned for a damaged file."""
        empty = pa.RecordBatch.from_pylist([{}], schema=COLUMNS)
        return self.apply(empty).num_rows == 1


def _column(one: Filter) -> str:
    child: Any = one.child if isinstance(one, Not) else one
    return str(child.attribute[0])


def _translate(one: Filter, named: Mapping[str, str]) -> Any:
    """Return the Arrow expression of a filter; None if it cannot be evaluated here."""
    if isinstance(one, Not):
        inner = _translate(one.child, named)
        if inner is None or not isinstance(one.child, In):
            return None if inner is None else ~inner
        return ~inner & _compute.field(named[_column(one)]).is_valid()  # Arrow's `isin` is false for null
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    column = named.get(attribute[0]) if len(attribute) == 1 else None
    if column not in PUSHED:
        return None
    field = _compute.field(column)
    match one:
        case IsNull():
            return field.is_null()
        case IsNotNull():
            return field.is_valid()
        case In(value=values):
            scalars = [_scalar(column, value) for value in values]
            if None in scalars or not scalars:
                return None
            return field.isin(pa.array([s.as_py() for s in scalars if s is not None], scalars[0].type))
        case EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
            scalar = _scalar(column, one.value)
            return None if scalar is None else _compare(one, field, scalar)
    return None


def _compare(one: Filter, field: Any, scalar: Any) -> Any:
    match one:
        case EqualTo():
            return field == scalar
        case GreaterThan():
            return field > scalar
        case GreaterThanOrEqual():
            return field >= scalar
        case LessThan():
            return field < scalar
    return field <= scalar


def _scalar(column: str, value: object) -> Any:
    """Return a literal in the type of its column; None if Spark compares it in another type."""
    kind = COLUMNS.field(column).type
    if pa.types.is_timestamp(kind):
        fits = isinstance(value, datetime) and value.tzinfo is not None
    elif pa.types.is_integer(kind):
        fits = type(value) is int and -(1 << 63) <= value < 1 << 63
    else:
        fits = isinstance(value, str)
    return pa.scalar(value, kind) if fits else None
