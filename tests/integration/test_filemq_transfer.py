"""A FILEMQ server and its clients on real sockets and folders: in the end every inbox equals the publication.

Both sides of all traffic are watched by the generated dialog machine, and no side may break the dialog.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specwire.generated import filemq
from specwire.generated.errors import Violation
from specwire.runtime.filemq import FilemqClient, FilemqServer, InboxError, Publication, unfinished
from specwire.runtime.filemq.diskwork import DiskAction, Outcome
from specwire.runtime.filemq.events import (
    FileDeleted,
    FileReceived,
    FileSent,
    PeerClosed,
    PeerOpened,
    Subscribed,
)
from specwire.runtime.filemq.inbox import DEFAULT_RULES
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.kernel.events import PeerId
from specwire.runtime.kernel.log import LogEvent, Refused
from specwire.runtime.transport.errors import TransportError

TIMEOUT_S = 60.0
TIMES = {"heartbeat": 0.1, "expiry": 2.0, "reconnect": 0.05}
HIDDEN = ".specwire-inbox"


class Monitor:
    """A tap that shows every message to the dialog machine, one session for each conversation."""

    def __init__(self, role: str) -> None:
        self.violations: list[Violation] = []
        self.messages: list[tuple[str, filemq.AnyMessage]] = []
        self._role = role
        self._sessions: dict[str, filemq.machine.Session] = {}

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        message = filemq.decode(frames)
        self.messages.append((sender, message))
        assert self._role in ("C", "S")
        session = self._sessions.setdefault(
            conversation, filemq.machine.Session(role="C" if self._role == "C" else "S")
        )
        violation = session.observe("C" if sender == "C" else "S", message)
        if violation is not None:
            self.violations.append(violation)

    def names(self, sender: str) -> list[str]:
        return [type(message).__name__ for by, message in self.messages if by == sender]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small tree with what is easily got wrong."""
    folder = tmp_path / "source"
    files = {
        "empty": b"",
        "one": b"1",
        "with space.txt": b"space",
        "ünïcode/文件 ✓.bin": os.urandom(3000),
        "equals=sign": b"=",
        "deep/er/and/deeper": b"deep",
        "large": os.urandom(1_500_000),
    }
    files |= {f"many/{i:03}.dat": random.Random(i).randbytes(i * 13) for i in range(100)}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def read_tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and HIDDEN not in path.parts)
    return {"/" + str(path.relative_to(folder)): path.read_bytes() for path in files}


def digests(tree: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha1(content).hexdigest().upper() for name, content in tree.items()}


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(2 * TIMEOUT_S):
            await story()

    asyncio.run(bounded())


async def await_event(watch: AsyncIterator[LogEvent], wanted: Callable[[LogEvent], bool]) -> LogEvent:
    async with asyncio.timeout(TIMEOUT_S):
        async for event in watch:
            if wanted(event):
                return event
    raise AssertionError("the service stopped before the event came")


@asynccontextmanager
async def serving(
    *publications: Publication, endpoint: str = "tcp://127.0.0.1:*", timers: dict[str, float] | None = None
) -> AsyncIterator[tuple[FilemqServer, Monitor]]:
    monitor = Monitor("S")
    async with FilemqServer(publications, endpoint, tap=monitor, timers=timers) as server:
        yield server, monitor
    assert monitor.violations == []


@asynccontextmanager
async def subscribing(
    server: FilemqServer,
    inbox: Path,
    *paths: str,
    timers: dict[str, float] | None = None,
    resync: bool = True,
    window_octets: int = 4 << 20,
    rules: InboxRules = DEFAULT_RULES,
) -> AsyncIterator[tuple[FilemqClient, Monitor]]:
    monitor = Monitor("C")
    client = FilemqClient(
        server.endpoint,
        inbox,
        paths or ("/",),
        tap=monitor,
        rules=rules,
        timers=timers,
        resync=resync,
        window_octets=window_octets,
        sync=False,
    )
    async with client:
        yield client, monitor
    assert monitor.violations == []


async def in_step(server: FilemqServer, *clients: FilemqClient, path: str = "/") -> None:
    """Wait until every inbox holds what is published now."""
    await server.rescan()
    expected = server.digests(path)
    await asyncio.gather(*(client.until_equal(expected, timeout_s=TIMEOUT_S) for client in clients))


