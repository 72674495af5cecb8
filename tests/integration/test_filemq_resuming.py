"""Interrupted transfers go on where they stopped, and where they cannot, the file is sent again and is whole."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from specwire.runtime.filemq import peering, reading
from specwire.runtime.filemq.catalogue import CheckPart
from specwire.runtime.filemq.events import FileReceived, FileResumed, PeerClosed, PeerOpened, Subscribed
from specwire.runtime.filemq.reading import FileReader
from specwire.runtime.filemq.resync import RESUME_FROM_OCTETS, Beginning, read_beginning
from specwire.runtime.filemq.server import CHUNK_OCTETS
from tests.integration.filemq_process import kept_endpoint, running
from tests.integration.filemq_scene import digests, event_of, own_files, run, serving, subscribing
from tests.integration.filemq_watch import Line
from tests.integration.tcp_proxy import TcpProxy

OCTETS = 24_000_000
ENOUGH = 3 * RESUME_FROM_OCTETS
SHARE = ENOUGH + 2 * CHUNK_OCTETS
"""So much let through brings enough of the file, in whole chunks and with all that comes before it, and not all."""

EQUAL_S = 100.0
ORIGIN = "the server"
"""By which the inbox knows it, as it comes back at another port."""

TIMES = {"heartbeat": 0.2, "expiry": 30.0, "reconnect": 0.05}
RESERVED = ".specwire-inbox"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A large file, and small ones before and behind it."""
    folder = tmp_path / "source"
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "large").write_bytes(random.Random(1).randbytes(OCTETS))
    for name in ("a", "d/b", "z"):
        (folder / name).write_text(name)
    return folder


def part_of(inbox: Path) -> Path | None:
    """Return the unfinished file of an inbox, where there is one with a note."""
    notes = list((inbox / RESERVED).glob("unfinished-*.name"))
    return notes[0].with_suffix("") if notes else None


async def until_kept(inbox: Path, octets: int) -> None:
    """Return once an inbox keeps so much of an unfinished file."""
    while (part := part_of(inbox)) is None or part.stat().st_size < octets:
        await asyncio.sleep(0.001)


async def interrupted(source: Path, inbox: Path, *paths: str) -> int:
    """Stop a client in good order in the middle of the large file; return how much of it is kept."""
    async with (
        serving(source, timers=TIMES) as (server, _),
        TcpProxy(server.endpoint) as proxy,
    ):
        proxy.hold_after(SHARE)
        async with subscribing(proxy.endpoint, inbox, *paths, timers=TIMES, origin=ORIGIN):
            await until_kept(inbox, ENOUGH)
    part = part_of(inbox)
    assert part is not None, "the unfinished file is kept over a stop"
    assert "/d/large" not in digests(inbox)
    return part.stat().st_size


def content_of(lines: list[Line], name: str = "/d/large") -> tuple[list[int], int]:
    """Return where a file began on each connection, in order, and how many octets of it there were in all."""
    begun: list[int] = []
    ends: dict[str, int] = {}
    for line in lines:
        if line.name == name and not line.deletes:
            if ends.get(line.conversation) != line.offset:
                begun.append(line.offset)
            ends[line.conversation] = line.offset + line.octets
    return begun, sum(line.octets for line in lines if line.name == name)


def test_client_that_was_stopped_goes_on(tmp_path: Path, source: Path) -> None:
    """Nothing is sent twice: the rest comes first, from the octet after the last that is held."""
    inbox = tmp_path / "inbox"

    async def story() -> None:
        kept = await interrupted(source, inbox)
        assert kept >= RESUME_FROM_OCTETS
        async with (
            serving(source, timers=TIMES) as (server, heard),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            told, lines = server.events(), said.keep_transcript()
            seen = heard.keep_transcript()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert content_of(lines) == ([kept], OCTETS - kept)
            assert content_of(seen) == content_of(lines)
            assert lines[0].name == "/d/large"
            assert (await event_of(told, FileResumed)).offset == kept
            assert (client.counters.refusals, server.counters.refusals) == (0, 0)
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)


@pytest.mark.parametrize("paths", [("/d",), ("/z", "/d"), ("/d/large", "/a")])
def test_whichever_path_covers_the_file(tmp_path: Path, source: Path, paths: tuple[str, ...]) -> None:
    """Other paths are asked for before it; the rest comes first all the same."""
    inbox = tmp_path / "inbox"

    async def story() -> None:
        kept = await interrupted(source, inbox, *paths)
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, *paths, timers=TIMES) as (client, said),
        ):
            lines = said.keep_transcript()
            events = client.events()
            await event_of(events, FileReceived, lambda event: event.path == "/d/large")
            assert content_of(lines) == ([kept], OCTETS - kept)
            assert lines[0].name == "/d/large"

    run(story)


