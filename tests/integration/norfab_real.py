"""The real norfab package: installed once into an environment of its own, and its peers as processes.

It cannot be imported here, as it brings what this project does not use, so its peers are `norfab_real_peer.py` run by
another Python. The environment stands beside the packages of this one and stays there.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

VERSION = "0.25.0"
FOLDER = Path(sys.prefix) / f"norfab-{VERSION}"
SCRIPT = Path(__file__).with_name("norfab_real_peer.py")
INSTALL_S = 120.0
TRY_AGAIN_S = 600.0
END_S = 20.0


class NotInstallableError(Exception):
    """The package cannot be had here; says why."""


def python_with_norfab() -> Path:
    """Return a Python that has the package, installed where it is not yet; raises NotInstallableError."""
    try:
        FOLDER.mkdir(exist_ok=True)
        with (FOLDER / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _install()
    except OSError as error:
        raise NotInstallableError(f"no environment can be made in {FOLDER}: {error}") from error


def _install() -> Path:
    python, done, failed = FOLDER / "bin" / "python", FOLDER / "installed", FOLDER / "failed"
    if done.exists():
        return python
    if failed.exists() and time.time() - failed.stat().st_mtime < TRY_AGAIN_S:
        raise NotInstallableError(failed.read_text())
    make = [sys.executable, "-m", "venv", "--without-pip", str(FOLDER)]
    fill = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--retries", "1"]
    try:
        for command in (make, [*fill, f"norfab=={VERSION}", "pydantic"]):
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_S)
    except (OSError, subprocess.SubprocessError) as error:
        last = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        failed.write_text(f"norfab {VERSION} cannot be installed: {''.join(last)}")
        raise NotInstallableError(failed.read_text()) from error
    done.touch()
    return python


class RealPeer:
    """A running peer of the real package. `ready` is the first line that it said."""

    def __init__(self, process: asyncio.subprocess.Process, ready: dict[str, Any]) -> None:
        self._process, self.ready = process, ready

    async def call(self, method: str, /, **kwargs: Any) -> Any:
        """Have a client do something; return what that returned. Raises RuntimeError where it raised."""
        said = await self.time(method, **kwargs)
        return said["returned"]

    async def time(self, method: str, /, **kwargs: Any) -> dict[str, Any]:
        """Do the same; return also how many `seconds` it took."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": method, "kwargs": kwargs}).encode() + b"\n")
        await self._process.stdin.drain()
        said = await _next_line(self._process)
        if "raised" in said:
            raise RuntimeError(said["raised"])
        return said

    async def kill(self) -> None:
        """Kill it, as kill -9 does."""
        self._process.kill()
        await self._process.wait()


async def _next_line(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """Return the next line of JSON; the package writes other things too."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.startswith(b"{"):
            said: dict[str, Any] = json.loads(line)
            return said
    raise RuntimeError(f"the peer has ended with {await process.wait()}")


@asynccontextmanager
async def real_peer(python: Path, role: str, folder: Path, *given: str) -> AsyncIterator[RealPeer]:
    """Run a peer that has a folder of its own; see `norfab_real_peer` for what may be `given`."""
    folder.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        python,
        SCRIPT,
        role,
        str(folder),
        *given,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limit=1 << 26,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield RealPeer(process, await _next_line(process))
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(END_S if role == "client" else 0.0):
                await process.wait()
        except TimeoutError:
            if process.returncode is None:
                process.kill()
            await process.wait()
