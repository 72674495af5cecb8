"""One configuration for servers of several kinds, read again at SIGHUP while they run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.filemq_process import PeerProcess
from tests.integration.filemq_scene import run

pytestmark = pytest.mark.peers

TEXT = """\
[norfab.broker]
endpoint = ["ENDPOINT"]
folder = "broker"
insecure = true

[norfab.worker]
service = "svc"
plugin = "tests.integration.norfab_plugin:Fleet"
name = "w1"
broker = ["ENDPOINT"]
folder = "w1"
insecure = true

[flux.broker]
rank = 0
size = 1
local = "local"
"""


@asynccontextmanager
async def running(folder: Path, *words: str) -> AsyncIterator[PeerProcess]:
    """Run a server by the configuration in the folder, and kill it in the end if it still runs."""
    process = PeerProcess(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "specwire", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={
                **os.environ,
                "SPECWIRE_CONFIG": str(folder / "specwire.toml"),
                "XDG_RUNTIME_DIR": str(folder),
            },
        )
    )
    try:
        yield process
    finally:
        await process.end()


def hang_up(process: PeerProcess) -> None:
    os.kill(process.pid, signal.SIGHUP)


def test_servers_take_what_can_change() -> None:
    """The broker and the Flux broker at once; the worker begins anew as the same process, unless there is a fault."""

    async def story(folder: Path) -> None:
        file = folder / "specwire.toml"
        text = TEXT.replace("ENDPOINT", f"ipc://{folder}/norfab")
        file.write_text(text)
        async with (
            running(folder, "norfab", "broker") as broker,
            running(folder, "norfab", "worker") as worker,
            running(folder, "flux", "broker") as flux,
        ):
            await broker.line_with("worker w1 is ready for svc")
            await flux.line_with("listening on")
            file.write_text(
                text.replace(
                    'folder = "broker"', 'folder = "other"\nkeepalive = 1\nlimit = ["queue_s=5", "clients=9"]'
                )
                + "quiet = true\nallow-guests = true\nfanout = 3\n"
            )
            for process in (broker, worker, flux):
                hang_up(process)
            await broker.line_with("keepalive is 1.0 from now on")
            await broker.line_with("the limits hold from now on, but clients from the next start on")
            await broker.line_with("what else has changed holds from the next start on: folder")
            await flux.line_with("allow-guests is true from now on")
            await flux.line_with("what else has changed holds from the next start on: fanout")
            await broker.until_lines("worker w1 is ready for svc", 2)
            await worker.line_with("restarting with")
            await worker.until_lines("registered for svc", 2)
            file.write_text(text.replace("service =", "servic ="))
            hang_up(worker)
            await worker.line_with("norfab.worker.servic: unknown setting; did you mean 'service'?")
            for process in (worker, flux, broker):
                await process.stop()

    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        run(lambda: story(Path(folder)))


def test_brokers_that_flux_start_starts_are_told_by_it_alone(tmp_path: Path) -> None:
    """What is set for a broker that is started by itself, be it a fault, is not theirs."""
    file = tmp_path / "specwire.toml"
    file.write_text("[flux.start]\nsize = 2\n\n[flux.broker]\nverbos = true\n")
    environment = {**os.environ, "SPECWIRE_CONFIG": str(file), "SPECWIRE_FLUX_BROKER_RANKS": "7"}
    command = [sys.executable, "-m", "specwire", "flux", "start", "--", "true"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "verbos" not in ended.stderr and "ranks" not in ended.stderr