def test_connection_cut_again_and_again(tmp_path: Path, source: Path) -> None:
    """Each time the same process goes on, so in all not more is sent than the file and what was under way."""
    inbox = tmp_path / "inbox"
    cuts, chunk = 4, 500_000
    share = ENOUGH + 2 * chunk  # of each connection
    assert cuts * share < OCTETS

    async def story() -> None:
        async with (
            serving(source, timers=TIMES, chunk_octets=chunk) as (server, _),
            TcpProxy(server.endpoint) as proxy,
            subscribing(proxy.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            lines, events = said.keep_transcript(), client.events()
            for number in range(1, cuts + 1):
                proxy.hold_after(share)
                await event_of(events, PeerOpened)
                await until_kept(inbox, ENOUGH)
                while len(content_of(lines)[0]) < number:
                    await asyncio.sleep(0.001)
                proxy.cut()
                proxy.release()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            begun, octets = content_of(lines)
            assert octets == OCTETS, "of what was received, nothing was received again"
            assert begun[0] == 0
            assert begun == sorted(set(begun))
            assert len(begun) == cuts + 1
            assert client.counters.refusals == 0
        assert own_files(inbox) == {"journal"}

    run(story)


def test_server_that_is_started_again_goes_on(tmp_path: Path, source: Path) -> None:
    """It knows nothing of the transfer any more: what the client asks for is enough."""
    inbox = tmp_path / "inbox"

    async def story(endpoint: str) -> None:
        async with (
            TcpProxy(endpoint) as proxy,
            subscribing(proxy.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            lines = said.keep_transcript()
            proxy.hold_after(SHARE)
            async with running("serve", str(source), "--endpoint", endpoint) as first:
                await until_kept(inbox, ENOUGH)
                await first.stop()
            events = client.events()
            proxy.release()
            async with running("serve", str(source), "--endpoint", endpoint) as second:
                await event_of(events, FileResumed)
                await client.until_equal(digests(source), timeout_s=EQUAL_S)
                await second.line_with("resumed /d/large")
            assert content_of(lines)[1] == OCTETS
        assert own_files(inbox) == {"journal"}

    with kept_endpoint() as endpoint:
        run(lambda: story(endpoint))


def change_tail(source: Path, inbox: Path) -> None:
    octets = bytearray((source / "d" / "large").read_bytes())
    octets[-1] ^= 1
    (source / "d" / "large").write_bytes(octets)


def grow(source: Path, inbox: Path) -> None:
    with (source / "d" / "large").open("ab") as file:
        file.write(b"more")


def change_head(source: Path, inbox: Path) -> None:
    octets = bytearray((source / "d" / "large").read_bytes())
    octets[0] ^= 1
    (source / "d" / "large").write_bytes(octets)


def shorten(source: Path, inbox: Path) -> None:
    (source / "d" / "large").write_bytes((source / "d" / "large").read_bytes()[:RESUME_FROM_OCTETS])


def damage(source: Path, inbox: Path) -> None:
    part = part_of(inbox)
    assert part is not None
    octets = bytearray(part.read_bytes())
    octets[len(octets) // 2] ^= 1
    part.write_bytes(octets)


@pytest.mark.parametrize(
    ("change", "resumes"),
    [(change_tail, True), (grow, True), (change_head, False), (shorten, False), (damage, False)],
)
def test_what_changed_meanwhile_is_never_mixed(
    tmp_path: Path, source: Path, change: Callable[[Path, Path], None], resumes: bool
) -> None:
    """Where what is held is still the beginning of the file, only the rest is sent; else the file begins at 0."""
    inbox = tmp_path / "inbox"

    async def story() -> None:
        kept = await interrupted(source, inbox)
        change(source, inbox)
        size = (source / "d" / "large").stat().st_size
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            lines = said.keep_transcript()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert content_of(lines) == (([kept], size - kept) if resumes else ([0], size))
            assert client.counters.refusals == 0
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)


def test_file_that_is_gone_meanwhile_leaves_nothing(tmp_path: Path, source: Path) -> None:
    """The server says so, and the unfinished file goes."""
    inbox = tmp_path / "inbox"

    async def story() -> None:
        await interrupted(source, inbox)
        for path in ("a", "d/b", "d/large", "z"):
            (source / path).unlink()
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES, origin=ORIGIN) as (client, _),
        ):
            await event_of(client.events(), Subscribed)
            await client.until_equal({}, timeout_s=EQUAL_S)
        assert own_files(inbox) == {"journal"}

    run(story)


def test_file_that_changes_while_its_part_is_checked(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server finds out, looks again, and sends the new version whole."""
    inbox = tmp_path / "inbox"
    check = FileReader.check
    changed: list[Path] = []

    async def change_then_check(reader: FileReader, request: CheckPart) -> str | None:
        changed.append(source)
        change_head(source, inbox)
        return await check(reader, request)

    async def story() -> None:
        await interrupted(source, inbox)
        monkeypatch.setattr(FileReader, "check", change_then_check)
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            lines = said.keep_transcript()
            events = client.events()
            await event_of(events, FileReceived, lambda event: event.path == "/d/large")
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert content_of(lines) == ([0], OCTETS)
        assert changed == [source]

    run(story)


def test_client_that_leaves_while_its_part_is_checked(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check ends, and the server with it."""
    inbox = tmp_path / "inbox"
    monkeypatch.setattr(reading, "PIECE_OCTETS", 1024)

    async def story() -> None:
        kept = await interrupted(source, inbox)
        async with serving(source, timers=TIMES) as (server, _):
            seen = server.events()
            async with subscribing(server.endpoint, inbox, timers=TIMES):
                await event_of(seen, Subscribed)
            await event_of(seen, PeerClosed)
            async with subscribing(server.endpoint, inbox, timers=TIMES) as (client, _):
                await client.until_equal(digests(source), timeout_s=EQUAL_S)
        assert kept > 100 * reading.PIECE_OCTETS
        assert digests(inbox) == digests(source)

    run(story)


def test_server_that_passes_over_the_option(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server: the file is sent again, and the beginning that was held is forgotten."""
    inbox = tmp_path / "inbox"

    async def story() -> None:
        await interrupted(source, inbox)
        monkeypatch.setattr("specwire.runtime.filemq.peering.read_beginning", lambda options: None)
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            lines = said.keep_transcript()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert content_of(lines) == ([0], OCTETS)
            assert client.counters.refusals == 0
        assert own_files(inbox) == {"journal"}

    run(story)


def test_server_that_goes_on_with_something_else(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It claims that what is held fits where it does not: the digest of the whole tells, and the file is sent again."""
    inbox = tmp_path / "inbox"
    claims: list[Beginning] = []

    def note(options: Sequence[tuple[str, str]]) -> Beginning | None:
        claimed = read_beginning(options)
        claims.extend([] if claimed is None else [claimed])
        return claimed

    async def believe(reader: FileReader, request: CheckPart) -> str:
        return claims[-1].sha1

    async def story() -> None:
        kept = await interrupted(source, inbox)
        change_head(source, inbox)
        monkeypatch.setattr(peering, "read_beginning", note)
        monkeypatch.setattr(FileReader, "check", believe)
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            lines = said.keep_transcript()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert content_of(lines) == ([kept, 0], 2 * OCTETS - kept)
            assert client.counters.refusals == 1
        assert digests(inbox) == digests(source)
        assert own_files(inbox) == {"journal"}

    run(story)


def test_two_inboxes_go_on_each_with_its_own(tmp_path: Path, source: Path) -> None:
    """At the same server, from different places."""
    inboxes = [tmp_path / "one", tmp_path / "two"]

    async def story() -> None:
        kept = [await interrupted(source, inbox) for inbox in inboxes]
        async with serving(source, timers=TIMES) as (server, _):

            async def go_on(inbox: Path, part: int) -> None:
                async with subscribing(server.endpoint, inbox, timers=TIMES) as (client, said):
                    lines = said.keep_transcript()
                    await client.until_equal(digests(source), timeout_s=EQUAL_S)
                    assert content_of(lines) == ([part], OCTETS - part)

            await asyncio.gather(*map(go_on, inboxes, kept))
        assert all(digests(inbox) == digests(source) for inbox in inboxes)

    run(story)


def test_small_file_costs_nothing_and_is_sent_again(tmp_path: Path) -> None:
    """It is thrown away with the connection, and no note is written for any."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    (source / "small").write_bytes(random.Random(2).randbytes(RESUME_FROM_OCTETS - 1))

    async def story() -> None:
        async with (
            serving(source, timers=TIMES) as (server, _),
            TcpProxy(server.endpoint) as proxy,
        ):
            proxy.hold_after(RESUME_FROM_OCTETS // 2)
            async with subscribing(proxy.endpoint, inbox, timers=TIMES):
                await proxy.until_passed(RESUME_FROM_OCTETS // 2)
        assert own_files(inbox) <= {"journal"}
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, said),
        ):
            lines = said.keep_transcript()
            await client.until_equal(digests(source), timeout_s=EQUAL_S)
            assert content_of(lines, "/small") == ([0], RESUME_FROM_OCTETS - 1)

    run(story)


def test_many_names_go_up_without_waiting(tmp_path: Path) -> None:
    """Many ICANHAZ for one path, each with its answer, and what is lacking in the end."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    source.mkdir()
    for number in range(6000):
        (source / f"{number:05}").write_bytes(b"%d" % number)

    async def story() -> None:
        async with serving(source, timers=TIMES) as (server, _):
            async with subscribing(server.endpoint, inbox, timers=TIMES) as (client, _):
                await client.until_equal(server.digests(), timeout_s=EQUAL_S)
            (source / "new").write_text("new")
            await server.rescan()
            async with subscribing(server.endpoint, inbox, timers=TIMES) as (client, said):
                await client.until_equal(server.digests(), timeout_s=EQUAL_S)
                assert said.seen["C:Icanhaz"] == said.seen["S:IcanhazOk"] == 24
                assert said.begun == {"/new": 1}

    run(story)
