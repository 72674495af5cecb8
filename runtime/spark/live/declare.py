"""A capture as a Spark Declarative Pipeline: files that `spark-pipelines` runs, to begin from and to change.

    FOLDER/spark-pipeline.yml          what Spark is told
    FOLDER/transformations/*.py        a streaming table of decoded messages, and one for each message type
    FOLDER/transformations/*.sql       a first roll-up, as a materialized view
    FOLDER/run                         the command line, with the settings that it takes

Tables are streaming tables, so each run takes in what is new. The files name no part of this module: they are the
user's from here on.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas

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

from specwire.runtime.spark import follow, tables

CAPTURE = {capture!r}
PROTOCOL = {protocol!r}
TYPES = {types}

spark: SparkSession

captured = follow(spark, CAPTURE, PROTOCOL)
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
    """Write the files of a declarative pipeline into a new folder; return them.

    Raises InputError for an unknown protocol or a folder that is there and not empty.
    """
    types = [*load_schemas(protocol).SCHEMAS, "_errors"]
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: it is there already, and its files are yours: name another folder")
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


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if text.startswith("#!"):
        path.chmod(0o755)
    return path
