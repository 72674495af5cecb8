"""`specwire filemq` as processes: log lines, clean stops, and a kill in the middle that loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specwire.runtime.filemq import FilemqServer, Publication
from tests.integration.filemq_watch import Role, watch_capture
from tests.integration.tcp_proxy import TcpProxy
from tests.runtime.cli.commands import specwire

TIMEOUT_S = 120.0
COMMAND = [sys.executable, "-m", "specwire.runtime.cli.main", "filemq"]
HIDDEN = ".specwire-inbox"
ROLES: tuple[Role, ...] = ("C", "S")


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `specwire filemq` and kill it in the end, if it still runs."""
    started = await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, stderr=asyncio.subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def line_with(running: asyncio.subprocess.Process, text: str) -> str:
    assert running.stderr is not None
    async for line in running.stderr:
        if text in line.decode():
            return line.decode()
    raise AssertionError(f"the process ended without saying {text!r}")


def read_tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and HIDDEN not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a file").write_bytes(b"content")
    return folder


def test_serve_and_subscribe(tmp_path: Path, source: Path) -> None:
    """Two processes: the file arrives, changes follow, both stop cleanly on a signal, and none breaks the dialog."""
    inbox, captures = tmp_path / "inbox", {role: tmp_path / role for role in ROLES}

    async def story() -> None:
        serve = ("serve", str(source), "--endpoint", "tcp://127.0.0.1:*", "--capture", str(captures["S"]))
        async with process(*serve) as server:
            endpoint = (await line_with(server, "serving 1 file on")).split()[-1]
            subscribe = ("subscribe", endpoint, "/", "--inbox", str(inbox), "--capture", str(captures["C"]))
            async with process(*subscribe) as client:
                await line_with(client, "received /a file (7 octets")
                (source / "second").write_bytes(b"2")
                await line_with(client, "received /second")
                (source / "second").unlink()
                await line_with(client, "deleted /second")
                client.send_signal(signal.SIGINT)
                await line_with(client, "stopping")
                assert await client.wait() == 0
            server.send_signal(signal.SIGTERM)
            await line_with(server, "stopping")
            assert await server.wait() == 0

    asyncio.run(story())
    assert read_tree(inbox) == {"a file": b"content"}
    for role in ROLES:
        watch = watch_capture(captures[role], role)
        assert watch.seen["S:Cheezburger"] >= 5 and not watch.violations, watch.violations


def test_capture_holds_both_directions(tmp_path: Path, source: Path) -> None:
    segments = pytest.importorskip("specwire.runtime.capture.segments")
    assert segments
    import pyarrow.parquet

    capture = tmp_path / "capture"

    async def story() -> None:
        server = FilemqServer([Publication(source)])
        async with server:
            arguments = ("subscribe", server.endpoint, "/", "--inbox", str(tmp_path / "a"))
            async with process(*arguments, "--capture", str(capture)) as client:
                await line_with(client, "received")
                client.send_signal(signal.SIGTERM)
                assert await client.wait() == 0

    asyncio.run(story())
    rows = [row for path in capture.glob("*.parquet") for row in pyarrow.parquet.read_table(path).to_pylist()]
    assert {row["sender"] for row in rows} == {"C", "S"}
    assert {row["protocol"] for row in rows} == {"filemq"}
    assert len({row["conversation"] for row in rows}) == 1


def test_killed_client_resumes(tmp_path: Path, source: Path) -> None:
    """kill -9 in the middle, three times: no half file is ever visible, and in the end all is there.

    Each time so much is let through that the client is certain to have files, and not the last of them.
    """
    octets, files = 1_000_000, 40
    for i in range(files):
        (source / f"{i:02}").write_bytes(os.urandom(octets))
    inbox = tmp_path / "inbox"
    whole = read_tree(source)
    kills = (3, 6, 9)
    assert sum(seen + 1 for seen in kills) < files

    async def story() -> None:
        async with FilemqServer([Publication(source)], timers={"heartbeat": 0.2, "expiry": 10.0}) as server:
            for seen in kills:
                async with TcpProxy(server.endpoint) as proxy:
                    proxy.hold_after((seen + 1) * octets)
                    subscribe = ("subscribe", proxy.endpoint, "/", "--inbox", str(inbox))
                    async with process(*subscribe) as client:
                        for _ in range(seen):
                            await line_with(client, "received")
                        client.send_signal(signal.SIGKILL)
                        await client.wait()
                    held = read_tree(inbox)
                    assert len(held) >= seen
                    assert held.items() <= whole.items()
            async with process("subscribe", server.endpoint, "/", "--inbox", str(inbox)) as client:
                while read_tree(inbox).keys() != whole.keys():
                    await line_with(client, "received")
                client.send_signal(signal.SIGTERM)
                assert await client.wait() == 0
        assert read_tree(inbox) == whole

    asyncio.run(story())


