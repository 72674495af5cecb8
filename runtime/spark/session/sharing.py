"""Check before a job that Spark sees the same files as this program.

This program reads a capture's footers, and executors read its rows. Executors write an output, and
this program moves it into place. So both folders must exist under the same paths for this program,
the driver (or the Connect server) and every executor: on a shared file system, or on one machine.
Otherwise Spark would write to other disks, and the output would be empty.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.capture import literal_path, local_path
from specwire.runtime.spark.session.failures import describe_failure
from specwire.runtime.spark.session.target import Target

_DEMAND = "this program, Spark's driver or Connect server, and every executor must see it under that path"


def check_shared(spark: SparkSession, target: Target, read: Sequence[Path], write: Path) -> None:
    """Raise InputError unless Spark sees the files to read and can write into the same folder.

    On a local master nothing is checked. `write` need not exist yet; its nearest existing parent is
    tried.
    """
    if target.shares_files:
        return
    if read:
        _check_read(spark, read[-1])
    _check_write(spark, next(path for path in (write, *write.resolve().parents) if path.is_dir()))


def _check_read(spark: SparkSession, file: Path) -> None:
    length = file.stat().st_size
    found = _ask(file, spark.read.format("binaryFile").load(literal_path(file)).select("length"))
    if found != [length]:
        raise InputError(f"{file}: Spark sees another file there; {_DEMAND}")


def _check_write(spark: SparkSession, folder: Path) -> None:
    token = secrets.token_hex(8)
    # With mode 0700, like the folders of an output, so that executors of another user fail here.
    probe = Path(tempfile.mkdtemp(prefix="specwire-probe-", dir=folder.resolve()))
    try:
        (probe / "from-here").write_text(token)
        if _ask(folder, spark.read.text(literal_path(probe / "from-here"))) != [token]:
            raise InputError(f"{folder}: Spark sees another folder there; {_DEMAND}")
        try:
            spark.range(0, 1, 1, 1).select(F.lit(token)).write.text(local_path(probe / "from-spark"))
        except PySparkException as error:
            raise InputError(f"{folder}: Spark cannot write there: {describe_failure(error)}") from error
        written = [path.read_text().strip() for path in (probe / "from-spark").glob("part-*")]
        if written != [token]:
            raise InputError(f"{folder}: what Spark writes there is not seen here; {_DEMAND}")
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def _ask(place: Path, frame: DataFrame) -> list[object]:
    try:
        return [row[0] for row in frame.collect()]
    except PySparkException as error:
        raise InputError(f"{place}: Spark does not see it ({describe_failure(error)}); {_DEMAND}") from error
