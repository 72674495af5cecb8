"""`specwire filemq serve` started again: what it has read once it does not read again, unless it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.filemq.digeststore import NAME
from tests.integration.filemq_process import COMMAND, running

STORY_S = 120.0
OCTETS = 200_000_000
"""Much more than a start of Python reads."""

ENDPOINT = "tcp://127.0.0.1:*"

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system counts no reads")


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    with (folder / "large").open("wb") as file:
        file.truncate(OCTETS)
    os.utime(folder / "large", ns=(10**18, 10**18))
    return folder


async def octets_read(*arguments: str, end: signal.Signals = signal.SIGTERM) -> int:
    """Serve until everything is listed; return what the process has read until then."""
    async with running("serve", *arguments, "--endpoint", ENDPOINT) as server:
        await server.line_with("serving 1 file")
        counts = dict(line.split(": ") for line in Path(f"/proc/{server.pid}/io").read_text().splitlines())
        await (server.kill() if end is signal.SIGKILL else server.stop())
        return int(counts["rchar"])


def names(store: Path) -> list[bytes]:
    with closing(sqlite3.connect(store / NAME)) as connection:
        return [name for [name] in connection.execute("SELECT name FROM digest")]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_restart_does_not_read_the_files(source: Path, tmp_path: Path, end: signal.Signals) -> None:
    store = tmp_path / "made" / "when needed"
    arguments = (str(source), "--set", f"digests={store}")

    async def story() -> None:
        assert await octets_read(*arguments, end=end) >= OCTETS
        assert await octets_read(*arguments, end=end) < OCTETS

    run(story)
    assert names(store) == [b"large"]


def test_digests_are_in_the_users_own_caches(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))

    async def story() -> None:
        assert await octets_read(str(source), "--set", "no-digests=true") >= OCTETS
        assert not (tmp_path / "caches").exists()
        assert await octets_read(str(source)) >= OCTETS
        assert await octets_read(str(source)) < OCTETS
        assert await octets_read(str(source), "--set", "no-digests=true") >= OCTETS

    run(story)
    assert names(tmp_path / "caches" / "specwire") == [b"large"]
    assert (tmp_path / "caches" / "specwire").stat().st_mode & 0o077 == 0, "names of files are nobody else's"


def test_store_that_cannot_be_used_stops_nobody(source: Path, tmp_path: Path) -> None:
    """One line in the log, and the files are served."""
    (tmp_path / NAME).mkdir()

    async def story() -> None:
        async with running(
            "serve", str(source), "--endpoint", ENDPOINT, "--set", f"digests={tmp_path}"
        ) as server:
            await server.line_with("serving 1 file")
            await server.stop()
            assert sum("cannot be used" in line for line in server.lines) == 1

    run(story)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--set", "digests=file"), "file is not a folder"),
        (("--set", "digests=new", "--set", "no-digests=true"), "exclude each other"),
    ],
)
def test_user_errors_are_one_sentence(source: Path, options: tuple[str, ...], sentence: str) -> None:
    (source / "file").write_bytes(b"")

    async def story() -> None:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "serve", ".", *options, cwd=source, stderr=asyncio.subprocess.PIPE
        )
        _, complaint = await process.communicate()
        assert process.returncode == 2
        assert sentence in complaint.decode()
        assert "Traceback" not in complaint.decode()

    run(story)
