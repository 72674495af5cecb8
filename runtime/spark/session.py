"""A Spark session that is quiet, local by default, and finds this Python.

Spark's launcher speaks much on standard error, some of it before any logging is configured (the note about
incubator modules comes from the Java launcher itself). A user of the pipeline needs none of it, so the Java
process writes to a log file, which is named where a job fails and removed otherwise.

Settings that were measured, not guessed: batches of at most 50,000 rows are best for `mapInArrow`, and bounded
in octets too, because one message may carry a quarter of a megabyte; `arrow.compression.codec` stays `none`
(lz4 hangs). On a local master Spark talks to itself on 127.0.0.1, and its workers run this very interpreter
without the working directory on their path.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PythonException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from specwire.runtime.spark.errors import JobError

JAVA_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

ENDING_S = 30.0
"""Time for the Java process to end, in seconds."""

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
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    environment = _worker_environment(java, master)
    try:
        with _as_job_errors(log), _environment(environment), _java_process(conf, log) as context:
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


def find_java() -> Path | None:
    """Return the `java` that Spark will use, from JAVA_HOME or the path; None if there is none new enough."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        return None
    ran = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r'version "(\d+)', ran.stderr)
    return Path(found) if version and int(version.group(1)) >= JAVA_VERSION else None


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
        "SPARK_HOME": None,
        "PYSPARK_SUBMIT_ARGS": None,
        "JAVA_HOME": str(java.resolve().parent.parent),
    }


@contextmanager
def _java_process(conf: SparkConf, log: Path) -> Iterator[SparkContext]:
    """Give a context in a Java process that writes to `log`, and end that process; one that runs is used."""
    if SparkContext._gateway is not None:
        yield SparkContext(conf=conf)
        return
    launch: Callable[..., Any] = launch_gateway
    with log.open("wb") as output:
        gateway = launch(conf, {"stdout": output, "stderr": output})
    try:
        yield SparkContext(conf=conf, gateway=gateway)
    finally:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        gateway.shutdown()
        # Java ends when its standard input does.
        gateway.proc.stdin.close()
        gateway.proc.wait(ENDING_S)


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    _set_variables(changes)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


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
