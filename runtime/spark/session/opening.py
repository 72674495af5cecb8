"""A Spark session that is quiet, local by default, and finds this Python.

A user of the pipeline needs nothing of what Spark says while it works. The Java process writes to a log file
(`specwire.runtime.spark.session.java`), which is named where a job fails and removed otherwise.

Settings that were measured, not guessed: batches of at most 50,000 rows are best for `mapInArrow`, and bounded
in octets too, because one message may carry a quarter of a megabyte; `arrow.compression.codec` stays `none`
(lz4 hangs). On a local master Spark talks to itself on 127.0.0.1, and its workers run this very interpreter
without the working directory on their path.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkConf
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.session.java import (
    JAVA_VERSION,
    find_java,
    java_process,
    quiet_driver,
)

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "specwire",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}

LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "4",
}


@contextmanager
def open_session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Give a session for the time of a block, then stop it.

    `settings` override those of this module. Raises JobError where Java is missing or Spark does not start,
    and turns what Spark raises inside the block into a JobError that names the log.
    """
    java = find_java()
    if java is None:
        raise JobError(
            f"Spark needs Java {JAVA_VERSION} or newer: install it (on Debian openjdk-17-jre-headless) "
            "or set JAVA_HOME"
        )
    descriptor, name = tempfile.mkstemp(prefix="specwire-spark-", suffix=".log")
    os.close(descriptor)
    log = Path(name)
    conf = _configure(master, settings or {})
    environment = _worker_environment(java, master)
    try:
        with quiet_driver(), _as_job_errors(log), java_process(conf, environment, log) as context:
            session = SparkSession(context)
            try:
                # Here too, because Spark's errors can be read only while Java runs.
                with _as_job_errors(log):
                    yield session
            finally:
                with suppress(ConnectionError):
                    session.stop()
    except JobError:
        raise
    except BaseException:
        log.unlink(missing_ok=True)
        raise
    log.unlink(missing_ok=True)


@contextmanager
def _as_job_errors(log: Path) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise JobError(f"{describe_failure(error)} (Spark's log: {log})") from error


def _configure(master: str, settings: Mapping[str, str]) -> SparkConf:
    local = LOCAL_SETTINGS if _is_local(master) else {}
    conf = SparkConf(loadDefaults=False)
    conf.setAll([*SETTINGS.items(), *local.items(), *settings.items(), ("spark.master", master)])
    return conf


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _worker_environment(java: Path, master: str) -> dict[str, str | None]:
    """Return the variables that the Java process and through it the workers must have; None takes one away."""
    if not _is_local(master):
        return {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",
        # Or Spark asks the resolver for this machine's own name, which it need not know.
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": None,
        "PYSPARK_SUBMIT_ARGS": None,
        "JAVA_HOME": str(java.resolve().parent.parent),
    }


def describe_failure(error: Exception) -> str:
    """Return the one line of what Spark raised that says what happened.

    A failed worker's line is the last of its traceback; Java's is the first that names an exception.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, PythonException):
        lines = [line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)] or lines
    elif isinstance(error, PySparkException):
        pass
    elif java := [line for line in lines if line.startswith(": ")]:
        lines = [re.sub(r"^: (?:[\w$]+\.)+\w+: ", "", java[0])]
    else:
        lines = [f"Spark's Java process does not answer: {lines[0]}"]
    return re.sub(r"\s*SQLSTATE: \w+$", "", lines[0]).rstrip(" .")
