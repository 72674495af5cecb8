"""A measurement that cannot come to its end says so, and why."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.benchmarks.flux import watching
from tests.benchmarks.flux.watching import Progress, Watch
from tests.integration.filemq_process import PeerProcess

LINE = "print('here', file=sys.stderr, flush=True)"


@asynccontextmanager
async def process() -> AsyncIterator[PeerProcess]:
    """One that says something and then waits for ever."""
    started = PeerProcess(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", f"import sys; {LINE}; sys.stdin.read()"),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    )
    try:
        await started.line_with("here")
        yield started
    finally:
        await started.end()


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


def test_process_that_ends_is_named() -> None:
    async def main() -> None:
        async with process() as one, process() as other:
            watch = Watch({"one": one, "other": other})
            await other.kill()
            with pytest.raises(
                SystemExit, match=r"(?s)^work: other ended in the middle.*one, .*state S.*here"
            ):
                await watch.see_through("work", for_ever(), Progress())

    asyncio.run(main())


def test_stall_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "STALL_S", 0.02)
    monkeypatch.setattr(watching, "LOOK_S", 0.01)
    progress = Progress()
    progress.done = 7

    with pytest.raises(SystemExit, match=r"work: nothing for 0\.02 s after 7 messages"):
        asyncio.run(Watch({}).see_through("work", for_ever(), progress))


def test_what_gets_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes."""
    monkeypatch.setattr(watching, "STALL_S", 0.02)
    monkeypatch.setattr(watching, "LOOK_S", 0.0)
    progress = Progress()

    async def work() -> None:
        for _ in range(100):
            progress.done += 1
            await asyncio.sleep(0)

    asyncio.run(Watch({}).see_through("work", work(), progress))
    assert progress.done == 100


def test_error_is_told() -> None:
    async def work() -> None:
        raise ConnectionResetError("gone")

    with pytest.raises(SystemExit, match=r"work: ConnectionResetError\('gone'\) after 0 messages"):
        asyncio.run(Watch({}).see_through("work", work(), Progress()))
