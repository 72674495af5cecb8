"""Thousands of changes at once while a client is subscribed: none is missed, without the rescan from time to time.

`SPECWIRE_BURST` is the number of changes (1,000); `SPECWIRE_SEED` repeats a run whose seed was printed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.filemq_scene import digests, own_files, run, serving, subscribing

CHANGES = int(os.environ.get("SPECWIRE_BURST", "1000"))
SEED = int(os.environ.get("SPECWIRE_SEED", random.randrange(2**32)))
EQUAL_S = 100.0
QUEUE_LIMIT = Path("/proc/sys/fs/inotify/max_queued_events")
MOST_EVENTS = 200_000


def change(folder: Path, rng: random.Random) -> None:
    """Create, write over, rename or delete a file, in folders that come and go with their files."""
    names = [folder / f"folder {n % 9}" / f"{n % 4}" / f"{n}.dat" for n in range(CHANGES // 3)]
    for _ in range(CHANGES):
        name = rng.choice(names)
        match rng.choice(("write", "write", "delete", "rename", "empty", "append")):
            case "delete" if name.exists():
                name.unlink()
                if not any(name.parent.iterdir()):
                    name.parent.rmdir()
            case "rename" if name.exists():
                other = rng.choice(names)
                other.parent.mkdir(parents=True, exist_ok=True)
                name.rename(other)
            case "append" if name.exists():
                with name.open("ab") as file:
                    file.write(rng.randbytes(10))
            case kind:
                name.parent.mkdir(parents=True, exist_ok=True)
                name.write_bytes(b"" if kind == "empty" else rng.randbytes(rng.randrange(2000)))


def test_burst_of_changes(tmp_path: Path) -> None:
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    print(f"SPECWIRE_SEED={SEED}")

    async def story() -> None:
        async with serving(source) as (server, _), subscribing(server.endpoint, inbox) as (client, _):
            (source / "first").write_bytes(b"first")
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            await asyncio.to_thread(change, source, random.Random(SEED))
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert client.counters.refusals == 0
            assert client.counters.peerings == 1
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)


@pytest.mark.skipif(not QUEUE_LIMIT.exists(), reason="the system's notifications are not those of Linux")
def test_more_notifications_than_the_system_keeps(tmp_path: Path) -> None:
    """While the watching process is stopped, its queue overflows with changes of two files; a third comes last.

    The kernel drops what it has no room for, so of the third file nothing is ever notified.
    """
    events = int(QUEUE_LIMIT.read_text()) + 1000
    if events > MOST_EVENTS:
        pytest.skip(f"the system's queue holds {events:,} events, too many to fill")
    for name in ("a", "b"):
        (tmp_path / name).touch()

    async def story() -> None:
        watching = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.watching_process",
            str(tmp_path),
            stdout=subprocess.PIPE,
        )
        assert watching.stdout is not None
        try:
            await until_line(watching.stdout, b"watching\n")
            await asyncio.to_thread(overflow, watching.pid, events, tmp_path)
            await until_line(watching.stdout, b"/last 4\n")
        finally:
            watching.kill()
            await watching.wait()

    run(story)


def overflow(process: int, events: int, folder: Path) -> None:
    """Stop a process meanwhile, write `events` times into the files `a` and `b`, and then make `last`."""
    os.kill(process, signal.SIGSTOP)
    os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOWAIT)
    try:
        with (folder / "a").open("ab", buffering=0) as a, (folder / "b").open("ab", buffering=0) as b:
            for _ in range(events // 2):  # in turn: the kernel keeps the same event in a row as one
                a.write(b"x")
                b.write(b"x")
        (folder / "last").write_text("last")
    finally:
        os.kill(process, signal.SIGCONT)


async def until_line(stream: asyncio.StreamReader, wanted: bytes) -> None:
    """Return once a process has printed this line."""
    async for line in stream:
        if line == wanted:
            return
    raise AssertionError(f"the process ended without printing {wanted!r}")
