"""Java process of a Spark driver: its start, its end, its errors, and keyboard interrupts.

This is the only module that uses private state of PySpark and py4j, in two places. Neither has a
public interface.

- PySpark keeps the Java process in class attributes of `SparkContext`, and ends it only when Python
  ends. To end it with the session, and to start another one later, these attributes are reset.
- Python raises KeyboardInterrupt at the current position of the main thread. If that is in py4j's
  clean-up of a Java object, Python prints the traceback and the interrupt is lost. The clean-up is
  recognised by the names of py4j's functions.

Spark's launcher writes much to standard error, in part before logging is configured (the Java
launcher writes the note about incubator modules). So the process writes to a log file from the
start.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PythonException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger

from specwire.runtime.spark.errors import InputError, JobError

ENDING_S = 30.0
"""Timeout for the end of the Java process, in seconds."""

AGAIN_S = 0.05
"""Seconds until an interrupt in a clean-up of py4j is sent again; a clean-up takes microseconds."""

_CLEAN_UPS = ("_garbage_collect_object", "_garbage_collect_connection")
"""Functions that py4j calls, at any time, when Python releases a Java object."""

_TRACEBACK = "Traceback (most recent call last)"
_ABSENT = re.compile(r"No module named '?(specwire|msgspec|numpy|pyarrow|pandas)\b")
_OUT_OF_MEMORY = b"java.lang.OutOfMemoryError"
_SEARCHED_OCTETS = 4 << 20
"""Octets that are searched at the end of a log."""


@contextmanager
def java_process(
    conf: SparkConf, environment: Mapping[str, str | None], log: Path, folder: Path | None = None
) -> Iterator[SparkContext]:
    """Yield a context in a Java process that writes to `log`; end the process after the block.

    A Java process that was started before is used, and not ended. `environment` is changed only for
    the start (see `changed_environment`); the workers inherit it from Java. Java's working directory
    is `folder`, or this program's.

    Raises InputError if a context is running: PySpark allows one in a program.
    """
    if SparkContext._active_spark_context is not None:
        raise InputError("this program has a Spark session already: stop it first")
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield SparkContext(conf=conf)
        return
    launch: Callable[..., Any] = launch_gateway
    gateway: Any = None
    try:
        with changed_environment(environment), log.open("wb") as output, _deferred_interrupt():
            # In a separate process group, because a SIGTERM to this program's group (`timeout`,
            # `kill %1`) must not end Java first. Java ends with its standard input.
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
    gateway.proc.stdin.close()  # Java ends when its standard input does.
    try:
        gateway.proc.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()  # Its work is done.
        gateway.proc.wait()


@contextmanager
def _deferred_interrupt() -> Iterator[None]:
    """Defer a keyboard interrupt to the end of the block.

    If PySpark is interrupted while it starts Java, it leaves a process that waits for ever.
    """
    interrupts: list[int] = []
    with _kept_interrupt():
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
        yield
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


class Interrupts:
    """Context manager that ends a block with KeyboardInterrupt if the user interrupted it.

    Code that ignores every exception may swallow KeyboardInterrupt, and the job would continue. So
    the handler also records the signal. `heed` raises the exception again at the next step, and at
    the end of the block, also if the interrupted call failed with another error. In a clean-up of
    py4j the handler raises nothing, and sends the signal again later.

    Signals are not handled here if this is not the main thread or another handler is installed.
    """

    def __init__(self) -> None:
        self._seen = False
        self._again: threading.Timer | None = None
        self._handles = False

    def __enter__(self) -> Self:
        self._handles = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._handles:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancel()
        if self._handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if error is None or isinstance(error, Exception):
            self.heed()

    def heed(self) -> None:
        """Raise KeyboardInterrupt if there was one."""
        if self._seen:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._seen = True
        if not _cleans_up(frame):
            raise KeyboardInterrupt
        self._cancel()
        self._again = threading.Timer(AGAIN_S, signal.pthread_kill, (threading.get_ident(), number))
        self._again.daemon = True
        self._again.start()

    def _cancel(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again.join()


def _cleans_up(frame: FrameType | None) -> bool:
    """Return whether the frame is in a clean-up of py4j, or in a function called by one."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CLEAN_UPS and "py4j" in Path(code.co_filename).parts:
            return True
        frame = frame.f_back
    return False


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
    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    named = (logging.getLogger("py4j"), *map(PySparkLogger.getLogger, names))
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


@contextmanager
def as_job_errors(place: str, log: Path | None = None) -> Iterator[None]:
    """Raise Spark's errors in the block as JobError; `place` says where to look, in parentheses.

    If Java runs out of memory, it ends without an answer; only its log, if given, has the reason.
    """
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        cause = describe_failure(error)
        if log is not None and _ran_out_of_memory(log):
            cause = f"Spark has run out of memory: give its driver more, by `spark-submit --driver-memory`; {cause}"
        raise JobError(f"{cause} ({place})") from error


def _ran_out_of_memory(log: Path) -> bool:
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _SEARCHED_OCTETS))
        return _OUT_OF_MEMORY in file.read(_SEARCHED_OCTETS)
    return False


def describe_failure(error: Exception) -> str:
    """Return the line of Spark's error that describes the cause.

    For a failed worker it is the last line of the traceback; for Java, the first line that names an
    exception. For specwire's own errors it is their original sentence.
    """
    line = _cause_line(error)
    if _ABSENT.search(line):
        line += "; the executors' Python lacks it: ship it with --package (see `specwire pipeline package`)"
    return line


def _cause_line(error: Exception) -> str:
    # A Connect server may append its stack trace.
    text, _, _ = str(error).partition("JVM stacktrace:")
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, PythonException) or any(_TRACEBACK in line for line in lines):
        lines = [line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)] or lines
    elif java := [line for line in lines if line.startswith(": ") and isinstance(error, Py4JError)]:
        lines = [re.sub(r"^: (?:[\w$]+\.)+\w+: ", "", java[0])]
    elif not isinstance(error, PySparkException):
        lines = [f"Spark's Java process does not answer: {lines[0]}"]
    line = re.sub(r"\s*SQLSTATE: \w+;?$", "", lines[0])
    return re.sub(r"^(\[USER_RAISED_EXCEPTION\]|specwire\.[\w.]+Error:) ", "", line).rstrip(" .")
