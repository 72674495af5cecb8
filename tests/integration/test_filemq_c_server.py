"""Our client and the server of libfilemq, which is played by `c_server` as it was measured, on real sockets.

All traffic is watched by the generated dialog machine of libfilemq; and a malformed message would end the server.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from specwire.runtime.filemq import FilemqClient, unfinished
from specwire.runtime.filemq.events import FileDeleted, FileReceived, PeerClosed, PeerOpened, Subscribed
from specwire.runtime.kernel.log import LogEvent, Refused
from tests.integration.test_filemq_c_client import Monitor
from tests.runtime.filemq import c_wire
from tests.runtime.filemq.c_server import CHUNK, CServer
from tests.runtime.filemq.c_wire import CREATE, Patch

TIMEOUT_S = 120.0
TRASH_FOLDER = ".specwire-inbox/trash"


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story()

    asyncio.run(bounded())


@asynccontextmanager
async def c_server(endpoint: str = "tcp://127.0.0.1:*", *, livelocks: bool = False) -> AsyncIterator[CServer]:
    server = CServer(endpoint)
    running = asyncio.create_task(server.run())
    try:
        yield server
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        server.close()
    assert server.ended is None
    assert server.livelocked is livelocks


@asynccontextmanager
async def reading(
    server: CServer,
    inbox: Path,
    *paths: str,
    timers: dict[str, float] | None = None,
    window_octets: int = 4 << 20,
) -> AsyncIterator[FilemqClient]:
    """A client of ours that has subscribed."""
    monitor = Monitor()
    client = FilemqClient(
        server.endpoint, inbox, paths or ("/",), protocol="libfilemq", tap=monitor, timers=timers, sync=False,
        window_octets=window_octets,
    )  # fmt: skip
    async with client:
        await server.until(lambda s: s.is_subscribed(*(paths or ("/",))))
        yield client
    assert monitor.violations == []


async def await_event(watch: AsyncIterator[LogEvent], wanted: Callable[[LogEvent], bool]) -> LogEvent:
    async for event in watch:
        if wanted(event):
            return event
    raise AssertionError("the client stopped before the event came")


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha1(content).hexdigest().upper() for name, content in files.items()}


def read_tree(folder: Path) -> dict[str, bytes]:
    return {
        f"/{path.relative_to(folder)}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".specwire-inbox" not in path.parts
    }


async def holds(client: FilemqClient, files: Mapping[str, bytes]) -> None:
    await client.until_equal(digests(files), timeout_s=TIMEOUT_S)


def test_files_of_every_size_and_name(tmp_path: Path) -> None:
    """Also a name of 400 octets, which the specification's format could not carry."""
    sizes = {"/empty": 0, "/one": 1, "/chunk": CHUNK, "/chunk+1": CHUNK + 1, "/3 MB": 3_000_000}
    files = {name: random.Random(name).randbytes(size) for name, size in sizes.items()}
    files |= {
        "/with space": b"1",
        "/ünïcode ✓/文件": b"2",
        "/deep/er/x": b"3",
        f"/{'n' * 200}/{'m' * 200}": b"4",
    }

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            for name, content in files.items():
                await server.create(name, content)
            await holds(client, files)
            assert client.counters.refusals == 0
            assert client.counters.content_octets == sum(sizes.values()) + 4
        assert read_tree(tmp_path / "a") == files

    run(story)


def test_credit_never_runs_out(tmp_path: Path) -> None:
    """A server that lacks credit for a chunk stops for good; with what we grant at once it never does."""

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a", window_octets=300_000) as client:
            (state,) = server.clients.values()
            assert state.credit == 2**62
            large = {f"/{i}": bytes([i]) * 3_000_000 for i in range(10)}
            for name, content in large.items():
                await server.create(name, content)
            await holds(client, large)
            assert server.heard.count(c_wire.NOM) == 1

    run(story)


def test_the_server_that_is_played_does_stop() -> None:
    """The test above would fail with other credit: the played server is deaf once a chunk does not fit."""

    async def story() -> None:
        async with c_server(livelocks=True) as server:
            context = zmq.asyncio.Context()
            with context.socket(zmq.DEALER) as peer:
                peer.connect(server.endpoint)
                for frame in (c_wire.ohai(), c_wire.icanhaz("/"), c_wire.nom(CHUNK + 5)):
                    await peer.send(frame)
                await server.until(lambda s: s.is_subscribed("/"))
                await server.create("/fits", b"x" * 6)
                await server.create("/does not", b"x" * CHUNK)
                assert [len(await peer.recv()) for _ in range(4)] == [3, 3, 44, 38]
            context.term()

    run(story)


