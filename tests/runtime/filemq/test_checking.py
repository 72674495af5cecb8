"""Digests of the beginnings of files, and readers that begin in the middle: on real files, in threads."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.filemq import checking
from specwire.runtime.filemq.actions import CheckPart
from specwire.runtime.filemq.catalogue import Entry, Put
from specwire.runtime.filemq.checking import PartChecks
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.reading import FileMovedError, TransferReader

CONTENT = bytes(range(256)) * 40
OLD_NS = 10**18


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest().upper()


@pytest.fixture
def publication(tmp_path: Path) -> Iterator[Publication]:
    (tmp_path / "file").write_bytes(CONTENT)
    os.utime(tmp_path / "file", ns=(OLD_NS, OLD_NS))
    opened = Publication(tmp_path)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def entry(publication: Publication) -> Entry:
    [change] = publication.scan()
    assert isinstance(change, Put)
    assert not change.entry.fresh
    return change.entry


class Bench:
    """Checks, and their answers by transfer."""

    def __init__(self, publication: Publication, entry: Entry | None) -> None:
        self.answers: dict[int, str | None] = {}
        self.news = asyncio.Event()
        self.checks = PartChecks(lambda name: None if entry is None else (publication, entry), self.take)

    def take(self, action: CheckPart, digest: str | None) -> None:
        assert action.transfer not in self.answers
        self.answers[action.transfer] = digest
        self.news.set()

    def begin(self, transfer: int, size: int) -> None:
        self.checks.check(CheckPart(b"peer", transfer, "/file", size))

    async def until(self, count: int) -> None:
        while len(self.answers) < count:
            self.news.clear()
            await self.news.wait()


def play(bench: Callable[[], Bench], story: Callable[[Bench], Coroutine[Any, Any, None]]) -> Bench:
    async def whole() -> Bench:
        made = bench()
        async with asyncio.timeout(60):
            await story(made)
            await made.checks.close()
        return made

    return asyncio.run(whole())


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("piece", [1, 100, 4096, 1 << 20])
def test_digest_is_that_of_the_beginning(
    publication: Publication, entry: Entry, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever pieces, of whatever length, many at a time."""
    monkeypatch.setattr(checking, "PIECE_OCTETS", piece)
    sizes = [1, 99, 100, 101, 4096, len(CONTENT)]

    async def story(bench: Bench) -> None:
        for number, size in enumerate(sizes):
            bench.begin(number, size)
        await bench.until(len(sizes))

    before = open_descriptors()
    bench = play(lambda: Bench(publication, entry), story)
    assert bench.answers == {number: sha1(CONTENT[:size]) for number, size in enumerate(sizes)}
    assert open_descriptors() == before


def rewrite(path: Path) -> None:
    path.write_bytes(CONTENT)


def cut_short(path: Path) -> None:
    path.write_bytes(CONTENT[:10])
    os.utime(path, ns=(OLD_NS, OLD_NS))


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("change", [rewrite, cut_short, link, Path.unlink])
def test_file_that_is_not_as_it_was_listed(
    publication: Publication, entry: Entry, change: Callable[[Path], None]
) -> None:
    """Whatever its octets are: nothing is said of them."""
    change(publication.folder / "file")

    async def story(bench: Bench) -> None:
        bench.begin(1, 100)
        await bench.until(1)

    assert play(lambda: Bench(publication, entry), story).answers == {1: None}


def test_file_that_is_not_published(publication: Publication) -> None:
    async def story(bench: Bench) -> None:
        bench.begin(1, 100)

    assert play(lambda: Bench(publication, None), story).answers == {1: None}


@pytest.mark.parametrize("closing", [False, True])
def test_check_that_is_abandoned_ends_with_its_piece(
    publication: Publication, entry: Entry, closing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told, and the file is closed; a close of the server ends it in the same way."""
    monkeypatch.setattr(checking, "PIECE_OCTETS", 1)
    read_piece = checking._Check.read_piece
    reading, go_on = threading.Event(), threading.Event()
    pieces: list[int] = []

    def wait_then_read(check: checking._Check) -> str | None:
        pieces.append(1)
        reading.set()
        assert go_on.wait(20)
        return read_piece(check)

    monkeypatch.setattr(checking._Check, "read_piece", wait_then_read)
    before = open_descriptors()

    async def story(bench: Bench) -> None:
        bench.begin(1, 100)
        await asyncio.to_thread(reading.wait)
        if closing:
            asyncio.get_running_loop().call_soon(go_on.set)
            await bench.checks.close()
        else:
            bench.checks.abandon(1)
            bench.checks.abandon(2)
            go_on.set()
            while bench.checks._checks:
                await asyncio.sleep(0)

    bench = play(lambda: Bench(publication, entry), story)
    assert bench.answers == {}
    assert len(pieces) == 1
    assert open_descriptors() == before


# ---- reading from the middle


def read_all(reader: TransferReader, size: int) -> bytes:
    chunks = b""
    while not reader.complete:
        chunks += reader.read(min(size, len(CONTENT) - reader._offset))
    reader.close()
    return chunks


@pytest.mark.parametrize("offset", [1, 5000, len(CONTENT) - 1])
@pytest.mark.parametrize("fresh", [False, True])
def test_reader_begins_in_the_middle(
    publication: Publication, entry: Entry, offset: int, fresh: bool
) -> None:
    reader = TransferReader(publication, msgspec.structs.replace(entry, fresh=fresh), offset)
    assert read_all(reader, 999) == CONTENT[offset:]


@pytest.mark.parametrize("where", [0, len(CONTENT) - 1])
def test_reader_that_began_in_the_middle_proves_the_whole(
    publication: Publication, entry: Entry, where: int
) -> None:
    """Where times prove nothing: a change of the same length in the same step of the clock, before or behind."""
    path = publication.folder / "file"
    octets = bytearray(CONTENT)
    octets[where] ^= 1
    with path.open("r+b") as file:
        file.write(octets)
    os.utime(path, ns=(OLD_NS, OLD_NS))
    reader = TransferReader(publication, msgspec.structs.replace(entry, fresh=True), 5000)
    with pytest.raises(FileMovedError, match="another digest"):
        read_all(reader, 1000)
    reader.close()
