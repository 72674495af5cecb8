"""Limit of descriptors: servers raise it at the start, and stay quiet when they reach it."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from specwire.runtime.flux.handle import connect
from tests.integration.flux_processes import processes
from tests.processes import kill_all

pytestmark = pytest.mark.peers

PATIENCE_S = 60.0
ROOM, STRANGERS = 20, 60
WATCHED_S = 1.0
PLUGIN = "tests.integration.norfab_plugin:Fleet"


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_broker_without_descriptors_is_quiet_and_recovers() -> None:
    """See flux-core #3513. Our broker wrote 54,073 tracebacks in 5 s, and used 90 % of a core."""

    async def story() -> None:
        async with processes(1, 2) as instance:
            broker = await instance.start(0)
            path = instance.uri(0).removeprefix("local://")
            before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
            used = len(os.listdir(f"/proc/{broker.pid}/fd"))
            resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (used + ROOM, before[1]))
            with ExitStack() as strangers:
                for _ in range(STRANGERS):
                    strangers.enter_context(socket.socket(socket.AF_UNIX)).connect(path)
                assert "Too many open files" in await broker.line_with("no connections are accepted on")
                spent, lines = cpu_s(broker.pid), len(broker.lines)
                await asyncio.sleep(WATCHED_S)  # the time that is measured
                assert cpu_s(broker.pid) - spent < 0.2 * WATCHED_S
                assert len(broker.lines) == lines
            async with connect(instance.uri(0)) as handle:
                answer = await handle.rpc("broker.ping", {"seq": 1}, timeout_s=PATIENCE_S)
                assert answer.json()["seq"] == 1
            await broker.line_with("connections are accepted again on")
            shortage = [line for line in broker.lines if "are accepted" in line]
            assert len(shortage) == 2 and not any("Traceback" in line for line in broker.lines)

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await story()

    asyncio.run(bounded())


SERVERS = {
    "flux broker": "flux broker --rank 0 --size 1 --local {0}/local",
    "filemq serve": "filemq serve {0} --endpoint tcp://127.0.0.1:*",
    "filemq subscribe": "filemq subscribe tcp://127.0.0.1:1 / --inbox {0}/inbox",
    "norfab broker": "norfab broker --insecure --folder {0}/store --endpoint tcp://127.0.0.1:*",
    "norfab worker": "norfab worker --insecure --folder {0}/store --broker tcp://127.0.0.1:1 --service svc "
    f"--name w1 --plugin {PLUGIN}",
    "capture proxy": "capture proxy --protocol flux --to tcp://127.0.0.1:1 --capture {0}",
    "bridge": "bridge norfab norfab_ascii --to tcp://127.0.0.1:1",
}


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_raises_its_soft_limit(server: str, tmp_path: Path) -> None:
    """The soft limit is 1,024 on most machines, and a client takes one descriptor or more."""
    words = SERVERS[server].format(tmp_path).split()
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'ulimit -Sn 200; exec "$@"', "sh", sys.executable, "-m", "specwire", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        until = time.monotonic() + PATIENCE_S
        soft, hard = 0, -1
        while soft != hard:
            assert process.poll() is None and process.stderr is not None, process.communicate()[1].decode()
            assert time.monotonic() < until
            time.sleep(0.01)
            soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    finally:
        kill_all(process)
        process.communicate()
