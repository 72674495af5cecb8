"""Faults that were silent, or lasted until a restart; see findings, section 3. Each ends when its cause does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from specwire.runtime.filemq import Publication
from specwire.runtime.filemq.events import FilePublished, FileReceived
from specwire.runtime.filemq.policy import InboxRules, PublicationRules
from specwire.runtime.kernel.log import Refused
from tests.integration.filemq_disks import limit_watches, open_folder, run_as_nobody
from tests.integration.filemq_process import running
from tests.integration.filemq_scene import digests, event_of, in_step, run, serving, subscribing

pytestmark = pytest.mark.peers

TIMES = {"heartbeat": 0.5, "expiry": 30.0, "reconnect": 0.05}
OFTEN = InboxRules(check_s=0.1)
STORY_S = 120.0


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(STORY_S):
        while not condition():
            await asyncio.sleep(0.02)


def content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def test_the_limit_of_watches_is_said_once_and_the_folder_is_walked_through(source: Path) -> None:
    for name in ("a", "b", "c"):
        (source / name).mkdir()

    async def story() -> None:
        command = ("serve", str(source), "--endpoint", "tcp://127.0.0.1:*", "--set", "no-digests=true")
        async with running(*command, wrapper=limit_watches(3)) as server:
            line = await server.line_with("fs.inotify.max_user_watches")
            assert "is not watched, only walked through every 5 s" in line
            await server.line_with("serving 0 files")
            (source / "c" / "new").write_bytes(b"new")
            await server.line_with("published /c/new")
            await server.stop()
            assert sum("inotify" in line for line in server.lines) == 1

    run(story)


@pytest.mark.parametrize("change", ["deleted", "edited", "folder removed"])
def test_the_inbox_is_repaired_while_connected(tmp_path: Path, source: Path, change: str) -> None:
    (source / "d").mkdir()
    (source / "d/file").write_bytes(b"content")
    inbox = tmp_path / "inbox"
    held = inbox / "d/file"

    async def story() -> None:
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES, rules=OFTEN) as (client, _),
        ):
            await in_step(server, client)
            for _ in range(2):
                if change == "edited":
                    held.write_bytes(b"edited")
                else:
                    held.unlink()
                    if change == "folder removed":
                        held.parent.rmdir()
                await until(lambda: content(held) == b"content")
            assert client.counters.peerings == 1
        copies = [*inbox.rglob("*.conflict-*")]
        assert {path.read_bytes() for path in copies} == ({b"edited"} if change == "edited" else set())

    run(story)


def test_a_place_that_was_taken_is_used_when_it_is_free(tmp_path: Path, source: Path) -> None:
    """The server's folder became a file, where the user has a file of his in the folder."""
    (source / "x").mkdir()
    (source / "x/file").write_bytes(b"content")
    inbox = tmp_path / "inbox"

    async def story() -> None:
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES, rules=OFTEN) as (client, _),
        ):
            await in_step(server, client)
            events = client.events()
            (inbox / "x/mine").write_bytes(b"mine")
            (source / "x/file").unlink()
            (source / "x").rmdir()
            (source / "x").write_bytes(b"a file now")
            await event_of(events, Refused, lambda event: event.reason == "is a folder here")
            (inbox / "x/mine").unlink()
            (inbox / "x").rmdir()
            await until(lambda: content(inbox / "x") == b"a file now")
            assert client.counters.peerings == 1

    run(story)


def test_a_folder_that_may_be_written_again_gets_its_files() -> None:
    async def story(base: Path) -> None:
        (base / "source/d").mkdir(parents=True)
        (base / "source/d/file").write_bytes(b"content")
        inbox = base / "inbox"
        async with (
            serving(base / "source", timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, _),
        ):
            await in_step(server, client)
            events = client.events()
            (inbox / "d").chmod(0o555)
            (base / "source/d/new").write_bytes(b"new")
            refused = await event_of(events, Refused)
            assert (refused.name, refused.reason) == ("/d/new", "Permission denied; it is asked for again")
            (inbox / "d").chmod(0o755)
            await event_of(events, FileReceived, lambda event: event.path == "/d/new")
            assert client.counters.peerings == 1

    with open_folder() as base:
        run_as_nobody(base, lambda: run(lambda: story(base)))


@pytest.mark.parametrize("how", ["removed", "moved aside", "moved aside and back"])
def test_an_inbox_that_is_made_again_is_filled_again(tmp_path: Path, source: Path, how: str) -> None:
    """Nothing goes into the folder that was moved aside."""
    (source / "file").write_bytes(b"content")
    inbox, aside = tmp_path / "inbox", tmp_path / "aside"

    async def story() -> None:
        async with (
            serving(source, timers=TIMES) as (server, _),
            subscribing(server.endpoint, inbox, timers=TIMES) as (client, _),
        ):
            await in_step(server, client)
            events = client.events()
            inbox.rename(aside)
            (source / "new").write_bytes(b"new")
            refused = await event_of(events, Refused)
            assert (
                refused.reason
                == f"the inbox {inbox} is away: No such file or directory; it is asked for again"
            )
            assert not inbox.exists(), "it may be a place to mount a disk at"
            assert digests(aside).keys() == {"/file"}
            if how == "moved aside and back":
                aside.rename(inbox)
            else:
                inbox.mkdir()
            await until(lambda: digests(inbox) == digests(source))
            await in_step(server, client)
            assert client.counters.peerings == 1
            if how != "moved aside and back":
                assert digests(aside).keys() == {"/file"}

    run(story)


@pytest.mark.parametrize("step_octets", [100_000, 10])
def test_a_growing_file_is_sent_when_it_rests(tmp_path: Path, source: Path, step_octets: int) -> None:
    """Its first version at once where it is small, and then the one at which it rests."""
    target = source / "growing"

    async def story() -> None:
        publication = Publication(source, rules=PublicationRules(settle_s=0.4))
        async with (
            serving(publication, timers=TIMES) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox", timers=TIMES) as (client, _),
        ):
            events, published = client.events(), server.events()
            with target.open("wb", buffering=0) as file:
                for _ in range(40):
                    file.write(os.urandom(step_octets))
                    await asyncio.sleep(0.03)
            (source / "small").write_bytes(b"at once")
            await event_of(published, FilePublished, lambda event: event.path == "/small")
            await event_of(
                events, FileReceived, lambda event: (event.path, event.size) == ("/growing", 40 * step_octets)
            )
            assert watch.begun["/growing"] <= 3
        assert digests(tmp_path / "inbox") == digests(source)

    run(story)


def test_an_inbox_inside_its_publication_is_refused(source: Path) -> None:
    """Also where the way to it is another one; an inbox beside the folder, or for another path, is none."""
    (source / "file").write_bytes(b"content")
    (source.parent / "link").symlink_to(source)
    (source.parent / "other").mkdir()

    async def story() -> None:
        async with serving(
            Publication(source, "/a"), Publication(source.parent / "other", "/b"), timers=TIMES
        ) as (server, _):
            for inbox, path in ((source / "deep/in", "/"), (source.parent / "link", "/a/deep")):
                async with subscribing(server.endpoint, inbox, path, timers=TIMES) as (client, _):
                    async with asyncio.timeout(STORY_S):
                        assert "the inbox lies in the folder that is published at /a" in await client.finished
            async with subscribing(server.endpoint, source / "deep/in", "/b", timers=TIMES) as (client, _):
                (source.parent / "other/file").write_bytes(b"other")
                await until(lambda: content(source / "deep/in/b/file") == b"other")

    run(story)
