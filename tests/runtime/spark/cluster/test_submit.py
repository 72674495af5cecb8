"""The lines that use a package, as a shell and Python read them."""

from __future__ import annotations

import ast
import shlex
import sys
from pathlib import Path

import pytest

from specwire.runtime.spark.cluster.package import Note, Package, artifact_lines, pipeline_line, submit_line

NOTE = Note(
    python="3.11", platform="linux-x86_64", distributions={}, archive_octets=1, archive_sha256="", jar=True
)
PACKAGE = Package(Path("/shared/my package"), NOTE)


def words(line: str) -> list[str]:
    """Return what a shell makes of a line over several lines."""
    return shlex.split(line.replace("\\\n", " "))


def test_spark_submit_gets_archive_jar_and_both_pythons() -> None:
    """The driver's is the one that runs here, the executors' the archive's."""
    assert words(submit_line(PACKAGE, "yarn")) == [
        "spark-submit",
        *("--master", "yarn"),
        *("--archives", "file:///shared/my%20package/specwire-environment.tar.gz#environment"),
        *("--jars", "file:///shared/my%20package/specwire-spark.jar"),
        *("--conf", f"spark.pyspark.driver.python={sys.executable}"),
        *("--conf", "spark.pyspark.python=environment/bin/python"),
        *("/shared/my package/specwire_job.py", "pipeline", "run", "--capture", "CAPTURE", "--out", "OUT"),
    ]


def test_the_pipeline_ships_the_package_itself() -> None:
    """To a master as to a Connect server."""
    assert words(pipeline_line(PACKAGE, "--remote", "sc://host:15002")) == [
        *("specwire", "pipeline", "run", "--capture", "CAPTURE", "--out", "OUT"),
        *("--remote", "sc://host:15002"),
        *("--package", "/shared/my package"),
    ]


@pytest.mark.parametrize("jar", [True, False])
def test_a_session_of_ones_own_is_given_artifacts(jar: bool) -> None:
    """Three statements, two without a jar."""
    note = Note(python="3.11", platform="", distributions={}, archive_octets=1, archive_sha256="", jar=jar)
    lines = artifact_lines(Package(PACKAGE.folder, note))
    assert len(ast.parse(lines).body) == 2 + jar
    assert '"/shared/my package/specwire-environment.tar.gz#environment", archive=True' in lines
