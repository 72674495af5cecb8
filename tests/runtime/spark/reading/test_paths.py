"""Paths as Spark gets them: of this machine's file system, and no patterns."""

from __future__ import annotations

from pathlib import Path

from specwire.runtime.spark.session.executors import literal_path, local_path


def test_a_path_names_the_file_system() -> None:
    """Where a cluster's default one is another, such as HDFS."""
    assert local_path(Path("/data/a b")) == "file:/data/a b"
    assert local_path(Path("here")) == f"file:{Path.cwd() / 'here'}"


def test_what_hadoop_takes_for_a_pattern_is_marked() -> None:
    """In paths that are read; those that are written are taken as they are."""
    assert literal_path(Path("/data/a[1]{x}*?")) == r"file:/data/a\[1\]\{x\}\*\?"
    assert local_path(Path("/data/a[1]")) == "file:/data/a[1]"