@pytest.mark.parametrize(
    ("arguments", "sentence", "status"),
    [
        (("serve", "{tmp}/missing"), "is not a folder", 2),
        (("serve", "{tmp}/source", "{tmp}/source"), "overlapping paths", 2),
        (("serve", "{tmp}/source=/a/../b"), "'..'", 2),
        (("serve", "{tmp}/source", "--endpoint", "tcp://nowhere"), "'tcp://nowhere' names no port", 2),
        (("serve", "{tmp}/source", "--endpoint", "tcp://127.0.0.1:99999"), "port 99999, and the highest", 2),
        (("serve", "{tmp}/source", "--endpoint", "udp://127.0.0.1:5"), "is no endpoint", 2),
        (
            ("serve", "{tmp}/source", "--endpoint", "tcp://192.0.2.1:5", "--insecure"),
            "cannot listen on tcp://192.0.2.1:5",
            1,
        ),
        (("serve", "{tmp}/source", "--endpoint", "tcp://a b:5"), "has the host 'a b', which is none", 2),
        (("serve", "{tmp}/source", "--set", "report-every=-1"), "--set report-every", 2),
        (("serve", "{tmp}/source", "--capture", "{tmp}/source/a file"), "--capture: ", 2),
        (("serve", "{tmp}/source", "--protocol", "zre"), "known: filemq, libfilemq", 2),
        (
            ("subscribe", "tcp://127.0.0.1:1", "/", "--inbox", "{tmp}/a", "--protocol", ""),
            "expected text, not ''",
            2,
        ),
        (("subscribe", "tcp://127.0.0.1:1", "photos", "--inbox", "{tmp}/a"), "'photos' is not a full", 2),
        (("subscribe", "tcp://127.0.0.1:1", "/", "--inbox", "{tmp}/source/a file"), "is not a folder", 2),
        (
            ("subscribe", "tcp://127.0.0.1:1", "/", "--inbox", "{tmp}/source/a file/b"),
            "it is not a folder",
            1,
        ),
        (("subscribe", "tcp://127.0.0.1:*", "/", "--inbox", "{tmp}/a"), "no port to connect to", 2),
        (("subscribe", "tcp://a b:5", "/", "--inbox", "{tmp}/a"), "has the host 'a b', which is none", 2),
        (("subscribe", "nowhere", "/", "--inbox", "{tmp}/a"), "'nowhere' is no endpoint", 2),
    ],
)
def test_user_errors_are_one_sentence(
    tmp_path: Path,
    source: Path,
    arguments: tuple[str, ...],
    sentence: str,
    status: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    filled = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    done = specwire(capfd, "filemq", *filled)
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert (done.status, done.out) == (status, "")


def test_dry_run_of_a_server(tmp_path: Path, source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It names what would be published and what would not, and neither listens nor writes anything."""
    (source / "notes.tmp").write_bytes(b"12")
    (source / "link").symlink_to("a file")
    (source / "none").mkdir()
    before = sorted(tmp_path.rglob("*"))
    arguments = (
        "--dry-run",
        "--empty-folders",
        "--ignore",
        "*.tmp",
        "--set",
        f"digests={tmp_path}",
        str(source),
    )
    run = specwire(capfd, "filemq", "serve", *arguments)
    assert run.out.splitlines() == [
        "publish /a file (7 octets)",
        "refuse /link: is a symbolic link, and not published",
        "publish /none/ (0 octets)",
        "1 file, 7 octets",
    ]
    assert sorted(tmp_path.rglob("*")) == before
