"""The Java process that a Spark driver needs: found, started with its words kept, and ended.

Spark's launcher speaks much on standard error, some of it before any logging is configured (the note about
incubator modules comes from the Java launcher itself). So the process writes to a log file from the start.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger

JAVA_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

ENDING_S = 30.0
"""Time for the Java process to end, in seconds."""


def find_java() -> Path | None:
    """Return the `java` that Spark will use, from JAVA_HOME or the path; None if there is none new enough."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        return None
    ran = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r'version "(\d+)', ran.stderr)
    return Path(found) if version and int(version.group(1)) >= JAVA_VERSION else None


@contextmanager
def java_process(conf: SparkConf, environment: Mapping[str, str | None], log: Path) -> Iterator[SparkContext]:
    """Give a context in a Java process that writes to `log`, and end that process; one that runs is used.

    `environment` is changed for the start alone (see `changed_environment`); the workers inherit it from Java.
    """
    if SparkContext._gateway is not None:
        yield SparkContext(conf=conf)
        return
    launch: Callable[..., Any] = launch_gateway
    with changed_environment(environment), log.open("wb") as output:
        gateway = launch(conf, {"stdout": output, "stderr": output})
    try:
        with changed_environment(environment):
            context = SparkContext(conf=conf, gateway=gateway)
        yield context
    finally:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        gateway.shutdown()
        # Java ends when its standard input does.
        gateway.proc.stdin.close()
        gateway.proc.wait(ENDING_S)


@contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for the time of a block; None takes one away."""
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


@contextmanager
def quiet_driver() -> Iterator[None]:
    """Keep what Spark's Python side logs of an error from the screen; the error itself says it all.

    py4j logs to the root logger, PySpark to one of its own, both with a trace and on standard error.
    """
    root, queries = logging.getLogger(), PySparkLogger.getLogger("SQLQueryContextLogger")
    level = queries.level
    queries.setLevel(logging.CRITICAL + 1)
    root.addFilter(_is_not_py4j)
    try:
        yield
    finally:
        root.removeFilter(_is_not_py4j)
        queries.setLevel(level)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts
