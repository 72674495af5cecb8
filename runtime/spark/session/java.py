"""Java process of a Spark driver: its start, with output to a log file, and its end.

Spark's launcher writes much to standard error, in part before logging is configured (the Java
launcher writes the note about incubator modules). So the process writes to a log file from the
start.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger

from specwire.runtime.spark.session.failures import as_job_errors

ENDING_S = 30.0
"""Timeout for the end of the Java process, in seconds."""


@contextmanager
def java_process(
    conf: SparkConf, environment: Mapping[str, str | None], log: Path, folder: Path | None = None
) -> Iterator[SparkContext]:
    """Yield a context in a Java process that writes to `log`; end the process after the block.

    A context that is already running is used. `environment` is changed only for the start (see
    `changed_environment`); the workers inherit it from Java. Java works in `folder`, or in this
    program's working directory.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield SparkContext(conf=conf)
        return
    launch: Callable[..., Any] = launch_gateway
    gateway: Any = None
    try:
        with changed_environment(environment), log.open("wb") as output, _deferred_interrupt():
            # In a separate process group: otherwise a SIGTERM to the group of this program
            # (`timeout`, a shell's `kill %1`) would end Java before this program. Java always ends
            # with this program, because its standard input ends.
            options = {"stdout": output, "stderr": output, "cwd": folder, "process_group": 0}
            gateway = launch(conf, options)
        # Errors are converted here, because Spark's errors can be read only while Java runs.
        with changed_environment(environment), _kept_interrupt(), as_job_errors(f"Spark's log: {log}"):
            context = SparkContext(conf=conf, gateway=gateway)
        yield context
    finally:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        if gateway is not None:
            _end(gateway)


def _end(gateway: Any) -> None:
    gateway.shutdown()
    # Java ends when its standard input does.
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        # Its work is done.
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def _deferred_interrupt() -> Iterator[None]:
    """Defer a keyboard interrupt to the end of the block.

    If PySpark is interrupted while it starts Java, it leaves a process that waits for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def _kept_interrupt() -> Iterator[None]:
    """Restore the handler of keyboard interrupts after the block.

    PySpark's handler talks to Java on a connection that the interrupted call may be reading, which
    turns the interrupt into a network error at random. Stopping the session ends its jobs as well.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables for the time of a block; None removes one."""
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
    """Suppress the logs of Spark's Python side about an error; the error has the same information.

    py4j logs to the root logger and its own, PySpark to another, all with a traceback on standard
    error.
    """
    root = logging.getLogger()
    spoken = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    named = (logging.getLogger("py4j"), *map(PySparkLogger.getLogger, spoken))
    levels = [logger.level for logger in named]
    root.addFilter(_is_not_py4j)
    for logger in named:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        root.removeFilter(_is_not_py4j)
        for logger, level in zip(named, levels, strict=True):
            logger.setLevel(level)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts
