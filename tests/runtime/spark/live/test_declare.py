"""A declarative pipeline that was written for a capture.

`make test` runs its functions and its query in the shared session. `make soak` runs it by
`spark-pipelines`, as its user does (`SPECWIRE_PIPELINES_RUNS`).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.graph_element_registry import (
    GraphElementRegistry,
    graph_element_registration_context,
)
from pyspark.pipelines.output import Output
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.live.declare import declare, stream_files
from specwire.runtime.spark.session.target import find_java
from tests.runtime.spark import captures

LIMIT_S = 600.0
NEEDED = ("grpc", "grpc_status", "yaml")

RUNS = int(os.environ.get("SPECWIRE_PIPELINES_RUNS", "0"))
"""Runs of `spark-pipelines`; the second one continues where the first ended."""

MESSAGES: list[captures.Message] = [
    ("C", captures.FLUX_ATTR_GET),
    ("C", [b"\x8e"]),
    ("C", captures.FLUX_ATTR_GET),
]

QUICK = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for few rows, as in `tests/spark_defaults`."""


def test_files_are_written_once(tmp_path: Path) -> None:
    """Never over files that have become the user's."""
    folder = tmp_path / "pipeline"
    written = declare(tmp_path / "capture", "flux", folder)
    names = [path.relative_to(folder).as_posix() for path in written]
    assert names == [
        "spark-pipeline.yml",
        "transformations/flux_messages.py",
        "transformations/flux_traffic.sql",
        "run",
    ]
    compile((folder / names[1]).read_text(), names[1], "exec")
    with pytest.raises(InputError, match="is not an empty folder"):
        declare(tmp_path / "capture", "flux", folder)
    with pytest.raises(InputError, match="there is no protocol 'gopher'"):
        declare(tmp_path / "capture", "gopher", tmp_path / "other")


def make_program(path: Path, text: str) -> Path:
    """Write a program of the shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_python_is_found_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a path with a blank and a quote, and by the name that the environment gives."""
    say = 'echo "$0" "$PYSPARK_PYTHON"; for last; do :; done; echo "$last"'
    python = make_program(tmp_path / "it's a b" / "bin" / "python", "")
    program = make_program(python.with_name("spark-pipelines"), say)
    monkeypatch.setattr(sys, "executable", str(python))
    folder = tmp_path / "pipeline"
    declare(tmp_path / "capture", "flux", folder)
    other = make_program(tmp_path / "other" / "python-of-mine", "")
    other_program = make_program(other.with_name("spark-pipelines"), say)
    path = f"{other.parent}:{os.environ['PATH']}"

    def run(environment: dict[str, str]) -> str:
        ran = subprocess.run(
            [folder / "run", "dry-run"],
            env={"PATH": path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert run({}) == f"{program} {python}\ndry-run\n"
    assert run({"PYSPARK_PYTHON": other.name}) == f"{other_program} {other.name}\ndry-run\n"
    assert run({"PYSPARK_PYTHON": str(other)}) == f"{other_program} {other}\ndry-run\n"


def read_table(folder: Path, name: str) -> list[dict[str, object]]:
    """The rows of a table in a warehouse."""
    found: list[dict[str, object]] = []
    for path in sorted((folder / "warehouse" / name).rglob("*.parquet")):
        with path.open("rb") as file:
            found += pq.read_table(file).to_pylist()
    return found


def write_captures(capture: Path) -> None:
    """Write a segment of Flux messages, one of another protocol, and one that was cut off."""
    captures.write_capture(capture, MESSAGES, protocol="flux")
    captures.write_capture(capture, [("C", captures.NOM)], tap="other-1-0")
    (capture / "cut-1-0-000000.parquet").write_bytes(b"PAR1")


class Registry(GraphElementRegistry):
    """The functions that a pipeline declares, by the names of their tables."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[], DataFrame]] = {}

    def register_output(self, output: Output) -> None:
        """The function of the same name says all."""

    def register_flow(self, flow: Flow) -> None:
        self.functions[flow.name] = flow.func

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        raise NotImplementedError

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        raise NotImplementedError


@pytest.mark.spark
def test_tables_hold_the_capture(spark: SparkSession, tmp_path: Path) -> None:
    """A table for each type, one of errors, and the roll-up; a segment that was cut off is an error row."""
    capture, folder = tmp_path / "capture", tmp_path / "pipeline"
    write_captures(capture)
    _, module, roll_up, _ = declare(capture, "flux", folder)
    registry = Registry()
    with graph_element_registration_context(registry):
        exec(compile(module.read_text(), str(module), "exec"), {"spark": spark})  # noqa: S102
    names = ("messages", "request", "response", "event", "control", "errors")
    assert set(registry.functions) == {f"flux_{name}" for name in names}

    def store(name: str) -> list[dict[str, Any]]:
        writer = registry.functions[name]().writeStream.option("checkpointLocation", str(tmp_path / name))
        query = writer.trigger(availableNow=True).toTable(name, path=str(tmp_path / "warehouse" / name))
        assert query.awaitTermination(300)
        return [row.asDict() for row in spark.table(name).collect()]

    try:
        assert len(store("flux_messages")) == 4
        assert [row["topic"] for row in store("flux_request")] == ["attr.get"] * 2
        kinds = sorted(str(row["kind"]) for row in store("flux_errors"))
        assert len(kinds) == 2 and "segment" in kinds
        view, query = roll_up.read_text().split(" AS\n", 1)
        assert view.endswith("CREATE MATERIALIZED VIEW flux_traffic")
        counted = {(row.tap, row.message): row.messages for row in spark.sql(query).collect()}
        assert counted == {("server-1-0", "Request"): 2, ("server-1-0", None): 1, (None, None): 1}
    finally:
        for name in registry.functions:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not RUNS, reason="`make soak` runs spark-pipelines (SPECWIRE_PIPELINES_RUNS=2)")
def test_spark_pipelines_runs_it(tmp_path: Path) -> None:
    """Each run adds what is new to the tables."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing or find_java() is None:
        pytest.skip(f"spark-pipelines needs Java and {', '.join(NEEDED)}: install specwire[connect]")
    capture, folder = tmp_path / "capture", tmp_path / "pipeline"
    write_captures(capture)
    declare(capture, "flux", folder)
    expected = {("server-1-0", "Request"): 2, ("server-1-0", None): 1}
    for turn in range(1, RUNS + 1):
        # With a `spark-defaults.conf` Spark puts the tables where that says, or where it does by itself.
        variables = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
        variables["SPARK_SUBMIT_OPTS"] += "".join(f" -D{name}={value}" for name, value in QUICK.items())
        ran = subprocess.run(
            [folder / "run", "run"],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        requests = read_table(folder, "flux_request")
        assert [row["topic"] for row in requests] == ["attr.get"] * 2 * turn
        kinds = sorted(str(row["kind"]) for row in read_table(folder, "flux_errors"))
        assert len(kinds) == 1 + turn and "segment" in kinds
        counted = {
            (row["tap"], row["message"]): row["messages"] for row in read_table(folder, "flux_traffic")
        }
        assert counted.pop((None, None)) == 1
        assert sorted(counted.items(), key=str) == sorted(expected.items(), key=str)
        tap = f"server-2-{turn}"
        captures.write_capture(capture, MESSAGES, tap=tap, protocol="flux")
        expected |= {(tap, "Request"): 2, (tap, None): 1}


@pytest.mark.spark
@pytest.mark.parametrize("name", ["{a}", "a[1]", "a*", "a?", "a\\b"])
def test_a_folder_that_a_stream_would_read_more_than_once_is_refused(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="Spark's file source cannot read a folder with"):
        stream_files(spark, tmp_path / name, "filemq")
