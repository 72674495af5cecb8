"""A server that is to stop ends what it is looking at, and keeps the digests that it has."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from specwire.runtime.filemq import FilemqServer, Publication
from specwire.runtime.filemq.catalogue import Put
from specwire.runtime.filemq.digeststore import DigestStore
from specwire.runtime.filemq.reading import AbandonedError, digest_file

TIMEOUT_S = 60.0
LONG_AGO_S = 1_000_000_000


def endless_file(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let every file have more to read for ever; the event tells that reading has begun."""
    begun = threading.Event()

    def fill(descriptor: int, buffers: Sequence[memoryview], offset: int) -> int:
        begun.set()
        return len(buffers[0])

    monkeypatch.setattr(os, "preadv", fill)
    return begun


def test_reading_one_file_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"content")
    endless_file(monkeypatch)
    answers = iter([False, False, True])
    with (tmp_path / "a").open("rb") as file, pytest.raises(AbandonedError):
        digest_file(file.fileno(), lambda: next(answers))


def test_server_that_is_stopped_while_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"content")
    begun = endless_file(monkeypatch)

    async def story() -> None:
        starting = asyncio.create_task(FilemqServer([Publication(tmp_path)]).start())
        async with asyncio.timeout(TIMEOUT_S):
            assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting

    asyncio.run(story())


def test_server_that_is_stopped_while_it_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with asyncio.timeout(TIMEOUT_S), FilemqServer([Publication(tmp_path)]) as server:
            begun = endless_file(monkeypatch)
            (tmp_path / "a").write_bytes(b"content")
            looking = asyncio.create_task(server.rescan())
            assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
        await looking
        assert server.digests() == {}

    asyncio.run(story())


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start goes on where this one was given up, and a publication can be opened again."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_bytes(name.encode())
        os.utime(source / name, (LONG_AGO_S, LONG_AGO_S))
    with closing(DigestStore(tmp_path / "digests")) as store:
        publication = Publication(source, digests=store)
        read: list[int] = []
        whole = os.preadv

        def give_up_later(descriptor: int, buffers: Sequence[memoryview], offset: int) -> int:
            read.append(offset)
            if len(read) == 3:  # the content of the first file, its end, and the content of the second
                publication.abandon()
            return whole(descriptor, buffers, offset)

        monkeypatch.setattr(os, "preadv", give_up_later)
        publication.open()
        with pytest.raises(AbandonedError):
            publication.scan()
        publication.close()
        read.clear()
        publication = Publication(source, digests=store)
        publication.open()
        assert {change.entry.name for change in publication.scan() if isinstance(change, Put)} == {"/a", "/b"}
        publication.abandon()
        publication.close()
        assert len(read) == 2, "one file was read, its content and its end"
        publication.open()
        assert publication.scan() == []
        publication.close()
