"""The Java process that a Spark driver needs: started with its words kept, and ended.

Spark's launcher speaks much on standard error, some of it before any logging is configured (the note about
incubator modules comes from the Java launcher itself). So the process writes to a log file from the start.
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
"""Time for the Java process to end, in seconds."""


@contextmanager
def java_process(
    conf: SparkConf, environment: Mapping[str, str | None], log: Path, folder: Path | None = None
) -> Iterator[SparkContext]:
    """Give a context in a Java process that writes to `log`, and end that process; one that runs is used.

    `environment` is changed for the start alone (see `changed_environment`); the workers inherit it from Java.
    Java works in `folder`, or where this program does.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield SparkContext(conf=conf)
        return
    launch: Callable[..., Any] = launch_gateway
    gateway: Any = None
    try:
        with changed_environment(environment), log.open("wb") as output, _deferred_interrupt():
            # In a process group of its own: a SIGTERM to the whole group of this program (`timeout`, a shell's `kill %1`)
            # would end Java before us. It ends with us all the same, whatever ends us: its standard input does then.
            options = {"stdout": output, "stderr": output, "cwd": folder, "process_group": 0}
            gateway = launch(conf, options)
        # Here, because Spark's errors can be read only while Java runs.
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
        # What it was to do is done.
        gateway.proc.kill()
        gateway.proc.wait()


@contextmanager
def _deferred_interrupt() -> Iterator[None]:
    """Let an interrupt at the keyboard wait for the end of the block.

    Interrupted while it starts Java, PySpark leaves a process behind that waits for ever.
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
    """Undo what the block makes of the interrupt at the keyboard.

    PySpark's handler talks to Java on a connection that the interrupted call may be reading, which turns the
    interrupt into a network error at random. Stopping the session ends its jobs as well.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


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

    py4j logs to the root logger and its own, PySpark to another, all with a trace and on standard error.
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