def test_two_clients_get_the_whole_tree(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        async with (
            serving(Publication(source)) as (server, _),
            subscribing(server, tmp_path / "a") as (a, heard),
            subscribing(server, tmp_path / "b") as (b, _),
        ):
            await in_step(server, a, b)
            assert server.digests() == digests(read_tree(source))
            assert a.counters.files == b.counters.files == len(server.digests())
            assert a.counters.refusals == 0
            ends = [m for _, m in heard.messages if isinstance(m, filemq.Cheezburger) and not m.chunk]
            assert len(ends) == len(server.digests()), "each file has one end"
        assert read_tree(tmp_path / "a") == read_tree(tmp_path / "b") == read_tree(source)

    run(story)


def test_changes_while_running(tmp_path: Path, source: Path) -> None:
    """New, longer, shorter, emptied, renamed and deleted files; a file that becomes a folder and the reverse."""

    async def story() -> None:
        rules = InboxRules(accept_deletions=True)  # nearly all of them are deleted
        async with (
            serving(Publication(source)) as (server, _),
            subscribing(server, tmp_path / "a", rules=rules) as (a, _),
        ):
            await in_step(server, a)
            watch = a.events()
            (source / "new file").write_bytes(b"new")
            await await_event(watch, lambda e: isinstance(e, FileReceived) and e.path == "/new file")
            (source / "large").write_bytes(b"now short")
            (source / "one").write_bytes(os.urandom(300_000))
            (source / "with space.txt").write_bytes(b"")
            (source / "deep").rename(source / "moved")
            shutil.rmtree(source / "many")
            (source / "empty").unlink()
            await await_event(watch, lambda e: isinstance(e, FileDeleted) and e.path == "/empty")
            await in_step(server, a)
            assert read_tree(tmp_path / "a") == read_tree(source)
            assert not (tmp_path / "a" / "many").exists()
            (source / "new file").unlink()
            (source / "new file").mkdir()
            (source / "new file" / "inner").write_bytes(b"inner")
            shutil.rmtree(source / "moved")
            (source / "moved").write_bytes(b"a file now")
            await in_step(server, a)
            assert a.counters.refusals == 0
        assert read_tree(tmp_path / "a") == read_tree(source)

    run(story)


def test_file_rewritten_while_it_is_sent_is_never_mixed(tmp_path: Path, source: Path) -> None:
    """The file is written over again and again during its transfer; only whole versions arrive.

    Writing over a file empties it first, so the empty file is a version too.
    """
    versions = [bytes([n]) * 3_000_000 for n in range(6)]
    whole = {hashlib.sha1(version).hexdigest().upper() for version in (*versions, b"")}

    async def story() -> None:
        (source / "large").write_bytes(versions[0])
        async with (
            serving(Publication(source)) as (server, _),
            subscribing(server, tmp_path / "a", "/large", window_octets=300_000) as (a, heard),
        ):
            watch = a.events()
            for version in versions[1:]:
                (source / "large").write_bytes(version)
                seen = len(heard.messages)
                while len(heard.messages) < seen + 3:
                    await asyncio.sleep(0)
            await in_step(server, a, path="/large")
        received = [event async for event in watch if isinstance(event, FileReceived)]
        assert received
        assert {event.sha1 for event in received} <= whole
        assert (tmp_path / "a" / "large").read_bytes() == versions[-1]

    run(story)


def test_paths_and_publications(tmp_path: Path, source: Path) -> None:
    """Two folders at two virtual paths; a path covers whole components, and may be added later."""
    (source / "many2").write_bytes(b"not below /p/many")

    async def story() -> None:
        publications = (Publication(source, "/p"), Publication(tmp_path / "second", "/q"))
        (tmp_path / "second").mkdir()
        (tmp_path / "second" / "file").write_bytes(b"second")
        async with (
            serving(*publications) as (server, _),
            subscribing(server, tmp_path / "a", "/p/many") as (a, _),
        ):
            await in_step(server, a, path="/p/many")
            assert (tmp_path / "a" / "p" / "many" / "007.dat").exists()
            assert not (tmp_path / "a" / "p" / "many2").exists()
            a.subscribe("/q/file")
            expected = server.digests("/p/many") | server.digests("/q")
            await a.until_equal(expected, timeout_s=TIMEOUT_S)

    run(story)


def test_overlapping_publications_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="overlapping"):
        FilemqServer([Publication(tmp_path, "/a"), Publication(tmp_path, "/a/b")])


def test_resync_sends_only_what_differs(tmp_path: Path, source: Path) -> None:
    """A client that was away gets what changed: equal files are not sent, deleted ones are removed."""

    async def story() -> None:
        async with serving(Publication(source)) as (server, _):
            async with subscribing(server, tmp_path / "a") as (a, _):
                await in_step(server, a)
            (source / "one").write_bytes(b"changed meanwhile")
            (source / "many" / "005.dat").unlink()
            (source / "added").write_bytes(b"added")
            (tmp_path / "a" / "large").unlink()
            (tmp_path / "a" / "my own").write_bytes(b"mine")
            await server.rescan()
            async with subscribing(server, tmp_path / "a") as (a, _):
                expected = server.digests() | digests({"/my own": b"mine"})
                await a.until_equal(expected, timeout_s=TIMEOUT_S)
                assert a.counters.files == 3
                assert a.counters.deletions == 1
        tree = read_tree(tmp_path / "a")
        assert tree.pop("/my own") == b"mine"
        assert tree == read_tree(source)

    run(story)


