"""A disk that fills up while a server captures: the traffic goes on, the capture counts what it drops, and goes on later."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specwire.runtime.capture import Limits, Tap
from specwire.runtime.capture.segments import find_segments
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from tests.integration.test_filemq_faults_disk import small_disk

__all__ = ["small_disk"]

TIMEOUT_S = 100.0
MEBI = 1 << 20


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.05)


def test_traffic_comes_first(tmp_path: Path, small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Twenty megabytes pass by a capture on a disk of eight; with space again, what follows is captured."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(5 * MEBI))
    (source / "large").write_bytes(random.Random(1).randbytes(20 * MEBI))
    limits = Limits(segment_s=0.1, segment_octets=MEBI, free_octets=MEBI)

    async def fetch(server: FilemqServer) -> None:
        async with FilemqClient(server.endpoint, inbox, ["/"], sync=False) as client:
            await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)

    async def story(tap: Tap) -> None:
        async with asyncio.timeout(2 * TIMEOUT_S), FilemqServer([Publication(source)], tap=tap) as server:
            await fetch(server)
            await asyncio.to_thread(wait_until, lambda: tap.written + tap.dropped == tap.recorded)
            assert tap.dropped > 0
            assert os.statvfs(small_disk).f_bavail > 0, "something is left for others"
            ballast.unlink()
            written = tap.written
            (source / "small").write_bytes(b"1")
            await server.rescan()
            await fetch(server)
            await asyncio.to_thread(wait_until, lambda: tap.written > written)

    with Tap.open(small_disk / "capture", protocol="filemq", name="server", limits=limits) as tap:
        asyncio.run(story(tap))
    assert (inbox / "large").read_bytes() == (source / "large").read_bytes()
    segments = find_segments(small_disk / "capture")
    assert sum(segment.rows for segment in segments) == tap.recorded - tap.dropped
    assert segments[-1].dropped == tap.dropped
    told = [entry.levelno for entry in caplog.records if entry.name == "specwire.runtime.capture.tap"]
    assert told[:2] == [logging.ERROR, logging.WARNING]
