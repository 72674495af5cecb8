"""The session: which Java it takes, and one line for what Spark raises."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from specwire.runtime.capture.segments import find_segments
from specwire.runtime.spark.decoding.options import CAPTURE
from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.session.java import changed_environment, describe_failure
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import find_java
from tests.runtime.spark.captures import CHEEZBURGER, write_capture


def make_java(folder: Path, version: str) -> Path:
    """Make a program that answers as that version of Java does."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"""#!/bin/sh\necho 'openjdk version "{version}" 2025-01-01' >&2\n""")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("version", "taken"), [("17.0.1", True), ("21", True), ("11.0.2", False), ("1.8.0", False)]
)
def test_java_must_be_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, taken: bool
) -> None:
    """Spark 4 needs 17; versions before 9 begin with 1."""
    program = make_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == (program if taken else None)


def test_java_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where JAVA_HOME says nothing."""
    program = make_java(tmp_path, "17.0.1")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_java() == program


def test_without_java_one_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is started."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with (
        pytest.raises(JobError, match=r"Spark needs Java 17 or newer: install it .*JAVA_HOME"),
        open_session(),
    ):
        pass


def test_the_environment_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the Java process must see is no business of the rest of the program."""
    monkeypatch.setenv("SPARK_HOME", "/elsewhere")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with changed_environment({"SPARK_HOME": None, "PYSPARK_PYTHON": "python"}):
        assert "SPARK_HOME" not in os.environ
        assert os.environ["PYSPARK_PYTHON"] == "python"
    assert os.environ["SPARK_HOME"] == "/elsewhere"
    assert "PYSPARK_PYTHON" not in os.environ


@pytest.mark.spark
def test_java_has_a_process_group_of_its_own(spark: SparkSession) -> None:
    """What is sent to all of ours, as `timeout` and shells send SIGTERM, ends Java only when we end."""
    assert SparkContext._gateway is not None
    java = SparkContext._gateway.proc.pid
    assert os.getpgid(java) == java != os.getpgrp()


@pytest.mark.spark
def test_a_program_has_one_session(spark: SparkSession) -> None:
    """PySpark raises ValueError for a second one."""
    with pytest.raises(InputError, match="has a Spark session already"), open_session("local[1]"):
        pass
    assert spark.range(1).count() == 1


@pytest.mark.spark
def test_a_failing_decoder_is_told_by_its_last_line(spark: SparkSession) -> None:
    """Of a traceback through Java and a worker."""

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ValueError("no such column")

    with pytest.raises(Exception) as caught:
        spark.range(1).mapInArrow(fail, "id long").collect()
    assert describe_failure(caught.value) == "ValueError: no such column"


@pytest.mark.spark
def test_damage_behind_the_footer_names_the_file(spark: SparkSession, tmp_path: Path) -> None:
    """Pages are not checked before the query; what Spark says of them is cut to one line."""
    (segment,) = find_segments(write_capture(tmp_path, [("S", CHEEZBURGER)] * 100))
    octets = bytearray(segment.path.read_bytes())
    octets[4 : len(octets) // 3] = bytes(len(octets) // 3 - 4)
    segment.path.write_bytes(octets)
    with pytest.raises(Exception) as caught:
        spark.read.schema(CAPTURE).parquet(str(tmp_path)).selectExpr("max(ts)", "max(frames[0])").collect()
    sentence = describe_failure(caught.value)
    assert segment.path.name in sentence
    assert "\n" not in sentence
    assert "\tat " not in sentence
