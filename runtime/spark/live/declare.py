"""Initial files of a Spark Declarative Pipeline over a capture, which the user edits.

    FOLDER/spark-pipeline.yml       settings
    FOLDER/transformations/*.py     streaming tables: decoded messages, and each message type
    FOLDER/transformations/*.sql    a first roll-up, as a materialized view
    FOLDER/run                      the command line, with the settings that it needs

Tables are streaming tables, so each run adds only what is new. The files belong to the user. They
read the capture with `stream_files` and not with `follow`: in Spark 4.3 every declarative pipeline
with a Python data source ends with an error after all work is done (SPARK-59135).
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.capture.names import SUFFIX
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.reading.paths import local_path_of
from specwire.runtime.spark.reading.source import SpecwireSource
from specwire.runtime.spark.reading.stream import SegmentPart
from specwire.runtime.spark.session.executors import literal_path

FILES = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"

RETENTION = "36500d"
"""Maximum age of files. Spark ignores older ones, by default after seven days."""

PATTERN = "{}[]*?\\"
"""Wildcard characters in the paths of Spark's file source, even if they are escaped."""

SPEC = """\
# Written by `specwire pipeline declare`; yours to change.
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.session.timeZone: UTC
  spark.sql.shuffle.partitions: "4"
"""

MODULE = '''\
"""Captured {protocol} messages, decoded: one streaming table for all, and one for each message type.

Written by `specwire pipeline declare`; yours to change. `spark` is there because spark-pipelines puts it there.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark import tables
from specwire.runtime.spark.live.declare import stream_files

CAPTURE = {capture!r}
PROTOCOL = {protocol!r}
TYPES = {types}

spark: SparkSession

captured = stream_files(spark, CAPTURE, PROTOCOL)
SCHEMA = captured.schema  # here, because the functions of a pipeline must not ask Spark for anything


@dp.table(name="{protocol}_messages", comment="captured messages, a struct for each type", partition_cols=["date"])
def messages() -> DataFrame:
    """What cannot be decoded, or read, is in the column `_error`."""
    ours = F.col("protocol").isNull() | (F.col("protocol") == PROTOCOL)
    # Partition columns have to be the last ones.
    return captured.where(ours).withColumn("date", F.to_date("ts"))


def typed_table(name: str) -> None:
    """Declare the table of one message type; `_errors` is what did not decode."""

    def rows() -> DataFrame:
        return tables(spark.readStream.table("{protocol}_messages"), PROTOCOL, schema=SCHEMA)[name]

    dp.table(name=f"{protocol}_{{name.strip('_').lower()}}", comment=f"{protocol} {{name}}")(rows)


for name in TYPES:
    typed_table(name)
'''

ROLL_UP = """\
-- Written by `specwire pipeline declare`; yours to change.
CREATE MATERIALIZED VIEW {protocol}_traffic AS
SELECT date_trunc('MINUTE', ts) AS minute, tap, sender, _message AS message,
       count(*) AS messages, sum(octets) AS octets, count(_error) AS undecoded
FROM {protocol}_messages
GROUP BY ALL
"""

RUN = """\
#!/bin/sh
# Written by `specwire pipeline declare`; yours to change. Arguments go to spark-pipelines: run, dry-run, --full-refresh-all …
set -eu
cd "$(dirname "$0")"
python={python}
export PYSPARK_PYTHON="${{PYSPARK_PYTHON:-$python}}"
# Spark's own search for itself ends at a space in the name of a folder.
find='import os, pyspark; print(os.path.dirname(pyspark.__file__))'
export SPARK_HOME="${{SPARK_HOME:-$("$PYSPARK_PYTHON" -c "$find")}}"
# Tables outlive a run only in a catalog that does: here a file of Derby; name your own metastore in its place.
exec "$(dirname "$(command -v "$PYSPARK_PYTHON")")/spark-pipelines" \\
    --conf spark.sql.catalogImplementation=hive \\
    --conf "spark.sql.warehouse.dir=file://$PWD/warehouse" \\
    --conf "spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:derby:;databaseName=$PWD/metastore;create=true" \\
    --conf "spark.driver.extraJavaOptions=-Dderby.system.home=$PWD" \\
    "${{@:-run}}"
"""


def declare(capture: Path, protocol: str, folder: Path) -> list[Path]:
    """Write the files of a declarative pipeline into a new folder; return their paths.

    Raises InputError if the protocol is unknown or the folder exists and is not empty.
    """
    types = [*load_schemas(protocol).SCHEMAS, "_errors"]
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: it exists and is not an empty folder; name another one")
    root = folder.resolve()
    texts = {
        "spark-pipeline.yml": SPEC.format(name=f"specwire-{protocol}", storage=(root / "storage").as_uri()),
        f"transformations/{protocol}_messages.py": MODULE.format(
            protocol=protocol, capture=str(capture.resolve()), types=types
        ),
        f"transformations/{protocol}_traffic.sql": ROLL_UP.format(protocol=protocol),
        "run": RUN.format(python=shlex.quote(sys.executable)),
    }
    try:
        return [_write(root / name, text) for name, text in texts.items()]
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be written: {error.strerror}") from error


def stream_files(spark: SparkSession, capture: str | Path, protocol: str, **options: str) -> DataFrame:
    """Return the decoded messages of a growing capture as a stream of Spark's file source.

    Each file is read once. This includes compacted segments, even if their messages were read
    before. A file that is not a complete segment becomes a row with an error. Raises InputError if
    Spark's file source would treat the folder's name as a pattern.
    """
    if odd := set(str(capture)) & set(PATTERN):
        raise InputError(
            f"{capture}: Spark's file source cannot read a folder with {' or '.join(sorted(odd))} in its name; "
            "`specwire pipeline watch` can"
        )
    source = SpecwireSource({"damaged": "quarantine", **options, "path": str(capture), "protocol": protocol})
    schema = source.schema()
    reader = source.reader(schema)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch.column(0).to_pylist():
                path = local_path_of(str(name))
                yield from reader.read_part(path, SegmentPart(path.name))

    files = spark.readStream.format("binaryFile").schema(FILES)
    files = files.option("pathGlobFilter", f"*{SUFFIX}").option("maxFileAge", RETENTION)
    rows = files.load(literal_path(Path(capture))).select("path").mapInArrow(read, schema)
    return rows.select(*(F.col(field.name).alias(field.name, metadata=field.metadata) for field in schema))


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if text.startswith("#!"):
        path.chmod(0o755)
    return path