def test_disk_that_is_slow_bounds_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 MB are sent against endless credit while the disk stands still: what comes in is held back meanwhile."""
    gate = asyncio.Event()
    loop: asyncio.AbstractEventLoop | None = None
    write = unfinished.write_octets

    def write_later(descriptor: int, octets: bytes) -> None:
        assert loop is not None
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(TIMEOUT_S)
        write(descriptor, octets)

    monkeypatch.setattr(unfinished, "write_octets", write_later)
    content = os.urandom(60_000_000)

    async def story() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        timers = {"heartbeat": 0.1, "expiry": 1.5}
        async with c_server() as server, reading(server, tmp_path / "a", timers=timers) as client:
            sending = asyncio.create_task(server.create("/large", content))
            heard = len(server.heard)
            # Twenty heartbeats are longer than the expiry time: the silence is our own, and no reason to leave.
            await server.until(lambda s: len(s.heard) >= heard + 20)
            assert client.counters.content_octets <= 6_000_000
            gate.set()
            await sending
            await holds(client, {"/large": content})
            assert client.counters.peerings == 1

    run(story)


def test_new_versions_replace_old_ones_whole(tmp_path: Path) -> None:
    """A shorter version leaves no tail; whoever looks sees one version or the other."""

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            for content in (b"x" * 2_500_000, b"short", b"", b"longer again"):
                await server.create("/file", content)
                await holds(client, {"/file": content})
                assert (tmp_path / "a" / "file").read_bytes() == content

    run(story)


def test_file_without_an_end_is_ended_by_the_next(tmp_path: Path) -> None:
    """It counts as unverified, as everything does that comes without a digest; the next file is not touched by it."""

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            watch = client.events()
            server.without_end.add("/cut")
            await server.create("/cut", b"without an end")
            await server.create("/next", b"whole")
            await holds(client, {"/cut": b"without an end", "/next": b"whole"})
            event = await await_event(watch, lambda e: isinstance(e, FileReceived))
            assert event == FileReceived("/cut", 14, digests({"": b"without an end"})[""], verified=False)
            await server.create("/cut", b"again, ")
            await server.create("/cut", b"longer than before")
            await server.delete("/next")
            await holds(client, {"/cut": b"longer than before"})

    run(story)


def test_eof_with_the_last_octets_ends_the_file(tmp_path: Path) -> None:
    """The grammar lets the last chunk have content; a server that makes use of it is understood."""

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            for sequence, (offset, eof, chunk) in enumerate(((0, 0, b"first "), (6, 1, b"last"))):
                await server.send(c_wire.cheezburger(Patch(sequence, CREATE, "/file", offset, eof, chunk)))
            await holds(client, {"/file": b"first last"})

    run(story)


def test_what_was_not_subscribed_to_is_passed_over(tmp_path: Path) -> None:
    """The server sends everything, `/foobar` too for `/foo`; that is its way, and no offence."""

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a", "/foo", "/bar/x") as client:
            for name in ("/foo/a", "/foobar/b", "/other", "/bar/x", "/bar/xy", "/foo"):
                await server.create(name, name.encode() * 100_000)
                await server.create("/foo/b", b"b")
                await server.delete("/foo/b")
            await server.delete("/other")
            await server.create("/foo/last", b"")
            await holds(
                client, {name: name.encode() * 100_000 for name in ("/foo/a", "/bar/x")} | {"/foo/last": b""}
            )
            assert client.counters.refusals == 1, "/foo is a folder in the inbox"

    run(story)


def test_second_subscription_while_connected(tmp_path: Path) -> None:
    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a", "/foo") as client:
            watch = client.events()
            client.subscribe("/bar")
            await await_event(watch, lambda e: e == Subscribed("/bar"))
            await server.create("/bar/a", b"a")
            await holds(client, {"/bar/a": b"a"})

    run(story)


def test_paths_out_of_the_inbox_are_refused(tmp_path: Path) -> None:
    """The C client writes `/../escaped.txt` outside its inbox, and deletes there."""
    (tmp_path / "precious").write_bytes(b"precious")

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            hostile = [
                "/../escaped.txt",
                "/../precious",
                "/x/../../escaped.txt",
                "no slash",
                "//x",
                "/.specwire-inbox/journal",
            ]
            for name in hostile:
                await server.create(name, b"evil")
                await server.delete(name)
            await server.create("/good", b"good")
            await holds(client, {"/good": b"good"})
            assert client.counters.refusals == 2 * len(hostile)

    run(story)
    assert sorted(os.listdir(tmp_path)) == ["a", "precious"]
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path / "a")) == [".specwire-inbox", "good"]


def test_deletions_keep_a_copy(tmp_path: Path) -> None:
    """The server at times deletes what is still there: the inbox follows it, and keeps the file aside."""

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            watch = client.events()
            files = {"/a": b"a", "/d/b 1%": b"b", "/c": b"c"}
            for name, content in files.items():
                await server.create(name, content)
            await holds(client, files)
            for name in ("/a", "/d/b 1%"):
                await server.delete(name)
            await holds(client, {"/c": b"c"})
            event = await await_event(watch, lambda e: isinstance(e, FileDeleted))
            assert event == FileDeleted("/a")
            kept = tmp_path / "a" / TRASH_FOLDER
            assert {path.name: path.read_bytes() for path in kept.iterdir()} == {
                "a": b"a",
                "d%2Fb 1%25": b"b",
            }
            await server.create("/a", b"a is back")
            await holds(client, {"/a": b"a is back", "/c": b"c"})
            assert sorted(os.listdir(kept)) == ["a", "d%2Fb 1%25"]
        assert read_tree(tmp_path / "a") == {"/a": b"a is back", "/c": b"c"}

    run(story)


def test_file_of_our_own_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_bytes(b"mine")

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            watch = client.events()
            await server.delete("/mine")
            refused = await await_event(watch, lambda e: isinstance(e, Refused))
            assert refused == Refused("/mine", "did not come from a server, and is kept")
        assert read_tree(tmp_path / "a") == {"/mine": b"mine"}

    run(story)


def test_client_that_was_forgotten_connects_again(tmp_path: Path) -> None:
    """An expired client's next message gets RTFM without a reason; ours opens a fresh connection, each time."""

    async def story() -> None:
        timers = {"heartbeat": 0.05, "reconnect": 0.02}
        async with c_server() as server, reading(server, tmp_path / "a", timers=timers) as client:
            watch = client.events()
            for turn in range(3):
                server.forget_clients()
                closed = await await_event(watch, lambda e: isinstance(e, PeerClosed))
                assert isinstance(closed, PeerClosed)
                assert closed.reason == "the server expected something else: "
                await await_event(watch, lambda e: isinstance(e, Subscribed))
                await server.until(lambda s: s.is_subscribed("/"))
                await server.create(f"/{turn}", b"content")
                await await_event(watch, lambda e: isinstance(e, FileReceived))

    run(story)


