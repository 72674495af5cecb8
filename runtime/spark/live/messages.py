"""A growing capture as a stream of decoded messages, by Spark's own file source, for pipelines of the user's own.

The stream is one of file names, and a worker reads and decodes each segment: so one that was cut off is a row
with an error, as in ``spark.read.format("specwire")``, and does not end the stream, which it would were Spark to
read the Parquet. `specwire.runtime.spark.live.source` gives a tap's segments in their order and never passes one over;
but a Python data source ends a declarative pipeline with an error after all is done (SPARK-59135, in 4.3.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.capture.names import SUFFIX
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.capture import literal_path
from specwire.runtime.spark.reading.source import SpecwireSource

FILES = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"

RETENTION = "36500d"
"""Spark passes over files that are older than this in silence, and its own limit is seven days."""


PATTERN = "{}[]*?\\"
"""What stands for other characters in the paths of Spark's file stream, escaped or not."""


def follow(spark: SparkSession, capture: str | Path, protocol: str, **options: str) -> DataFrame:
    """Return the messages of a growing capture as a stream, decoded, in the columns of `decode`.

    Everything in it is read as `protocol`. `options` are those of the format ``specwire``. A file that is no whole
    segment is a row without a message whose `_error` is of kind ``segment``. A merged segment (`specwire capture
    compact`) is a file like any other: it gives its messages, whether or not they came before.

    InputError for a folder whose name Spark's file stream would take for a pattern, and read more than once.
    """
    if odd := set(str(capture)) & set(PATTERN):
        raise InputError(
            f"{capture}: a stream of files cannot follow a folder with {' or '.join(sorted(odd))} in its name; "
            "`specwire pipeline watch` can"
        )
    asked = {"damaged": "quarantine", **options, "path": str(capture), "protocol": protocol}
    source = SpecwireSource(asked)
    schema = source.schema()
    reader = source.reader(schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from reader.read_segment(local_file(str(path)))

    files = spark.readStream.format("binaryFile").schema(FILES)
    files = files.option("pathGlobFilter", f"*{SUFFIX}").option("maxFileAge", RETENTION)
    rows = files.load(literal_path(Path(capture))).select("path").mapInArrow(read, schema)
    return rows.select(*(F.col(field.name).alias(field.name, metadata=field.metadata) for field in schema))


def local_file(path: str) -> Path:
    """Return the file that Spark names by an address without escapes."""
    return Path("/" + path.removeprefix("file:").lstrip("/"))
