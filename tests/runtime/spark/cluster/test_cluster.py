"""A cluster of two executors that have nothing but the archive: `local-cluster` starts a process for each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from specwire.runtime.spark.cluster.contents import Package
from specwire.runtime.spark.session.java import JAVA_VERSION, find_java
from tests.conftest import BRIEF_JAVA
from tests.runtime.spark.captures import CHEEZBURGER, NOM, SHORT_NOM, UNKNOWN, write_capture
from tests.runtime.spark.cluster import cluster_job
from tests.runtime.spark.cluster.servers import SPARK_HOME, spark_variables

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(find_java() is None, reason=f"Spark needs Java {JAVA_VERSION} or newer"),
]

MASTER = "local-cluster[2,1,2048]"
LIMIT_S = 600

DEFAULTS = f"""\
spark.driver.memory 1g
spark.driver.extraJavaOptions {BRIEF_JAVA}
spark.executor.extraJavaOptions {BRIEF_JAVA}
spark.sql.shuffle.partitions 3
spark.ui.enabled false
"""


def make_home(folder: Path) -> dict[str, str]:
    """Return the environment of a Spark that is set up in `folder`, where its workers put their files."""
    home, settings = folder / "home", folder / "conf"
    home.mkdir()
    settings.mkdir()
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(SPARK_HOME / name)
    (settings / "spark-defaults.conf").write_text(DEFAULTS)
    return spark_variables(SPARK_HOME=str(home), SPARK_CONF_DIR=str(settings))


def test_the_pipeline_runs_where_only_the_archive_is(tmp_path: Path, package: Package) -> None:
    """Every module of the executors is the archive's, Spark's or Python's own; the tables are there.

    What the cluster's `spark-defaults.conf` says is left as it is.
    """
    messages = [("C", NOM), ("S", CHEEZBURGER), ("C", SHORT_NOM), ("S", UNKNOWN)] * 50
    capture, out = write_capture(tmp_path / "capture", messages), tmp_path / "out"
    ran = subprocess.run(
        [sys.executable, cluster_job.__file__, MASTER, str(package.folder), str(capture), str(out)],
        env=make_home(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout)
    work = tmp_path / "home" / "work"
    sites = set()
    for executor in found["executors"]:
        site = executor["path"][0]
        sites.add(site)
        assert site.startswith(str(work))
        assert all(file.startswith(f"{site}/") for file in executor["files"])
        others = executor["path"][1:]
        assert not [entry for entry in others if entry.endswith("-packages") or "specwire" in entry]
    assert len(sites) == len(found["executors"]) == 2
    assert found["shuffle"] == "3"
    assert (found["messages"], found["undecoded"]) == (200, 100)
    typed = ds.dataset(out / "typed" / "filemq" / "Nom", partitioning="hive").to_table(columns=["credit"])
    assert typed["credit"].to_pylist() == [0x10000000000] * 50
    if "java" in found:
        assert found["java"] == ["Cheezburger"] * 50 + ["Nom"] * 50 + ["None"] * 100
