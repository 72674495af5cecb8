"""What may be done to files that are published: moved, linked, grown for ever, full of holes, deep in folders.

Every version that arrives is one that the file had; and what happens to one file delays no other.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from specwire.generated.filemq import Cheezburger, Icanhaz, IcanhazOk, Nom, Ohai, OhaiOk, Operation
from specwire.runtime.filemq.events import FileReceived
from tests.integration.filemq_raw import raw_peers
from tests.integration.filemq_scene import digests, event_of, in_step, run, serving, subscribing
from tests.integration.filemq_watch import Line

RESYNC = (("RESYNC", "1"),)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def operations(lines: Iterable[Line]) -> Counter[str]:
    """Count what was said of each name: ``+name`` for a beginning of the file, ``-name`` for its deletion."""
    return Counter(("-" if line.deletes else "+") + line.name for line in lines if line.offset == 0)


def test_renaming_is_a_deletion_and_a_creation(tmp_path: Path, source: Path) -> None:
    """Of a file, of a folder, into a folder, over another file, and two that change names; nothing else is said."""
    for name in ("file", "moved", "folder/a", "folder/deep/b", "under", "over", "x", "y", "stays"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(name.encode())

    async def story() -> None:
        async with (
            serving(source) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            await in_step(server, client)
            lines = watch.keep_transcript()
            (source / "file").rename(source / "file 2")
            (source / "folder").rename(source / "folder 2")
            (source / "moved").rename(source / "folder 2/moved")
            (source / "under").rename(source / "over")
            (source / "x").rename(source / "z")
            (source / "y").rename(source / "x")
            (source / "z").rename(source / "y")
            await in_step(server, client)
            said = operations(lines)
            assert said.pop("+/x") and said.pop("+/y"), "they have each other's content"
            for passing in ("-/x", "-/y", "+/z", "-/z"):  # who looks in between sees more
                said.pop(passing, None)
            gone = ["-/file", "-/folder/a", "-/folder/deep/b", "-/moved", "-/under"]
            new = ["+/file 2", "+/folder 2/a", "+/folder 2/deep/b", "+/folder 2/moved", "+/over"]
            assert said == dict.fromkeys([*gone, *new], 1)
        assert digests(tmp_path / "inbox") == digests(source)

    run(story)


def test_file_that_is_renamed_while_it_is_sent(source: Path) -> None:
    """A deletion ends it at once, credit or not, and its content comes whole under the new name."""
    content = os.urandom(30_000)

    async def story() -> None:
        (source / "old").write_bytes(content)
        async with serving(source, chunk_octets=1000) as (server, _), raw_peers(server.endpoint) as peer:
            raw = peer()
            for command, answer in (
                (Ohai(), OhaiOk),
                (Icanhaz(path="/", options=RESYNC, cache=()), IcanhazOk),
            ):
                raw.send(command)
                assert type(await raw.hear()) is answer
            raw.send(Nom(credit=10_000))
            for _ in range(10):
                await raw.hear()
            (source / "old").rename(source / "new")
            deletion = await raw.hear()
            assert isinstance(deletion, Cheezburger)
            assert (deletion.operation, deletion.filename) == (Operation.DELETE, "/old")
            raw.send(Nom(credit=2**62))
            heard = [await raw.hear() for _ in range(31)]
            chunks = [command for command in heard if isinstance(command, Cheezburger)]
            assert {chunk.filename for chunk in chunks} == {"/new"}
            assert [chunk.offset for chunk in chunks] == list(range(0, 31_000, 1000))
            assert b"".join(chunk.chunk for chunk in chunks) == content

    run(story)


def test_two_names_of_one_file(tmp_path: Path, source: Path) -> None:
    """Each is a file of its own in the inbox; what is written through one name reaches the other too."""

    async def story() -> None:
        (source / "a").write_bytes(b"first")
        os.link(source / "a", source / "b")
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            await in_step(server, client)
            inbox = tmp_path / "inbox"
            assert (inbox / "a").stat().st_ino != (inbox / "b").stat().st_ino
            (source / "a").write_bytes(b"through the other name")
            await in_step(server, client)
            assert (inbox / "a").read_bytes() == (inbox / "b").read_bytes() == b"through the other name"
            (source / "a").unlink()
            await in_step(server, client)
            assert list(digests(inbox)) == ["/b"]

    run(story)


def test_permissions_and_times_are_nobodys_content(tmp_path: Path, source: Path) -> None:
    """FILEMQ carries no modes: a change of them sends nothing, and a file that cannot be read is told of."""

    async def story() -> None:
        (source / "file").write_bytes(b"content")
        async with (
            serving(source) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            await in_step(server, client)
            lines = watch.keep_transcript()
            (source / "file").chmod(0o600)
            await server.rescan()
            (source / "file").chmod(0o755)
            os.utime(source / "file", ns=(10**18, 10**18))
            await server.rescan()
            (source / "later").write_bytes(b"later")
            await in_step(server, client)
            assert operations(lines) == {"+/later": 1}
            assert (tmp_path / "inbox/file").stat().st_mode & 0o111 == 0, "what arrives is not executable"

    run(story)


def test_holes_are_read_as_zeros(tmp_path: Path, source: Path) -> None:
    with (source / "sparse").open("wb") as file:
        file.truncate(40_000_000)
        for place in (0, 12_345_678, 39_999_990):
            os.pwrite(file.fileno(), b"data", place)

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            await in_step(server, client)
        assert digests(tmp_path / "inbox") == digests(source)

    run(story)


def test_file_that_grows_all_the_time_is_never_mixed_and_lets_others_pass(
    tmp_path: Path, source: Path
) -> None:
    """A log is written to as fast as it goes; whatever arrives of it is what it was at some moment."""
    log = source / "a.log"
    lines = b"".join(b"%09d\n" % i * 10 for i in range(40_000))
    log.write_bytes(lines[:1_000_000])

    async def grow(ended: asyncio.Event) -> None:
        with log.open("ab", buffering=0) as file:
            for at in range(1_000_000, len(lines), 100):
                file.write(lines[at : at + 100])
                await asyncio.sleep(0.001)
                if ended.is_set():
                    return
        raise AssertionError("the others did not pass while the log grew")

    async def story() -> None:
        async with (
            serving(source, chunk_octets=20_000) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            received = client.events()
            ended = asyncio.Event()
            growing = asyncio.create_task(grow(ended))
            for i in range(5):
                (source / f"b{i}").write_bytes(b"small")
                await event_of(received, FileReceived, lambda event, path=f"/b{i}": event.path == path)  # type: ignore[misc]
            ended.set()
            await growing
            await in_step(server, client)
        assert digests(tmp_path / "inbox") == digests(source)
        for event in [event async for event in received if isinstance(event, FileReceived)]:
            if event.path == "/a.log":
                assert event.sha1 == hashlib.sha1(lines[: event.size]).hexdigest().upper()

    run(story)


def test_file_that_is_replaced_all_the_time_is_never_mixed(tmp_path: Path, source: Path) -> None:
    """New versions are renamed into its place, as careful programs do; each that arrives is one of them."""
    versions = [bytes([n]) * (200_000 + 1000 * n) for n in range(40)]
    known = {hashlib.sha1(version).hexdigest().upper() for version in versions}

    async def story() -> None:
        (source / "file").write_bytes(versions[0])
        async with (
            serving(source, chunk_octets=5000) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox", window_octets=20_000) as (client, _),
        ):
            received = client.events()
            for version in versions[1:]:
                seen = watch.seen["S:Cheezburger"]
                while watch.seen["S:Cheezburger"] < seen + 2:
                    await asyncio.sleep(0)
                (tmp_path / "aside").write_bytes(version)
                (tmp_path / "aside").rename(source / "file")
            await in_step(server, client)
        events = [event async for event in received if isinstance(event, FileReceived)]
        assert events
        assert {event.sha1 for event in events} <= known
        assert (tmp_path / "inbox/file").read_bytes() == versions[-1]

    run(story)


def test_folders_a_hundred_deep(tmp_path: Path, source: Path) -> None:
    """The deepest file is published, changed and deleted, and its hundred folders leave the inbox with it."""
    deep = Path(*["d"] * 100, "file")

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox", "/" + "d/" * 100) as (client, _),
        ):
            received = client.events()
            (source / deep).parent.mkdir(parents=True)
            (source / deep).write_bytes(b"first")
            await event_of(received, FileReceived)
            (source / deep).write_bytes(b"second")
            await in_step(server, client)
            assert (tmp_path / "inbox" / deep).read_bytes() == b"second"
            (source / deep).unlink()
            await in_step(server, client)
            assert [path.name for path in (tmp_path / "inbox").iterdir()] == [".specwire-inbox"]

    run(story)
