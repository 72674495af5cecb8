"""A Spark Connect server of the tests' own, on a port of 127.0.0.1 that the system chose.

Where the system lets us, one folder of the server is another than the one that we see there, as on another machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from specwire.runtime.spark.session.java import ENDING_S
from tests.conftest import BRIEF_JAVA

START_S = 300.0
"""Far longer than a server takes to start, however busy the machine is."""

SPARK_HOME = Path(pyspark.__file__).parent

_STARTED = re.compile(r"Spark Connect server started at: 127\.0\.0\.1:(\d+)")

SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": BRIEF_JAVA,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


def spark_variables(**more: str) -> dict[str, str]:
    """Return the environment of a Spark of its own: loopback only, and nothing that names another."""
    names = ("SPARK_REMOTE", "SPARK_HOME", "PYTHONPATH", "PYSPARK_SUBMIT_ARGS")
    variables = {name: value for name, value in os.environ.items() if name not in names}
    return variables | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"} | more


class Server(NamedTuple):
    """A server that runs: its URL, and a folder that is another one there, None where that could not be had."""

    url: str
    apart: Path | None


SEGMENT = "segment"
"""A file in the folder that is another one there; its content there is `OTHERS`."""

OTHERS = "another file"

_APART = f'mount -t tmpfs tmpfs "$0" && printf "{OTHERS}" > "$0/{SEGMENT}" && exec "$@"'


@contextmanager
def connect_server(folder: Path) -> Iterator[Server]:
    """Give a server whose workers run this Python; it works in `folder`, and ends with the block."""
    apart = folder / "apart"
    apart.mkdir()
    prefix = ["unshare", "--mount", "--map-root-user", "sh", "-c", _APART, str(apart)]
    possible = _succeeds(*prefix, "true")
    command = [*(prefix if possible else []), str(SPARK_HOME / "bin" / "spark-submit")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--master", "local[2]", "--driver-memory", "1g"]
    for name, value in SETTINGS.items():
        command += ["--conf", f"{name}={value}"]
    variables = spark_variables(PYSPARK_PYTHON=sys.executable, PYTHONSAFEPATH="1")
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        port = await_line(server, log, _STARTED)
        yield Server(f"sc://127.0.0.1:{port}", apart if possible else None)
    finally:
        server.terminate()
        try:
            server.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except OSError:
        return False


def await_line(process: subprocess.Popen[bytes], log: Path, pattern: re.Pattern[str]) -> str:
    """Return the first group of a pattern once a process has written what it matches."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := pattern.search(log.read_text(errors="replace")):
            return found.group(1)
        time.sleep(0.1)
    raise AssertionError(f"it did not start:\n{log.read_text(errors='replace')[-4000:]}")