def test_cache_larger_than_one_icanhaz(tmp_path: Path) -> None:
    """700 files are in the inbox already, from elsewhere: three ICANHAZ tell so, and only one file is sent."""
    source = tmp_path / "source"
    for i in range(700):
        path = source / f"folder {i % 7}" / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(i))
    shutil.copytree(source, tmp_path / "a")
    (source / "last").write_bytes(b"last")

    async def story() -> None:
        async with (
            serving(Publication(source)) as (server, heard),
            subscribing(server, tmp_path / "a") as (a, _),
        ):
            await in_step(server, a)
            assert heard.names("C").count("Icanhaz") == 3
            assert a.counters.files == 1

    run(story)


def test_without_resync_only_changes_arrive(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        async with serving(Publication(source)) as (server, _):
            watch = server.events()
            async with subscribing(server, tmp_path / "a", resync=False) as (a, _):
                await await_event(watch, lambda e: isinstance(e, Subscribed))
                (source / "fresh").write_bytes(b"fresh")
                await a.until_equal(digests({"/fresh": b"fresh"}), timeout_s=TIMEOUT_S)

    run(story)


def test_idle_peers_keep_each_other_alive(tmp_path: Path, source: Path) -> None:
    """With heartbeats every 0.1 s and an expiry of 2 s, 3 s without traffic of its own end nothing."""

    async def story() -> None:
        async with (
            serving(Publication(source), timers=TIMES) as (server, heard),
            subscribing(server, tmp_path / "a", timers=TIMES) as (a, _),
        ):
            await in_step(server, a)
            signs = heard.names("C").count("HugzOk") + heard.names("C").count("Hugz")
            while heard.names("C").count("HugzOk") + heard.names("C").count("Hugz") < signs + 30:
                await asyncio.sleep(0.01)
            assert server.clients == 1
            assert a.counters.peerings == 1

    run(story)


def test_server_restart_is_followed(tmp_path: Path, source: Path) -> None:
    """The server stops, the folder changes, another server starts at the same endpoint: the client catches up."""

    async def story() -> None:
        async with serving(Publication(source), timers=TIMES) as (server, _):
            endpoint = server.endpoint
            monitor = Monitor("C")
            client = FilemqClient(endpoint, tmp_path / "a", ["/"], tap=monitor, timers=TIMES, sync=False)
            await client.start()
            watch = client.events()
            await in_step(server, client)
        await await_event(watch, lambda e: isinstance(e, PeerClosed))
        (source / "one").unlink()
        (source / "two").write_bytes(b"two")
        async with serving(Publication(source), endpoint=endpoint, timers=TIMES) as (server, _):
            await await_event(watch, lambda e: isinstance(e, PeerOpened))
            await in_step(server, client)
            await client.stop()
        assert monitor.violations == []
        assert read_tree(tmp_path / "a") == read_tree(source)

    run(story)


def test_refused_client_ends(tmp_path: Path, source: Path) -> None:
    """A subscription that the server does not allow is final, and its reason reaches the caller."""

    async def story() -> None:
        server = FilemqServer([Publication(source)], authorise=lambda peer, path: "is private")
        async with server, subscribing(server, tmp_path / "a") as (a, _):
            reason = await asyncio.wait_for(a.finished, TIMEOUT_S)
            assert reason == "refused: / is private"

    run(story)


def test_symbolic_link_in_the_inbox_is_not_followed(tmp_path: Path, source: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "deep").symlink_to(outside)

    async def story() -> None:
        async with serving(Publication(source)) as (server, _), subscribing(server, tmp_path / "a") as (a, _):
            expected = server.digests()
            del expected["/deep/er/and/deeper"]
            await a.until_equal(expected, timeout_s=TIMEOUT_S)
            while not a.counters.refusals:
                await asyncio.sleep(0.01)
        assert list(outside.iterdir()) == []

    run(story)


def test_full_disk_is_reported_and_mended(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing fails for a while; the client goes on, and fetches what it missed when there is space again."""
    write = unfinished.write_octets
    full = True

    def write_some(descriptor: int, octets: bytes) -> None:
        if full and len(octets) > 1000:
            raise OSError(28, "No space left on device")
        write(descriptor, octets)

    monkeypatch.setattr(unfinished, "write_octets", write_some)

    async def story() -> None:
        nonlocal full
        async with (
            serving(Publication(source)) as (server, _),
            subscribing(server, tmp_path / "a", timers={"reconnect": 0.05}) as (a, _),
        ):
            watch = a.events()
            refused = await await_event(watch, lambda e: isinstance(e, Refused))
            assert isinstance(refused, Refused)
            assert refused.reason == "No space left on device; it is asked for again"
            full = False
            await in_step(server, a)
            assert a.counters.peerings == 1
        assert read_tree(tmp_path / "a") == read_tree(source)

    run(story)


def test_file_that_cannot_be_named_is_reported(tmp_path: Path, source: Path) -> None:
    """A name of more than 255 octets is refused and told, never cut."""
    folder = source / ("n" * 200)
    folder.mkdir()

    async def story() -> None:
        async with serving(Publication(source)) as (server, _), subscribing(server, tmp_path / "a") as (a, _):
            watch = server.events()
            (folder / ("m" * 100)).write_bytes(b"unreachable")
            refused = await await_event(watch, lambda e: isinstance(e, Refused))
            assert isinstance(refused, Refused)
            assert "302 octets" in refused.reason
            await in_step(server, a)
            assert server.digests() == {k: v for k, v in digests(read_tree(source)).items() if len(k) < 256}

    run(story)


def test_one_inbox_serves_one_client(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        async with serving(Publication(source)) as (server, _), subscribing(server, tmp_path / "a"):
            with pytest.raises(InboxError, match="in use"):
                await FilemqClient(server.endpoint, tmp_path / "a", ["/"]).start()

    run(story)


def test_port_that_is_taken_is_told_before_anything_is_read(source: Path) -> None:
    """With a large publication the reading takes hours."""

    async def story() -> None:
        async with serving(Publication(source)) as (server, _):
            second = FilemqServer([Publication(source)], server.endpoint)
            with pytest.raises(TransportError, match="Address already in use"):
                await second.start()
            assert second.digests() == {}

    run(story)


def test_slow_client_delays_nobody(tmp_path: Path, source: Path) -> None:
    """One client's disk stands still; another gets everything meanwhile, and the first one later."""

    async def story() -> None:
        async with (
            serving(Publication(source)) as (server, _),
            subscribing(server, tmp_path / "slow", window_octets=100_000) as (slow, _),
        ):
            gate, perform = threading.Event(), slow._inbox.perform

            def perform_later(actions: Sequence[DiskAction]) -> list[Outcome]:
                assert gate.wait(TIMEOUT_S)
                return perform(actions)

            slow._inbox.perform = perform_later  # type: ignore[method-assign]
            async with subscribing(server, tmp_path / "quick") as (quick, _):
                await in_step(server, quick)
            gate.set()
            await in_step(server, slow)

    run(story)


def test_events_tell_of_each_file(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        async with serving(Publication(source)) as (server, _):
            watch = server.events()
            async with subscribing(server, tmp_path / "a", "/one") as (a, _):
                sent = await await_event(watch, lambda e: isinstance(e, FileSent))
                assert isinstance(sent, FileSent)
                assert (sent.path, sent.size) == ("/one", 1)
                await a.until_equal(server.digests("/one"), timeout_s=TIMEOUT_S)
            closed = await await_event(watch, lambda e: isinstance(e, PeerClosed))
            assert isinstance(closed, PeerClosed)
            assert closed.reason == "said KTHXBAI"

    run(story)


def test_journal_with_a_torn_line_is_told_of(tmp_path: Path, source: Path) -> None:
    async def story() -> None:
        async with serving(Publication(source)) as (server, _):
            async with subscribing(server, tmp_path / "a") as (a, _):
                await in_step(server, a)
            with (tmp_path / "a" / HIDDEN / "journal").open("ab") as journal:
                journal.write(b'\n["/one",["40')
            events: list[LogEvent] = []
            client = FilemqClient(server.endpoint, tmp_path / "a", ["/"], sync=False, on_event=events.append)
            async with client:
                await client.until_equal(server.digests(), timeout_s=TIMEOUT_S)
            refused = [event for event in events if isinstance(event, Refused)]
            assert [event.name for event in refused] == [".specwire-inbox/journal"]
            assert refused[0].reason.startswith("1 of its lines cannot be read")

    run(story)


def test_nothing_is_sent_to_a_client_that_has_said_goodbye(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that wait when KTHXBAI comes are not sent any more: the dialog is over."""

    async def story() -> None:
        async with FilemqServer([Publication(source)]) as server:
            sent: list[bytes] = []
            host = server._running
            monkeypatch.setattr(host._sockets, "send", lambda peer, frames: sent.append(peer.routing_id))
            for peer, commands in (
                (b"gone", (filemq.Ohai(), filemq.Icanhaz(path="/", options=(), cache=()), filemq.Kthxbai())),
                (b"here", (filemq.Ohai(),)),
            ):
                for command in commands:
                    host.on_message(PeerId("clients", peer), "", command.encode())
            host.on_rest()
            assert sent == [b"here"]
            assert server.clients == 1

    run(story)
