"""A stand-alone cluster of a master and workers, whose executors have nothing but the archive.

`make test` has one worker, and writes typed tables. `make soak` has two (``SPECWIRE_CLUSTER_WORKERS``), so rows go
from one executor to the other, and writes frames and answers too (``SPECWIRE_CLUSTER_LAYERS``), which takes as long
again; `make test` writes those behind a Connect server (`test_connect`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pyarrow.dataset as ds
import pytest

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, write_segment
from specwire.runtime.spark.cluster.package import Package
from specwire.runtime.spark.session.target import JAR, JAVA_VERSION, find_java
from tests.conftest import BRIEF_JAVA
from tests.runtime.spark.captures import (
    BEGUN,
    CHEEZBURGER,
    ICANHAZ,
    ICANHAZ_OK,
    NOM,
    OHAI,
    OHAI_OK,
    SHORT_NOM,
)
from tests.runtime.spark.cluster import cluster_job
from tests.runtime.spark.cluster.servers import spark_variables
from tests.runtime.spark.cluster.standalone import standalone_cluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(find_java() is None, reason=f"Spark needs Java {JAVA_VERSION} or newer"),
]

LIMIT_S = 600

LAYERS = os.environ.get("SPECWIRE_CLUSTER_LAYERS", "typed")
MESSAGES = 8_000
LARGE = "large"
"""The conversation that has three messages of every ten."""

DEFAULTS = f"""\
spark.driver.memory 1g
spark.driver.extraJavaOptions {BRIEF_JAVA}
spark.executor.extraJavaOptions {BRIEF_JAVA}
spark.cores.max 2
spark.scheduler.minRegisteredResourcesRatio 1.0
spark.scheduler.maxRegisteredResourcesWaitingTime 600s
spark.sql.shuffle.partitions 3
spark.sql.adaptive.enabled false
spark.sql.codegen.wholeStage false
spark.sql.codegen.factoryMode NO_CODEGEN
spark.ui.enabled false
"""


def make_settings(folder: Path) -> dict[str, str]:
    """Return the environment of a driver that finds a cluster's `spark-defaults.conf` in `folder`."""
    settings = folder / "conf"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(DEFAULTS)
    return spark_variables(SPARK_CONF_DIR=str(settings))


def write_skewed(folder: Path) -> tuple[Path, Counter[str], int]:
    """Write a capture of FILEMQ conversations, and return it, their messages, and the `seq` of the odd one.

    Each conversation opens as the dialog has it, then credit and chunks take turns; once, in the middle of the large
    one, a message is cut short.
    """
    opening = [("C", OHAI), ("S", OHAI_OK), ("C", ICANHAZ), ("S", ICANHAZ_OK)]
    rows, counts, odd = [], Counter[str](), -1
    for seq in range(MESSAGES):
        conversation = LARGE if seq % 10 < 3 else f"c{seq % 140}"
        number = counts[conversation]
        sender, frames = opening[number] if number < 4 else (("C", NOM), ("S", CHEEZBURGER))[number % 2]
        if conversation == LARGE and number == 1_200:
            odd, frames = seq, SHORT_NOM
        counts[conversation] += 1
        rows.append(
            Captured(BEGUN + 1000 * seq, 10**6 * seq, seq, conversation, sender, "00aa", tuple(frames), 0)
        )
    folder.mkdir()
    source = Source(tap="server-1-0", protocol="filemq", edition="2")
    write_segment(folder, segment_name(source.tap, 0), build_table(rows, source, 0))
    return folder, counts, odd


def run_job(
    master: str, package: Package, capture: Path, out: Path, variables: dict[str, str]
) -> dict[str, Any]:
    """Return what `cluster_job` found, in a process of its own that works beside the capture."""
    command = [
        sys.executable,
        cluster_job.__file__,
        master,
        *map(str, (package.folder, capture, out)),
        LAYERS,
    ]
    ran = subprocess.run(
        command,
        env=variables,
        cwd=capture.parent,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return cast(dict[str, Any], json.loads(ran.stdout))


def test_the_pipeline_runs_where_only_the_archive_is(tmp_path: Path, package: Package) -> None:
    """Every module of the executors is the archive's, Spark's or Python's own; the tables are there.

    What the cluster's `spark-defaults.conf` says is left as it is. One conversation has three messages of every ten.
    """
    capture, counts, odd = write_skewed(tmp_path / "capture")
    out = tmp_path / "out"
    with standalone_cluster(tmp_path) as cluster:
        found = run_job(cluster.url, package, capture, out, make_settings(tmp_path))
    workers = set()
    for executor in found["executors"]:
        site = executor["path"][0]
        workers |= {folder for folder in cluster.folders if Path(site).is_relative_to(folder)}
        assert all(file.startswith(f"{site}/") for file in executor["files"])
        others = executor["path"][1:]
        assert not [
            entry for entry in others if entry.endswith("-packages") or Path(entry, "specwire").exists()
        ]
    assert workers == set(cluster.folders)
    assert found["shuffle"] == "3"
    assert (found["messages"], found["undecoded"]) == (MESSAGES, 1)
    typed = Counter(
        row["conversation"]
        for folder in (out / "typed/filemq").iterdir()
        for row in read_table(folder, "conversation")
    )
    assert typed == counts
    assert counts[LARGE] == 2_400
    if "answers" in LAYERS:
        assert_answers(out, counts, odd)
    assert (package.jar is not None) == JAR.is_file()
    if package.jar is not None:
        assert found["java"] == {"messages": MESSAGES, "undecoded": 1}


def assert_answers(out: Path, counts: Counter[str], odd: int) -> None:
    """Check the conversations, of which the large one has the one violation."""
    conversations = read_table(out / "answers" / "conversations", "conversation", "messages", "concurrent")
    assert {row["conversation"]: row["messages"] for row in conversations} == counts
    watched = {row["conversation"]: row["concurrent"]["violations"] for row in conversations}
    assert {name: count for name, count in watched.items() if count} == {LARGE: 1}
    (violation,) = (
        row
        for row in read_table(out / "answers" / "violations", "conversation", "reading", "seq", "kind")
        if row["reading"] == "concurrent"
    )
    assert (violation["conversation"], violation["seq"], violation["kind"]) == (LARGE, odd, "undecodable")


def read_table(folder: Path, *columns: str) -> list[dict[str, Any]]:
    """Return the rows of a table, whichever partitions they are in."""
    return ds.dataset(folder, partitioning="hive").to_table(columns=list(columns)).to_pylist()
