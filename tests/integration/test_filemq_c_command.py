"""`specwire filemq --protocol libfilemq` as processes against the played C programs, and what a capture of it holds."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from specwire.generated import libfilemq
from tests.integration.test_filemq_c_client import in_step_without_server
from tests.integration.test_filemq_c_server import c_server
from tests.integration.test_filemq_command import TIMEOUT_S, line_with, process
from tests.runtime.filemq.c_client import CClient

CHOICE = ("--protocol", "libfilemq")


def read_capture(folder: Path) -> list[dict[str, object]]:
    """The rows of a capture in their order, each segment's statement of protocol and edition checked."""
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[dict[str, object]] = []
    for path in sorted(folder.glob("*.parquet")):
        table = parquet.read_table(path)
        metadata = table.schema.metadata
        assert metadata[b"specwire.protocol"] == b"libfilemq"
        assert metadata[b"specwire.edition"] == libfilemq.EDITION.encode()
        rows += table.to_pylist()
    return rows


def replay(rows: list[dict[str, object]]) -> Counter[str]:
    """Decode every row with the generated codec and show it to the generated machine; count the messages."""
    sessions: dict[object, libfilemq.machine.Session] = {}
    seen: Counter[str] = Counter()
    for row in rows:
        frames, sender = row["frames"], row["sender"]
        assert isinstance(frames, list) and isinstance(sender, str)
        message = libfilemq.decode(frames)
        session = sessions.setdefault(row["conversation"], libfilemq.machine.Session(role="S"))
        assert session.observe(sender, message) is None
        seen[f"{sender}:{message.NAME}"] += 1
    return seen


def test_serving_the_c_client(tmp_path: Path) -> None:
    source, inbox, capture = tmp_path / "source", tmp_path / "inbox", tmp_path / "capture"
    source.mkdir()
    inbox.mkdir()
    (source / "a file").write_bytes(b"content")
    (source / "large").write_bytes(b"x" * 3_000_000)

    async def story() -> None:
        options = ("--endpoint", "tcp://127.0.0.1:*", *CHOICE, "--capture", str(capture))
        async with process("serve", str(source), *options) as server:
            endpoint = (await line_with(server, "serving 2 files on")).split()[-1]
            client = CClient(endpoint, inbox)
            running = asyncio.create_task(client.run())
            await in_step_without_server(client, source)
            (source / "large").write_bytes(b"y" * 20)
            await in_step_without_server(client, source)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()
            await line_with(server, "said KTHXBAI")
            server.send_signal(signal.SIGTERM)
            assert await server.wait() == 0
        assert client.faults == []

    asyncio.run(story())
    seen = replay(read_capture(capture))
    assert (
        seen["C:OHAI"]
        == seen["S:OHAI-OK"]
        == seen["C:ICANHAZ"]
        == seen["S:ICANHAZ-OK"]
        == seen["C:KTHXBAI"]
        == 1
    )
    assert seen["S:CHEEZBURGER"] >= 8


def test_reading_from_the_c_server(tmp_path: Path) -> None:
    inbox, capture = tmp_path / "inbox", tmp_path / "capture"

    async def story() -> None:
        async with c_server() as server:
            options = ("--inbox", str(inbox), *CHOICE, "--capture", str(capture))
            async with process("subscribe", server.endpoint, "/", *options) as client:
                await server.until(lambda s: s.is_subscribed("/"))
                await server.create("/a file", b"x" * 2_500_000)
                await line_with(client, "received /a file (2,500,000 octets")
                await server.delete("/a file")
                await line_with(client, "deleted /a file")
                client.send_signal(signal.SIGTERM)
                assert await client.wait() == 0

    asyncio.run(story())
    seen = replay(read_capture(capture))
    assert seen["S:CHEEZBURGER"] == 5
    assert seen["C:KTHXBAI"] == 1


def test_help_names_what_can_be_spoken() -> None:
    for command in ("serve", "subscribe"):
        arguments = [sys.executable, "-m", "specwire.runtime.cli.main", "filemq", command, "--help"]
        done = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        words = " ".join(done.stdout.replace("│", " ").split())
        assert "filemq (the specification), libfilemq (the C implementation)" in words
