"""One-line descriptions of Spark's errors, from py4j, a worker's traceback, or Spark Connect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException, PythonException

from specwire.runtime.spark.errors import JobError

_TRACEBACK = "Traceback (most recent call last)"
_ABSENT = re.compile(r"No module named '?(specwire|msgspec|numpy|pyarrow|pandas)\b")


_OUT_OF_MEMORY = b"java.lang.OutOfMemoryError"
_LOOKED_AT_OCTETS = 4 << 20
"""Octets that are searched at the end of a log."""


@contextmanager
def as_job_errors(place: str, log: Path | None = None) -> Iterator[None]:
    """Raise Spark's errors in the block as JobError; `place` says where to look, in parentheses.

    If Java runs out of memory, it ends without an answer; only its log, if given, has the reason.
    """
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        told = describe_failure(error)
        if log is not None and _ran_out_of_memory(log):
            told = f"Spark has run out of memory: give its driver more, by `spark-submit --driver-memory`; {told}"
        raise JobError(f"{told} ({place})") from error


def _ran_out_of_memory(log: Path) -> bool:
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOOKED_AT_OCTETS))
        return _OUT_OF_MEMORY in file.read(_LOOKED_AT_OCTETS)
    return False


def describe_failure(error: Exception) -> str:
    """Return the line of Spark's error that describes the cause.

    For a failed worker it is the last line of the traceback; for Java, the first line that names an
    exception. For specwire's own errors it is their original sentence.
    """
    line = _telling_line(error)
    if _ABSENT.search(line):
        line += "; the executors' Python lacks it: ship it with --package (see `specwire pipeline package`)"
    return line


def _telling_line(error: Exception) -> str:
    # Spark Connect includes the server's stack trace, if its settings allow it.
    told, _, _ = str(error).partition("JVM stacktrace:")
    lines = [line.strip() for line in told.splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, PythonException) or any(_TRACEBACK in line for line in lines):
        lines = [line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception)\b", line)] or lines
    elif isinstance(error, PySparkException):
        pass
    elif java := [line for line in lines if line.startswith(": ")]:
        lines = [re.sub(r"^: (?:[\w$]+\.)+\w+: ", "", java[0])]
    else:
        lines = [f"Spark's Java process does not answer: {lines[0]}"]
    line = re.sub(r"\s*SQLSTATE: \w+;?$", "", lines[0])
    return re.sub(r"^(\[USER_RAISED_EXCEPTION\]|specwire\.[\w.]+Error:) ", "", line).rstrip(" .")
