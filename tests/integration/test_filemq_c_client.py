"""Our server and the client of libfilemq, which is played by `c_client` as it was measured, on real sockets.

All traffic is watched by the generated dialog machine of libfilemq, and neither side may break the dialog.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specwire.generated import libfilemq
from specwire.generated.errors import Violation
from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication
from specwire.runtime.filemq.events import FilePublished, FileWithdrawn, PeerClosed
from tests.runtime.filemq import c_wire
from tests.runtime.filemq.c_client import CClient
from tests.runtime.filemq.c_wire import CREATE, DELETE

TIMEOUT_S = 120.0
CHUNK = 100_000
EMPTY_SHA1 = "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709"


class Monitor:
    """A tap that reads all messages with the generated codec and shows them to the generated machine."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.sent: list[str] = []
        self._sessions: dict[str, libfilemq.machine.Session] = {}

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        message = libfilemq.decode(frames)
        self.sent.append(f"{sender}:{message.NAME}")
        session = self._sessions.setdefault(conversation, libfilemq.machine.Session(role="S"))
        violation = session.observe(sender, message)
        if violation is not None:
            self.violations.append(violation)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story()

    asyncio.run(bounded())


@asynccontextmanager
async def serving(
    source: Path, *, path: str = "/", timers: dict[str, float] | None = None
) -> AsyncIterator[tuple[FilemqServer, Monitor]]:
    monitor = Monitor()
    server = FilemqServer(
        [Publication(source, path)], protocol="libfilemq", tap=monitor, chunk_octets=CHUNK, timers=timers
    )
    async with server:
        yield server, monitor
    assert monitor.violations == []


@asynccontextmanager
async def c_client(
    server: FilemqServer, inbox: Path, *, path: str = "/", interval_s: float = 5.0
) -> AsyncIterator[CClient]:
    inbox.mkdir(exist_ok=True)
    client = CClient(server.endpoint, inbox, path=path, interval_s=interval_s)
    running = asyncio.create_task(client.run())
    try:
        await client.until(lambda c: c.subscribed)
        yield client
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()
    assert client.faults == []


def read_tree(folder: Path) -> dict[str, bytes]:
    return {f"/{p.relative_to(folder)}": p.read_bytes() for p in folder.rglob("*") if p.is_file()}


async def in_step(server: FilemqServer, client: CClient, source: Path) -> None:
    """Wait until the client's inbox holds what is published now."""
    await server.rescan()
    await in_step_without_server(client, source)


async def in_step_without_server(client: CClient, source: Path) -> None:
    """Wait until the client's inbox holds what the folder holds; the server may have to notice first."""
    expected = read_tree(source)
    await client.until(lambda c: len(c.closed) == len(expected) and c.closed == expected)
    assert client.files() == expected


@pytest.mark.parametrize("before", [True, False], ids=["before the client", "while it is connected"])
def test_files_of_every_size_and_name(tmp_path: Path, source: Path, before: bool) -> None:
    """Files that are there when the client comes, which cannot ask for them, and files that come later."""
    names = {
        "empty": 0,
        "one": 1,
        "chunk": CHUNK,
        "chunk+1": CHUNK + 1,
        "3 MB": 3_000_000,
        "12 MB": 12_000_000,
    }
    files = {name: random.Random(name).randbytes(size) for name, size in names.items()}
    files |= {
        "with space": b"1",
        "ünïcode ✓/文件": b"2",
        "deep/er/and/deeper": b"3",
        "n" * 200 + "/" + "m" * 200: b"4",
    }

    def write() -> None:
        for name, content in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(content)

    async def story() -> None:
        if before:
            write()
        async with serving(source) as (server, _), c_client(server, tmp_path / "inbox") as client:
            if not before:
                write()
            await in_step(server, client, source)
            ends = {patch.name: patch for patch in client.patches if patch.eof}
            assert {name: end.offset for name, end in ends.items()} == {
                f"/{name}": len(content) for name, content in files.items()
            }
            assert ends["/empty"].headers == {"size": "0", "sha-1": EMPTY_SHA1}

    run(story)


def test_many_files_one_after_the_other(tmp_path: Path, source: Path) -> None:
    for i in range(1500):
        (source / f"{i}.txt").write_bytes(b"x" * i)

    async def story() -> None:
        async with serving(source) as (server, _), c_client(server, tmp_path / "inbox") as client:
            await in_step(server, client, source)
            assert [patch.sequence for patch in client.patches] == list(range(len(client.patches)))

    run(story)


