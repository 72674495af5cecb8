"""Thousands of files in one tree: after an absence exactly what changed is read and sent.

`SPECWIRE_SOAK_FILES` is the number of files (5,000).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.filemq import FilemqClient, FilemqServer, Publication, index
from specwire.runtime.filemq.digeststore import DigestStore
from specwire.runtime.filemq.reading import Digest, digest_file
from tests.integration.filemq_scene import NEVER_S, RESERVED, serving, subscribing

FILES = int(os.environ.get("SPECWIRE_SOAK_FILES", "5000"))
STORY_S = 60 + FILES / 250
LONG_AGO_NS = 10**18
CHUNK_AND_END = 2


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has time for all the files."""

    async def bounded() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(bounded())


def place(n: int) -> str:
    """Return where a file is: some hundred in a folder, with names that sort otherwise than their folders do."""
    return f"group {n % 7}/folder-{n // 400:04}/file {n:06}"


def write(path: Path, content: bytes) -> None:
    """Write a file that looks old, so that its digest is kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the files that the server has read to know their digests."""
    sizes: list[int] = []

    def digest(descriptor: int, is_abandoned: Callable[[], bool]) -> Digest:
        sizes.append(os.fstat(descriptor).st_size)
        return digest_file(descriptor, is_abandoned)

    monkeypatch.setattr(index, "digest_file", digest)
    return sizes


def cheezburgers(server: FilemqServer) -> int:
    return server.counters.commands_out.get("CHEEZBURGER", 0)


async def equal(server: FilemqServer, client: FilemqClient) -> None:
    await client.until_equal(server.digests(), timeout_s=STORY_S)


def test_client_that_was_away_gets_exactly_what_changed(tmp_path: Path, reads: list[int]) -> None:
    """The inbox was filled by other means; then some of many files change while neither side runs."""
    source, inbox = tmp_path / "source", tmp_path / "inbox"
    for n in range(FILES):
        for folder in (source, inbox):
            write(folder / place(n), b"%d" % n)
    for n in range(20):
        write(source / f"late {n}", b"%d" % n)

    async def first() -> None:
        async with (
            serving(published()) as (server, _),
            subscribing(server.endpoint, inbox, origin="at any port") as (client, _),
        ):
            await equal(server, client)
            assert cheezburgers(server) == 20 * CHUNK_AND_END
        assert len(reads) == FILES + 20

    async def second() -> None:
        async with (
            serving(published()) as (server, _),
            subscribing(server.endpoint, inbox, origin="at any port") as (client, _),
        ):
            await equal(server, client)
            assert client.counters.files == 15
            assert client.counters.deletions == 5
            assert cheezburgers(server) == 15 * CHUNK_AND_END + 5
        assert len(reads) == 15

    def published() -> Publication:
        return Publication(source, digests=store)

    with closing(DigestStore(tmp_path / "cache")) as store:
        run(first)
        reads.clear()
        for n in range(0, FILES, FILES // 10):
            write(source / place(n), b"changed")
        for n in range(5):
            (source / f"late {n}").unlink()
            write(source / f"new {n}", b"new")
        run(second)
    held = {path.relative_to(inbox) for path in inbox.rglob("*") if path.is_file()}
    copies = {path for path in held if ".conflict-" in path.name}
    assert len(copies) == 10, (
        "what did not come from the server is kept when the server sends another version"
    )
    assert {p for p in held - copies if RESERVED not in p.parts} == {
        path.relative_to(source) for path in source.rglob("*") if path.is_file()
    }


def test_clients_are_served_while_many_changes_are_taken_over(tmp_path: Path) -> None:
    """A whole tree that comes at once is handed over bit by bit: between two bits the loop does other work."""
    source, aside = tmp_path / "source", tmp_path / "aside"
    source.mkdir()
    for n in range(FILES // 10):
        write(aside / place(n), b"")

    async def story() -> None:
        seen: list[int] = []
        async with serving(source, rescan_s=NEVER_S) as (server, _):
            for folder in aside.iterdir():
                folder.rename(source / folder.name)
            rescan = asyncio.create_task(server.rescan())
            while not rescan.done():
                [tree] = server.status().publications
                seen.append(tree.files)
                await asyncio.sleep(0)
        steps = [after - before for before, after in pairwise(seen)]
        assert sum(steps) > FILES // 20
        assert max(steps) <= 128

    run(story)
