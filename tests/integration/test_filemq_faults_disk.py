"""No room for a file: told once for each try, the rest goes on, and the file comes when there is room."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.filemq.events import FileReceived
from specwire.runtime.kernel.log import Refused
from tests.integration.filemq_process import running
from tests.integration.filemq_scene import digests, event_of, own_files, run, serving, subscribing

MEBI = 1 << 20
DISK_OCTETS = 8 * MEBI
EQUAL_S = 100.0
TIMES = {"heartbeat": 0.5, "expiry": 30.0, "reconnect": 0.05}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_OCTETS}", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Take every octet that is left on a disk."""
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, bytes(4096))
    except OSError:
        pass
    finally:
        os.close(descriptor)


def test_full_disk_is_told_of_and_its_file_comes_later(
    tmp_path: Path, source: Path, small_disk: Path
) -> None:
    """A file too large for what is left does not come; smaller ones do; all are there once there is room."""
    (source / "large").write_bytes(random.Random(1).randbytes(5 * MEBI))
    (source / "small").write_bytes(b"fits")
    ballast, inbox = small_disk / "ballast", small_disk / "inbox"
    ballast.write_bytes(bytes(4 * MEBI))

    async def story() -> None:
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, heard),
        ):
            events = client.events()
            refused = await event_of(events, Refused)
            assert refused.name == "/large"
            assert refused.reason.startswith("No space left on device; it is asked for")
            await event_of(events, FileReceived, lambda event: event.path == "/small")
            (source / "made while it was full").write_bytes(b"fits too")
            await event_of(events, FileReceived, lambda event: event.path == "/made while it was full")
            assert "/large" not in digests(inbox)
            ballast.unlink()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert client.counters.peerings == 1
            assert client.counters.refusals < heard.begun["/large"], "told once for each try that failed"
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)


def test_disk_without_an_octet_left(tmp_path: Path, source: Path, small_disk: Path) -> None:
    """Not even a folder or a line of the journal finds room; deletions and new versions come later."""
    ballast, inbox = small_disk / "ballast", small_disk / "inbox"
    for name in ("first", "second"):
        (source / name).write_text(name)

    async def story() -> None:
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, _),
        ):
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            held = digests(inbox)
            fill(ballast)
            events = client.events()
            (source / "first").write_bytes(bytes(MEBI))
            (source / "deep" / "er").mkdir(parents=True)
            (source / "deep" / "er" / "new").write_bytes(b"new")
            refused = await event_of(events, Refused)
            assert refused.reason == "No space left on device; it is asked for again"
            assert digests(inbox).items() >= held.items(), "the versions held are untouched"
            (source / "second").unlink()
            ballast.unlink()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert client.counters.peerings == 1
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)


def test_limit_of_the_process_spoils_one_file_and_not_the_client(tmp_path: Path, source: Path) -> None:
    """The system cuts a write short in a real subscriber: its own limit on the size of a file is reached."""
    inbox = tmp_path / "inbox"
    (source / "small").write_bytes(b"small")
    content = random.Random(2).randbytes(4 * MEBI)

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            running("subscribe", server.endpoint, "/", "--inbox", str(inbox)) as client,
        ):
            await client.line_with("received /small")
            limits = resource.prlimit(client.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(client.pid, resource.RLIMIT_FSIZE, (MEBI, limits[1]))
            (source / "large").write_bytes(content)
            await client.line_with("refused /large: File too large")
            (source / "after").write_bytes(b"after")
            await client.line_with("received /after")
            assert digests(inbox).keys() == {"/small", "/after"}
            assert sum("refused" in line for line in client.lines) == 1
            resource.prlimit(client.pid, resource.RLIMIT_FSIZE, limits)
            (source / "large").write_bytes(content[::-1])
            await client.line_with(digests(source)["/large"])
            await client.stop()
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)