def test_new_versions_leave_no_tail(tmp_path: Path, source: Path) -> None:
    """The client writes over the file it has; the deletion before a new version rids it of the old one's end."""
    (source / "file").write_bytes(b"x" * 250_000)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "file").write_bytes(b"y" * 700_000)  # of a visit long ago

    async def story() -> None:
        async with serving(source) as (server, _), c_client(server, tmp_path / "inbox") as client:
            await in_step(server, client, source)
            for content in (b"shorter", b"", b"longer again" * 1000, b"z"):
                (source / "file").write_bytes(content)
                await in_step(server, client, source)

    run(story)


def test_new_file_leaves_no_tail_of_a_forgotten_one(tmp_path: Path, source: Path) -> None:
    """The client has a longer file of a visit long ago, of which the server knows nothing."""
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "new").write_bytes(b"y" * 700_000)

    async def story() -> None:
        async with serving(source) as (server, _), c_client(server, tmp_path / "inbox") as client:
            watch = server.events()
            (tmp_path / "aside").write_bytes(b"content")
            os.rename(tmp_path / "aside", source / "new")
            async for event in watch:
                if isinstance(event, FilePublished):
                    break
            await in_step(server, client, source)
            assert [patch.operation for patch in client.patches] == [DELETE, CREATE, CREATE]
            assert client.files() == {"/new": b"content"}

    run(story)


def test_deletions(tmp_path: Path, source: Path) -> None:
    """A deletion counts in `sequence`; a file deleted and made anew has nothing of the old one."""
    for name in ("a", "b", "c"):
        (source / name).write_bytes(name.encode() * 10)

    async def story() -> None:
        async with serving(source) as (server, _), c_client(server, tmp_path / "inbox") as client:
            await in_step(server, client, source)
            (source / "a").unlink()
            await in_step(server, client, source)
            assert client.patches[-1].operation == DELETE
            (source / "b").unlink()
            (source / "b").write_bytes(b"b")
            await in_step(server, client, source)
            assert client.files() == {"/b": b"b", "/c": b"c" * 10}

    run(story)


def test_file_that_changes_while_it_is_sent_is_closed_and_begun_anew(tmp_path: Path, source: Path) -> None:
    """Nothing of the first version is left, and the file after it gets none of its octets."""
    (source / "large").write_bytes(b"1" * 30_000_000)

    async def story() -> None:
        async with serving(source) as (server, _), c_client(server, tmp_path / "inbox") as client:
            await client.until(lambda c: len(c.patches) > 5)
            (source / "large").write_bytes(b"2" * 50_000)
            (source / "next").write_bytes(b"next")
            await in_step(server, client, source)

    run(story)


def test_file_that_goes_while_it_is_sent_is_closed_and_deleted(tmp_path: Path, source: Path) -> None:
    (source / "large").write_bytes(b"1" * 30_000_000)

    async def story() -> None:
        async with serving(source) as (server, _), c_client(server, tmp_path / "inbox") as client:
            watch = server.events()
            await client.until(lambda c: len(c.patches) > 5)
            (source / "large").unlink()
            async for event in watch:
                if isinstance(event, FileWithdrawn):
                    break
            (source / "next").write_bytes(b"next")
            await in_step(server, client, source)
            assert client.files() == {"/next": b"next"}

    run(story)


def test_only_what_is_below_the_path_is_sent(tmp_path: Path, source: Path) -> None:
    """`/foo` does not cover `/foobar`, as it does for the C server."""
    for name in ("foo/a", "foobar/b", "other/c"):
        written_below(source / name)

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            c_client(server, tmp_path / "inbox", path="/foo") as client,
        ):
            await client.until(lambda c: "/foo/a" in c.closed)
            written_below(source / "foobar/later")
            written_below(source / "foo/later")
            await server.rescan()
            await client.until(lambda c: "/foo/later" in c.closed)
            assert set(client.files()) == {"/foo/a", "/foo/later"}

    run(story)


def written_below(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"content")


