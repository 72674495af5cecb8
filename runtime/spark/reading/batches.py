"""Filtering and decoding of batches of captured messages, without a Spark session.

The readers of the data source use it. The result is that of
`specwire.runtime.spark.decoding.decode`, column for column and row for row.

Spark passes the filters of a query to a Python data source (``pushFilters``). Filters on the tap's
columns are evaluated here as one Arrow expression. Row groups are skipped by the minima and maxima
in a segment's footer. Rows that do not match are dropped before they are decoded. All other filters
are returned to Spark.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs
from pyspark.sql import datasource
from pyspark.sql.datasource import Filter, In, IsNotNull, IsNull, Not
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from specwire.runtime.capture.segments import COLUMNS, Segment
from specwire.runtime.spark.decoding.backends import count_octets
from specwire.runtime.spark.decoding.options import (
    INPUT_FILE,
    NOTED,
    RECORD_FRAMES,
    RECORD_ID,
    Mode,
    Options,
    name_noted,
    schema_of,
)
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_columns, load_schemas

Arrays: TypeAlias = "pa.Array[Any]"
"""One array of any type."""

PUSHED = ("ts", "seq", "protocol", "tap", "conversation", "sender")
"""Columns of a segment whose filters are evaluated here."""

_COMPARISONS: Mapping[type[Filter], Callable[[Any, Any], Any]] = {
    datasource.EqualTo: operator.eq,
    datasource.GreaterThan: operator.gt,
    datasource.GreaterThanOrEqual: operator.ge,
    datasource.LessThan: operator.lt,
    datasource.LessThanOrEqual: operator.le,
}

_compute: Any = pc
_FORMAT = ds.ParquetFileFormat()


class BatchDecoder:
    """Decoder of batches of captured messages, with the options of `decode`."""

    def __init__(self, protocol: str, options: Options) -> None:
        self.options = options
        self.schema = schema_of(protocol, options)
        self.arrow = to_arrow_schema(self.schema, timezone="UTC")
        self.columns = load_columns(protocol)
        named = name_noted(load_schemas(protocol).DECODED.fieldNames())
        self.noted = {stored.name: source.name for stored, source in zip(named, NOTED, strict=True)}
        """The tap's name of each noted column."""

    def needed(self, filtered: Sequence[str]) -> list[str]:
        """Return the columns of a segment to read, including those that filters use."""
        found = {self.noted.get(name, name) for name in self.schema.fieldNames()}
        found.update(filtered, ["sender", "frames"])
        if self.options.record_id or self.options.mode is Mode.FAILFAST:
            found |= {"tap", "seq"}
        return [name for name in COLUMNS.names if name in found]

    def decode(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        """Decode a batch; raise InputError under FAILFAST if a row does not decode."""
        frames = batch.column("frames")
        decoded = self.columns.decode(frames, batch.column("sender"))
        if self.options.mode is Mode.FAILFAST:
            _fail_at_first(batch, decoded.column("_error"), file)
        made: Mapping[str, Callable[[], Arrays]] = {
            RECORD_ID.name: lambda: _record_ids(batch),
            RECORD_FRAMES.name: lambda: frames,
            INPUT_FILE.name: lambda: pa.repeat(file, batch.num_rows),
        }
        arrays: list[Arrays] = []
        for field in self.schema:
            source = self.noted.get(field.name)
            if source == "octets":
                arrays.append(count_octets(frames))
            elif source:
                arrays.append(batch.column(source))
            elif field.name in made:
                arrays.append(made[field.name]())
            else:
                arrays.append(_pruned(decoded.column(field.name), field))
        typed = [array.cast(field.type) for array, field in zip(arrays, self.arrow, strict=True)]
        found = pa.RecordBatch.from_arrays(typed, schema=self.arrow)
        return self._sift(found, decoded)

    def _sift(self, found: pa.RecordBatch, decoded: pa.RecordBatch) -> pa.RecordBatch:
        """Drop rows of other messages and, by mode, of errors; copy nothing if all are kept."""
        faulty = decoded.column("_error").is_valid()
        if self.options.message:
            wanted = _compute.is_in(decoded.column("_message"), pa.array(self.options.message, pa.string()))
            kept = wanted if self.options.mode is Mode.DROPMALFORMED else _compute.or_(faulty, wanted)
        elif self.options.mode is Mode.DROPMALFORMED:
            kept = _compute.invert(faulty)
        else:
            return found
        return found if kept.true_count == len(kept) else found.filter(kept)

    def error_row(self, kind: str, reason: str, file: str) -> pa.RecordBatch:
        """Return a row without a message, whose `_error` has the reason."""
        row = {"octets": 0, "_octets": 0, RECORD_ID.name: "", INPUT_FILE.name: file}
        error = {"_error": {"kind": kind, "text": reason}}
        return pa.RecordBatch.from_pylist([row | error], schema=self.arrow)


def _fail_at_first(batch: pa.RecordBatch, errors: Arrays, file: str) -> None:
    faulty = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
    if not len(faulty):
        return
    row = int(faulty[0])
    error = errors[row].as_py()
    tap, seq = (batch.column(name)[row].as_py() for name in ("tap", "seq"))
    frame = "" if error["frame"] is None else f", frame {error['frame']}"
    place = f"message {'?' if seq is None else seq} of tap {'?' if tap is None else tap}"
    raise InputError(f"{file}: {place}{frame}: {error['text']}")


def _record_ids(batch: pa.RecordBatch) -> Arrays:
    parts = [batch.column("tap"), batch.column("seq").cast(pa.string())]
    found: Arrays = _compute.binary_join_element_wise(*parts, "/", null_handling="skip")
    return found


def _pruned(array: Arrays, field: StructField) -> Arrays:
    """Return a struct with only the fields in `field`."""
    if not isinstance(field.dataType, StructType) or len(field.dataType) == array.type.num_fields:
        return array
    names = field.dataType.fieldNames()
    kept: Sequence[Arrays] = [_compute.struct_field(array, name) for name in names]
    return pa.StructArray.from_arrays(kept, names=names, mask=array.is_null())


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
            found = _translate(one, named)
            if found is None:
                left.append(one)
                continue
            column, expression = found
            self.columns += (column,)
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
    def match_nulls(self) -> bool:
        """Whether the filters match a row without values, such as that of a damaged file."""
        empty = pa.RecordBatch.from_pylist([{}], schema=COLUMNS)
        return self.apply(empty).num_rows == 1


def _translate(one: Filter, named: Mapping[str, str]) -> tuple[str, Any] | None:
    """Return the column and the Arrow expression of a filter; None if it is not evaluated here."""
    if isinstance(one, Not):
        found = _translate(one.child, named)
        if found is None:
            return None
        column, expression = found
        # Arrow's `isin` is false for null.
        valid = _compute.field(column).is_valid()
        return column, ~expression & valid if isinstance(one.child, In) else ~expression
    attribute: tuple[str, ...] = getattr(one, "attribute", ())
    name = named.get(attribute[0]) if len(attribute) == 1 else None
    if name not in PUSHED:
        return None
    field = _compute.field(name)
    if isinstance(one, IsNull):
        return name, field.is_null()
    if isinstance(one, IsNotNull):
        return name, field.is_valid()
    if isinstance(one, In):
        scalars = [_scalar(name, value) for value in one.value]
        if None in scalars or not scalars:
            return None
        return name, field.isin(pa.array([scalar.as_py() for scalar in scalars], scalars[0].type))
    compare = _COMPARISONS.get(type(one))
    scalar = None if compare is None else _scalar(name, getattr(one, "value", None))
    return None if compare is None or scalar is None else (name, compare(field, scalar))


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
