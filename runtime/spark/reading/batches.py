"""Decoder of batches of captured messages, without a Spark session.

The readers of the data source use it. The result is that of
`specwire.runtime.spark.decoding.decode`, column for column and row for row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from specwire.runtime.spark.decoding.arrow import count_octets
from specwire.runtime.spark.decoding.options import Mode, Options
from specwire.runtime.spark.decoding.shape import (
    INPUT_FILE,
    NOTED,
    RECORD_FRAMES,
    RECORD_ID,
    name_noted,
    schema_of,
)
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_columns, load_schemas

Arrays: TypeAlias = "pa.Array[Any]"
"""One array of any type."""

_compute: Any = pc


class Reader:
    """Decoder of batches of captured messages, with the options of one reading."""

    def __init__(self, protocol: str, asked: Options) -> None:
        self.asked = asked
        self.schema = schema_of(protocol, asked)
        self.arrow = to_arrow_schema(self.schema, timezone="UTC")
        self.columns = load_columns(protocol)
        named = name_noted(load_schemas(protocol).DECODED.fieldNames())
        self.noted = {stored.name: source.name for stored, source in zip(named, NOTED, strict=True)}
        """The tap's name of each noted column."""

    def needed(self, filtered: Sequence[str] = ()) -> list[str]:
        """Return the columns of a segment to read, including those that filters use."""
        found = {self.noted.get(name, name) for name in self.schema.fieldNames()}
        if self.asked.record_id or self.asked.mode is Mode.FAILFAST:
            found |= {"tap", "seq"}
        found.update(filtered)
        known = [field.name for field in NOTED if field.name in found and field.name != "octets"]
        return [*dict.fromkeys([*known, "sender"]), "frames"]

    def decode(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        """Decode a batch; raise InputError under FAILFAST if a row does not decode."""
        frames = batch.column("frames")
        decoded = self.columns.decode(frames, batch.column("sender"))
        if self.asked.mode is Mode.FAILFAST:
            _check(batch, decoded.column("_error"), file)
        made: Mapping[str, Callable[[], Arrays]] = {
            RECORD_ID.name: lambda: _join(batch),
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
        """Drop the rows that were not asked for; copy nothing if all were."""
        faulty = decoded.column("_error").is_valid()
        if self.asked.message:
            wanted = _compute.is_in(decoded.column("_message"), pa.array(self.asked.message, pa.string()))
            kept = wanted if self.asked.mode is Mode.DROPMALFORMED else _compute.or_(faulty, wanted)
        elif self.asked.mode is Mode.DROPMALFORMED:
            kept = _compute.invert(faulty)
        else:
            return found
        return found if kept.true_count == len(kept) else found.filter(kept)


def quarantined(reader: Reader, kind: str, reason: str, file: str) -> pa.RecordBatch:
    """Return a row without a message; its `_error` describes what cannot be read in a file."""
    row: dict[str, object] = dict.fromkeys(reader.schema.fieldNames())
    row["_error"] = {"kind": kind, "text": reason}
    required: Mapping[str, object] = {"octets": 0, "_octets": 0, RECORD_ID.name: "", INPUT_FILE.name: file}
    row |= {name: value for name, value in required.items() if name in row}
    return pa.RecordBatch.from_pylist([row], schema=reader.arrow)


def _check(batch: pa.RecordBatch, errors: Arrays, file: str) -> None:
    faulty = np.flatnonzero(errors.is_valid().to_numpy(zero_copy_only=False))
    if not len(faulty):
        return
    row = int(faulty[0])
    error = errors[row].as_py()
    tap, seq = (batch.column(name)[row].as_py() for name in ("tap", "seq"))
    frame = "" if error["frame"] is None else f", frame {error['frame']}"
    place = f"message {'?' if seq is None else seq} of tap {'?' if tap is None else tap}"
    raise InputError(f"{file}: {place}{frame}: {error['text']}")


def _join(batch: pa.RecordBatch) -> Arrays:
    parts = [batch.column("tap"), batch.column("seq").cast(pa.string())]
    found: Arrays = _compute.binary_join_element_wise(*parts, "/", null_handling="skip")
    return found


def _pruned(array: Arrays, field: StructField) -> Arrays:
    """Return a struct with only the fields that were asked for."""
    if not isinstance(field.dataType, StructType) or len(field.dataType) == array.type.num_fields:
        return array
    names = field.dataType.fieldNames()
    kept: Sequence[Arrays] = [_compute.struct_field(array, name) for name in names]
    return pa.StructArray.from_arrays(kept, names=names, mask=array.is_null())