def test_idle_client_is_answered_and_not_asked(tmp_path: Path, source: Path) -> None:
    """Seven silent intervals of the client pass; without answers it gives up after five."""

    async def story() -> None:
        timers = {"heartbeat": 0.05, "expiry": 30.0}
        async with (
            serving(source, timers=timers) as (server, monitor),
            c_client(server, tmp_path / "inbox", interval_s=0.3) as client,
        ):
            await client.until(lambda c: c.hugz_answered >= 7)
            assert server.clients == 1
        assert {name for name in monitor.sent if name[0] == "S"} == {"S:OHAI-OK", "S:ICANHAZ-OK", "S:HUGZ-OK"}

    run(story)


def test_server_that_stops_says_nothing(tmp_path: Path, source: Path) -> None:
    """KTHXBAI of a server would halt the C client; so it goes without a word, and the client notices by itself."""

    async def story() -> None:
        async with serving(source) as (server, monitor):
            async with c_client(server, tmp_path / "inbox", interval_s=0.3) as client:
                await server.stop()
                await client.until(lambda c: c.ended == "the server is not reachable")
            await server.start()  # for the end of `serving`
        assert "S:KTHXBAI" not in monitor.sent

    run(story)


def test_forgotten_client_gets_rtfm(tmp_path: Path, source: Path) -> None:
    """A client that was silent for the expiry time is dropped without a word; its next message gets RTFM."""

    async def story() -> None:
        async with serving(source, timers={"heartbeat": 0.1, "expiry": 2.0}) as (server, monitor):
            watch = server.events()
            async with c_client(server, tmp_path / "inbox", interval_s=60) as client:
                async for event in watch:
                    if isinstance(event, PeerClosed):
                        assert event.reason.startswith("silent for")
                        break
                assert [name for name in monitor.sent if name[0] == "S"] == ["S:OHAI-OK", "S:ICANHAZ-OK"]
                await client.say(c_wire.plain(c_wire.HUGZ))
                await client.until(lambda c: c.ended is not None)
                assert client.ended == "129: HUGZ before OHAI"

    run(story)


@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        (c_wire.plain(3), "129: "),
        (c_wire.ohai()[:-1] + b"\x01", "129: OHAI.version"),
        (c_wire.plain(c_wire.NOM) + b"\0" * 15, "129: NOM"),
        (c_wire.plain(c_wire.ICANHAZ) + b"\0\0\0\1/\xff\xff\xff\xff", "129: ICANHAZ"),
        (c_wire.nom(2**64 - 1), "128: NOM brings the credit"),
        (c_wire.icanhaz("/../x"), "128: /../x"),
    ],
    ids=["unknown", "version", "short", "count", "credit", "path"],
)
def test_bad_messages_end_one_client_and_no_server(
    tmp_path: Path, source: Path, frame: bytes, answer: str
) -> None:
    """What ends the C server is answered by ours with RTFM or SRSLY, never with WAT, and others are served on."""
    (source / "file").write_bytes(b"content")

    async def story() -> None:
        server = FilemqServer([Publication(source)], protocol="libfilemq")
        async with server, c_client(server, tmp_path / "a") as good, c_client(server, tmp_path / "b") as bad:
            await in_step(server, good, source)
            await bad.say(frame)
            await bad.until(lambda c: c.ended is not None)
            assert bad.ended is not None and bad.ended.startswith(answer)
            (source / "more").write_bytes(b"more")
            await in_step(server, good, source)

    run(story)


def test_our_own_client_speaks_it_too(tmp_path: Path, source: Path) -> None:
    """Between our own peers: digests are compared, files are verified, and new versions replace old ones whole."""
    for i in range(1200):
        (source / f"{i}").write_bytes(str(i).encode())

    async def story() -> None:
        async with serving(source) as (server, monitor):
            for expected in (1200, 1):
                client = FilemqClient(
                    server.endpoint, tmp_path / "a", ["/"], protocol="libfilemq", sync=False
                )
                async with client:
                    await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)
                    assert (client.counters.files, client.counters.deletions) == (expected, 0)
                    assert client.counters.content_octets == server.counters.content_octets - before(expected)
                    (source / "7").write_bytes(b"seventy")
                await server.rescan()
        assert monitor.sent.count("C:ICANHAZ") == 3, "one with an empty cache, and 1,200 entries in two"

    def before(expected: int) -> int:
        return 0 if expected == 1200 else sum(len(str(i)) for i in range(1200))

    run(story)