def test_server_that_is_started_again_is_followed(tmp_path: Path) -> None:
    """The C client does not reconnect; ours does, with what the inbox holds."""

    async def story() -> None:
        timers = {"heartbeat": 0.05, "reconnect": 0.02}
        monitor = Monitor()
        async with c_server() as first:
            endpoint = first.endpoint
            client = FilemqClient(
                endpoint, tmp_path / "a", ["/"], protocol="libfilemq", tap=monitor, timers=timers, sync=False
            )
            await client.start()
            await first.until(lambda s: s.is_subscribed("/"))
            await first.create("/one", b"1")
            await holds(client, {"/one": b"1"})
        watch = client.events()
        async with c_server(endpoint) as second:
            await await_event(watch, lambda e: isinstance(e, PeerOpened))
            await second.until(lambda s: s.is_subscribed("/"))
            (state,) = second.clients.values()
            assert state.caches == [digests({"/one": b"1"})]
            assert state.options == [{"RESYNC": "1", "PRUNE": "1", "WHOLE": "1"}]
            await second.create("/two", b"2")
            await holds(client, {"/one": b"1", "/two": b"2"})
            await client.stop()
        assert monitor.violations == []

    run(story)


def test_idle_connection_is_kept_alive(tmp_path: Path) -> None:
    """The client sends HUGZ, and nothing else that a C server does not know."""

    async def story() -> None:
        timers = {"heartbeat": 0.02, "expiry": 2.0}
        async with c_server() as server, reading(server, tmp_path / "a", timers=timers) as client:
            await server.until(lambda s: s.heard.count(c_wire.HUGZ) > 110)
            assert client.counters.peerings == 1
        assert set(server.heard) <= {c_wire.OHAI, c_wire.NOM, c_wire.ICANHAZ, c_wire.HUGZ, c_wire.KTHXBAI}

    run(story)


def test_many_small_files_cost_no_memory_that_stays(tmp_path: Path) -> None:
    """The C side leaks 2 KB with each chunk; 3,000 chunks would be 6 MB."""

    async def story() -> None:
        async with c_server() as server, reading(server, tmp_path / "a") as client:
            await server.create("/file", b"first")
            await holds(client, {"/file": b"first"})
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            for turn in range(1500):
                await server.create("/file", str(turn).encode())
            await server.create("/last", b"")
            await holds(client, {"/file": b"1499", "/last": b""})
            after, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert after - before < 1_500_000

    run(story)
