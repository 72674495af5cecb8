"""Packets of a FILEMQ transfer, recorded by tcpdump as docs/how-to/decode.md says, decode to the rows of the capture of that run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from specwire.generated import filemq, libfilemq
from specwire.runtime.capture import Tap
from specwire.runtime.cli.decode_captures import CaptureRows
from specwire.runtime.cli.decode_sources import Readers, Sources
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import PeerClosed
from specwire.runtime.pcap.recording import Recording
from specwire.runtime.pcap.rows import Row

TIMEOUT_S = 60.0
LOOK_S = 0.05
READERS = Readers((filemq, libfilemq))


class Told(NamedTuple):
    """What of a row does not depend on when and where it was recorded."""

    protocol: str | None
    name: str
    peer: str
    frames: tuple[bytes, ...]
    error: object


@asynccontextmanager
async def tcpdump(port: int, file: Path) -> AsyncIterator[None]:
    """Record a port of the loopback interface while this lasts; skips where that may not be done."""
    program = shutil.which("tcpdump")
    if program is None:
        pytest.skip("there is no tcpdump on this machine")
    # A buffer for all of the transfer, so that a busy machine loses nothing. In KiB.
    arguments = ("-i", "lo", "-U", "-s", "0", "-B", "65536", "-Z", "root")
    running = await asyncio.create_subprocess_exec(
        program, *arguments, "-w", str(file), "tcp", "port", str(port), stderr=asyncio.subprocess.PIPE
    )
    assert running.stderr is not None
    try:
        first = (await running.stderr.readline()).decode()
        if "listening on" not in first:
            pytest.skip(f"tcpdump may not record here: {first.strip()}")
        yield
    finally:
        if running.returncode is None:
            running.send_signal(signal.SIGINT)
        await running.communicate()


def read_packets(file: Path) -> tuple[list[Row], list[str]]:
    notes: list[str] = []
    sources = Sources(READERS, notes.append)
    rows = [row for row in sources.read(str(file)) if row is not None]
    return [*rows, *sources.end()], notes


def read_capture(folder: Path) -> list[Row]:
    return list(CaptureRows(READERS.for_protocol, pytest.fail).read(folder))


def told(rows: list[Row], sender: str) -> list[Told]:
    """One side's messages: between the two sides the order depends on where one stands."""
    return [
        Told(row.protocol, row.name, row.peer, row.frames, row.error) for row in rows if row.sender == sender
    ]


async def transfer(folder: Path, file: Path, capture: Path) -> None:
    tap = Tap.open(capture, protocol="filemq", name="server", edition=filemq.EDITION)
    async with FilemqServer([Publication(folder)], "tcp://127.0.0.1:*", tap=tap) as server:
        found = re.search(r":(\d+)$", server.endpoint)
        assert found is not None
        events = server.events()
        async with tcpdump(int(found[1]), file):
            async with FilemqClient(server.endpoint, file.parent / "inbox", ("/",)) as client:
                await client.until_equal(server.digests("/"), timeout_s=TIMEOUT_S)
            async for event in events:
                if isinstance(event, PeerClosed):
                    break
            while len(read_packets(file)[0]) < tap.recorded:
                await asyncio.sleep(LOOK_S)
    tap.close()


def test_packets_decode_to_the_rows_of_the_capture(tmp_path: Path) -> None:
    """Small files, and one of several chunks that no packet holds whole; and again by way of a capture folder."""
    folder, file, capture = tmp_path / "files", tmp_path / "transfer.pcap", tmp_path / "capture"
    folder.mkdir()
    for number in range(5):
        (folder / f"small {number}").write_bytes(b"%d" % number)
    (folder / "large").write_bytes(os.urandom(5_000_000))
    asyncio.run(asyncio.wait_for(transfer(folder, file, capture), TIMEOUT_S))

    captured = read_capture(capture)
    packets, notes = read_packets(file)
    assert notes == []
    assert {row.name for row in captured} >= {"Ohai", "OhaiOk", "Icanhaz", "Nom", "Cheezburger"}
    for sender in ("C", "S"):
        assert told(packets, sender) == told(captured, sender)
    assert {row.sender for row in packets} == {"C", "S"}

    recording = Recording(tmp_path / "again")
    for row in packets:
        recording.add(row, filemq.EDITION)
    recording.flush()
    again = read_capture(tmp_path / "again")
    assert [(row.ts, row.sender, row.frames) for row in again] == [
        (row.ts, row.sender, row.frames) for row in packets
    ]
