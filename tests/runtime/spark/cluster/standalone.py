"""A stand-alone cluster of the tests: a master and workers, on ports of 127.0.0.1 that the system chose.

Each is a separate process, started as the scripts of a Spark start it. A worker starts an executor, which is another
process, in a folder of the worker. `make test` has one worker, and `make soak` two (``SPECWIRE_CLUSTER_WORKERS``).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from specwire.runtime.spark.session.java import ENDING_S
from tests.conftest import BRIEF_JAVA
from tests.runtime.spark.cluster.servers import SPARK_HOME, await_line, spark_variables

WORKERS = int(os.environ.get("SPECWIRE_CLUSTER_WORKERS", "1"))
CORES = 2
"""Cores of all workers together."""
MEMORY = "1280m"
"""What a worker has to give: one executor of a gigabyte."""

DAEMON_JAVA = f"{BRIEF_JAVA} -Dspark.master.rest.enabled=false"
"""Without the master's second server, whose port is fixed."""

_STARTED = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")


class Cluster(NamedTuple):
    """A cluster that runs: its master's URL, and the folder that each worker works in."""

    url: str
    folders: tuple[Path, ...]


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster until the block ends."""
    with ExitStack() as stack:
        log = folder / "master.log"
        master = stack.enter_context(_daemon(log, "master.Master"))
        url = await_line(master, log, _STARTED)
        folders = tuple(folder / f"worker-{number}" for number in range(WORKERS))
        for own in folders:
            options = ("--cores", str(CORES // WORKERS), "--memory", MEMORY, "--work-dir", str(own), url)
            stack.enter_context(_daemon(own.with_suffix(".log"), "worker.Worker", *options))
        yield Cluster(url, folders)


@contextmanager
def _daemon(log: Path, name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    command += ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *options]
    variables = spark_variables(SPARK_DAEMON_MEMORY="256m", SPARK_DAEMON_JAVA_OPTS=DAEMON_JAVA)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
