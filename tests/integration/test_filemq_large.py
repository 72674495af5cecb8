"""One very large file between two processes, whole and with little memory; at full size in ``make soak``.

`SPECWIRE_LARGE_OCTETS` is its size, in ``make soak`` 5 GB, so that offsets pass 2^32. It is nearly all hole, so that it
costs its publisher no disk; the inbox gets it in full.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from tests.integration.filemq_process import kept_endpoint, running

OCTETS = int(os.environ.get("SPECWIRE_LARGE_OCTETS", "50_000_000"))
STORY_S = 60 + OCTETS / 10_000_000
MEMORY_KIB = 100 * 1024


def most_memory_kib(pid: int) -> int:
    """Return the largest resident set that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def sha1(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest().upper()


def test_one_large_file(tmp_path: Path) -> None:
    """Its octets around 2^32, if it has them, and at its ends are no zeros; the digest is that of the source."""
    if shutil.disk_usage(tmp_path).free < 2 * OCTETS:
        pytest.skip(f"less than {2 * OCTETS:,} octets are free in {tmp_path}")
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    with (source / "large").open("wb") as file:
        file.truncate(OCTETS)
        for place in (0, OCTETS // 3, 2**31 - 500, 2**32 - 500, OCTETS - 1000):
            if place + 1000 <= OCTETS:
                os.pwrite(file.fileno(), os.urandom(1000), place)

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with (
                asyncio.timeout(STORY_S),
                running("serve", str(source), "--endpoint", endpoint) as server,
                running("subscribe", endpoint, "/", "--inbox", str(inbox)) as client,
            ):
                line = await client.line_with("received /large")
                memory = most_memory_kib(server.pid), most_memory_kib(client.pid)
                await client.stop()
                await server.stop()
        assert f"{OCTETS:,} octets" in line
        assert sha1(source / "large") in line
        print(f"{OCTETS:,} octets; most memory of server and client: {memory[0]:,} and {memory[1]:,} KiB")
        assert max(memory) < MEMORY_KIB

    asyncio.run(story())
    assert (inbox / "large").stat().st_size == OCTETS
    assert sha1(inbox / "large") == sha1(source / "large")
    (inbox / "large").unlink()  # pytest keeps the folders of three runs
