"""Frames to messages on Spark: the second layer, one row for each captured message.

Each row keeps what the tap noted, and gets `_message` (the class name), `_error` with `_frames` where the
frames are not a message of the protocol, and one struct for each message type, null but for the row's own. The
decoding is the generated package's `columns.decode`, called by `mapInArrow` with Arrow batches; nothing else
of the message crosses to Python. `octets` is counted in Java before the frames go.

Column names are compared without regard to case, so a name of the tap that a message type also has (``Peer``)
gets a leading ``_``, which no name from a grammar begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from specwire.runtime.spark.protocols import Columns, load_columns, load_schemas
from specwire.runtime.spark.reading.capture import ENVELOPE

OCTETS = StructField("octets", LongType(), metadata={"comment": "octets of all frames", "unit": "octets"})
NOTED = StructType([*ENVELOPE, OCTETS])
"""The columns that come before the decoded ones."""


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """Decode captured messages (columns as of `read_capture`), every row as `protocol`; InputError if unknown."""
    decoded = load_schemas(protocol).DECODED
    noted = name_noted(decoded.fieldNames())
    schema = StructType([*noted, *decoded])

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = load_columns(protocol)
        return (decode_batch(batch, columns) for batch in batches)

    sources = [F.col(field.name) for field in ENVELOPE] + [_count_octets()]
    named = [source.alias(field.name) for source, field in zip(sources, noted, strict=True)]
    rows = frame.select(*named, F.col("frames").alias("_frames")).mapInArrow(decode_batches, schema)
    return rows.select(*(F.col(field.name).alias(field.name, metadata=field.metadata) for field in schema))


def decode_batch(batch: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
    """Put the decoded columns in the place of the last column, which holds the frames."""
    senders = batch.column(ENVELOPE.fieldNames().index("sender"))
    decoded = columns.decode(batch.column(batch.num_columns - 1), senders)
    names = [*batch.schema.names[:-1], *decoded.schema.names]
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], *decoded.columns], names=names)


def name_noted(taken: Iterable[str]) -> list[StructField]:
    """Return the columns of `NOTED` under names that differ from the taken ones, case aside."""
    folded = {name.casefold() for name in taken}
    return [_rename(field, f"_{field.name}") if field.name in folded else field for field in NOTED]


def _rename(field: StructField, name: str) -> StructField:
    return StructField(name, field.dataType, field.nullable, field.metadata)


def _count_octets() -> Column:
    def add(total: Column, frame: Column) -> Column:
        return total + F.octet_length(frame)

    none = F.lit(0).cast("long")
    return F.coalesce(F.aggregate("frames", none, add), none)  # a row without frames has no octets
