"""One line for what Spark raises, as py4j and as Spark Connect hand it over."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, PythonException

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.session.java import as_job_errors, describe_failure

WORKER = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/executor/worker.py", line 3, in main
ModuleNotFoundError: No module named 'msgspec'
SQLSTATE: 38000

JVM stacktrace:
org.apache.spark.SparkException
\tat org.apache.spark.Error(Error.scala:1)
"""

SOURCE = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent call last):
  File "/driver/source.py", line 77, in __init__
specwire.runtime.spark.errors.InputError: /data: the capture holds filemq and flux
 SQLSTATE: 38000
"""


def test_a_worker_that_lacks_a_module_is_told_how_to_get_it() -> None:
    """The last line of its traceback, not of Java's stack, and what to do."""
    assert describe_failure(PythonException(WORKER)) == (
        "ModuleNotFoundError: No module named 'msgspec'; the executors' Python lacks it: "
        "ship it with --package (see `specwire pipeline package`)"
    )


def test_an_error_of_ours_comes_back_as_its_sentence() -> None:
    """From a data source, which Spark runs in a worker."""
    assert describe_failure(AnalysisException(SOURCE)) == "/data: the capture holds filemq and flux"


def test_what_a_query_raised_itself_is_its_text() -> None:
    """Without Spark's name for it."""
    error = PySparkException("[USER_RAISED_EXCEPTION] a.parquet: message 6 SQLSTATE: P0001")
    assert describe_failure(error) == "a.parquet: message 6"


def test_a_lost_java_process_is_said_to_be_one() -> None:
    """Whatever py4j found on the way."""
    with pytest.raises(JobError) as caught, as_job_errors("Spark's log: here"):
        raise ConnectionRefusedError(111, "Connection refused")
    assert str(caught.value) == (
        "Spark's Java process does not answer: [Errno 111] Connection refused (Spark's log: here)"
    )


def test_memory_that_ran_out_is_told(tmp_path: Path) -> None:
    """Java does not answer then, and its log says why; a log that is not there says nothing."""
    log = tmp_path / "spark.log"
    for text, begins in (
        (None, "Spark's Java process does not answer"),
        ("WARN NativeCodeLoader: no native library\n", "Spark's Java process does not answer"),
        (
            "ERROR Utils: Aborting task\njava.lang.OutOfMemoryError: Java heap space\n",
            "Spark has run out of mem",
        ),
    ):
        if text is not None:
            log.write_text(text)
        with pytest.raises(JobError, match=f"^{begins}"), as_job_errors("here", log):
            raise ConnectionRefusedError(111, "Connection refused")


def test_what_is_not_sparks_goes_through() -> None:
    """A fault of our own keeps its trace."""
    with pytest.raises(KeyError), as_job_errors("here"):
        raise KeyError("x")
