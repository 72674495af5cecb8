"""What a Python worker gives back for messages: what it alone knows, and nothing that Java has already.

A row is one message, so of the structs of a protocol all but one are null in it, and Arrow spends as much on a field
that is null as on one that is there. So the fields of different messages share places: the first BIGINT of each
message is in one column, and so on, and Java makes the struct of the row's message of them. The raw frames of faulty
rows stay in Java. The octets of all frames are counted by the worker, which reads them off Arrow's positions; Java
would join the frames to know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, LongType, StructField, StructType

from specwire.generated.columns.arrow import nulls_of, numbers_in
from specwire.runtime.spark.decoding.noted import FRAMES

Arrays: TypeAlias = "pa.Array[Any]"

OCTETS = StructField("_octets", LongType())
"""The octets of all frames of a row; no name from a grammar begins so."""


MOST_FIELDS = 40
"""A protocol with more fields keeps its structs: HotSpot compiles no method of more than 8000 octets, and the one that
makes the structs grows with each field."""


@dataclass(frozen=True)
class Returned:
    """What is given back for rows of `decoded`, the package's columns.

    Attributes:
        type: the struct that a row is.
        places: for each message whose fields share places, where each of its fields is.
    """

    decoded: StructType
    type: StructType
    places: Mapping[str, Mapping[str, str]]

    def pack(self, batch: pa.RecordBatch, frames: Arrays) -> Arrays:
        """Return decoded rows and the octets of their `frames`."""
        found: dict[str, list[Arrays]] = {OCTETS.name: [count_octets(frames)]}
        for field in self.decoded:
            column: Any = batch.column(field.name)
            places = self.places.get(field.name)
            if places is None:
                found[field.name] = [column]
            elif column.null_count < len(column):
                for place, values in zip(places.values(), column.flatten(), strict=True):
                    found.setdefault(place, []).append(values)
        marked: Any = to_arrow_type(self.type, timezone="UTC")
        # The casts move no octet: they say what each field means in the way that Spark reads it.
        columns = [_one(found.get(field.name, []), field.type, len(batch)) for field in marked]
        return pa.StructArray.from_arrays(columns, fields=list(marked))

    def unpack(self, found: Column) -> Iterator[Column]:
        """Yield the columns of `decoded` from what was given back, beside the column of raw frames."""
        for field in self.decoded:
            if field.name == FRAMES:
                column = F.when(found["_error"].isNotNull(), F.col(FRAMES))
            elif field.name in self.places:
                column = _struct(found, field, self.places[field.name])
            else:
                column = found[field.name]
            yield column.alias(field.name, metadata=field.metadata)


def returned_for(decoded: StructType) -> Returned:
    """Return what a worker gives back for rows of `decoded`, which has the raw frames as well."""
    messages = [field for field in decoded if not field.name.startswith("_")]
    own = [OCTETS, *(f for f in decoded if f.name != FRAMES and f not in messages)]
    if sum(len(_fields(message)) for message in messages) > MOST_FIELDS:
        return Returned(decoded, StructType([*own, *messages]), {})
    shared: dict[str, DataType] = {}
    places: dict[str, dict[str, str]] = {}
    for message in messages:
        counts: Counter[str] = Counter()
        places[message.name] = {}
        for field in _fields(message):
            kind = field.dataType.json()
            name = f"_{kind}_{counts[kind]}"
            counts[kind] += 1
            shared[name] = field.dataType
            places[message.name][field.name] = name
    short = {name: f"_{number}" for number, name in enumerate(shared)}
    return Returned(
        decoded,
        StructType([*own, *(StructField(short[name], type) for name, type in shared.items())]),
        {
            message: {field: short[place] for field, place in fields.items()}
            for message, fields in places.items()
        },
    )


def count_octets(frames: Arrays) -> Arrays:
    """Return the octets of all frames of each row, of lists as Spark sends them: what is null has no octets."""
    lists: Any = frames
    values = lists.values
    if not len(values):
        return pa.array(np.zeros(len(frames), np.int64))
    octets = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    ends = numbers_in(values.buffers()[1], octets)[values.offset :]
    found: Arrays = pa.array(np.diff(ends[lists.offsets.to_numpy()]).astype(np.int64))
    return found


def _fields(message: StructField) -> StructType:
    assert isinstance(message.dataType, StructType)
    return message.dataType


def _struct(found: Column, message: StructField, places: Mapping[str, str]) -> Column:
    """The struct of a message, of what is in the places of its fields."""
    fields = (
        found[places[field.name]].alias(field.name, metadata=field.metadata) for field in _fields(message)
    )
    return F.when(found["_message"] == message.name, F.struct(*fields))


def _one(columns: Sequence[Arrays], type: Any, count: int) -> Arrays:
    """Columns of which at most one has a value in a row, as one."""
    if not columns:
        return nulls_of(type, count)
    coalesce: Any = pc.coalesce
    found: Arrays = coalesce(*columns) if len(columns) > 1 else columns[0]
    return found.cast(type)
