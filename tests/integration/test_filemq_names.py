"""What files may be called, and what may be done to them by name, between a folder and an inbox.

Names are octets: two that look alike are two files, and nothing of a name is ever changed on the way.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specwire.runtime.filemq.events import FileReceived
from specwire.runtime.kernel.log import LogEvent, Refused
from tests.integration.filemq_process import running
from tests.integration.filemq_scene import RESERVED, digests, event_of, in_step, run, serving, subscribing
from tests.integration.filemq_watch import watch_capture

COMPOSED = unicodedata.normalize("NFC", "é")
DECOMPOSED = unicodedata.normalize("NFD", "é")

NAMES = [
    "a space", " leading", "trailing ", "two  spaces", "\u00a0", "\u3000wide", "tab\there", "newline\nhere", "\r",
    "'quote'", '"double"', "`backtick`", "back\\slash", "per%cent %2F %s {} {0}", "$HOME", "~", "*", "?", "[a-z]", "|&;<>()!#",
    "-rf", "--help", ".hidden", "...", "..a", "a..", "=", "a=b", "=a", "a=", "RESYNC=1", ":", "C:", "nul", "@", ",",
    "\x01", "\x1b[31mred", "\x7f", "\ufeffbom", "\u200b", "\u202eright to left", "\u2028",
    "Name", "name", "NAME", COMPOSED, DECOMPOSED, "ﬁ", "fi", "ß", "ẞ", "ss", "İ", "i̇",
    "שלום", "مرحبا", "日本語", "한국어", "ไทย", "🧀🍔", "👩‍👩‍👧‍👦", "Z̸a̷l̶g̵o̸", "\U0010fffd", "\ufffd",
    RESERVED.upper(), f"{RESERVED}2", f"x{RESERVED}", "journal", "size", "0", "…" * 80,
    "s" * 213, "s" * 214, "s" * 215, "s" * 254,
]  # fmt: skip
"""Components; the last few are the longest that fit a cache, a little more, and the longest name of all."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def fill(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())


async def refused(watch: AsyncIterator[LogEvent], words: str) -> str:
    return (await event_of(watch, Refused, lambda event: words in event.reason)).name


def test_any_name_arrives_as_it_is(tmp_path: Path, source: Path) -> None:
    """Octet for octet, and known again from the cache by the next connection."""
    assert len(set(NAMES)) == len(NAMES)
    fill(source, NAMES)
    fill(source / "below", [name for name in NAMES if len(name.encode()) < 200])

    async def story() -> None:
        async with serving(source) as (server, _):
            async with subscribing(server.endpoint, tmp_path / "inbox") as (client, _):
                await in_step(server, client)
                assert server.digests() == digests(source)
                assert client.counters.refusals == server.counters.refusals == 0
            assert digests(tmp_path / "inbox") == digests(source)
            fill(source, ["one more"])
            async with subscribing(server.endpoint, tmp_path / "inbox") as (client, _):
                watch = client.events()
                await in_step(server, client)
            again = {event.path async for event in watch if isinstance(event, FileReceived)}
            # Only these do not fit an entry of the cache, `name=digest` in 255 octets.
            assert again == {"/one more"} | {f"/{name}" for name in NAMES if len(name.encode()) > 214}

    run(story)


def test_paths_of_any_name_are_subscribed_to(tmp_path: Path, source: Path) -> None:
    """Each path is one folder, though the names of others begin so, look so, or are so in other letters."""
    folders = ["a", "a b", "a=b", "A", COMPOSED, DECOMPOSED, "🧀", "%61", "*", "\n", "-a", ".a"]
    fill(source, [f"{folder}/file" for folder in folders])

    async def story() -> None:
        async with serving(source) as (server, _):
            for i, folder in enumerate(folders):
                async with subscribing(server.endpoint, tmp_path / str(i), f"/{folder}/") as (client, _):
                    await in_step(server, client, path=f"/{folder}")
                assert list(digests(tmp_path / str(i))) == [f"/{folder}/file"]

    run(story)


def test_names_that_cannot_be_sent_are_told_of_and_others_pass(tmp_path: Path, source: Path) -> None:
    """One octet too many, not UTF-8, an inbox's own folder: reported by name, in the place of no other file."""
    fill(source, ["n" * 254, "good"])

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            watch = server.events()
            fill(source, ["n" * 255])
            assert await refused(watch, "is 256 octets long, and 255 are allowed") == "/" + "n" * 255
            fill(source, ["d" * 127 + "/" + "é" * 64])
            await refused(watch, "is 257 octets long")
            for name in (RESERVED, f"below/{RESERVED}/file"):
                fill(source, [name])
                assert await refused(watch, "is reserved") == f"/{name.removesuffix('/file')}"
            os.mkfifo(source / "pipe")
            assert await refused(watch, "named pipe") == "/pipe"
            (source / "link").symlink_to(source / "good")
            assert await refused(watch, "symbolic link") == "/link"
            fill(source, ["after all"])
            await in_step(server, client)
            assert set(server.digests()) == {"/" + "n" * 254, "/good", "/after all"}
            await server.rescan()
            told = server.counters.refusals
            await server.rescan()
            assert server.counters.refusals == told, "each is told of once"

    run(story)


def test_names_that_are_not_utf8_are_told_of_and_others_are_noticed(tmp_path: Path, source: Path) -> None:
    """They come while the folder is watched, and what comes after them is still known from notifications."""

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            watch, received = server.events(), client.events()
            for i, name in enumerate((b"not \xff UTF-8", b"\xc3", b"sur\xed\xa0\x80rogate")):
                (source / os.fsdecode(name)).write_bytes(b"x")
                assert os.fsencode(await refused(watch, "is not valid UTF-8")) == b"/" + name
                fill(source, [str(i)])
                assert (await event_of(received, FileReceived)).path == f"/{i}"
            (source / os.fsdecode(b"folder \xff")).mkdir()
            (source / os.fsdecode(b"folder \xff") / "file").write_bytes(b"x")
            await refused(watch, "is not valid UTF-8")
            await in_step(server, client)
            assert set(server.digests()) == {"/0", "/1", "/2"}

    run(story)


def test_commands_take_any_name(tmp_path: Path, source: Path) -> None:
    """The lines of the log are whole lines whatever is in a name, also where it is not UTF-8."""
    fill(source, ["new\nline", "\x1b[31mred", "🧀"])
    (source / os.fsdecode(b"bad \xff")).write_bytes(b"x")

    async def story() -> None:
        inbox, capture = tmp_path / "inbox", tmp_path / "capture"
        serve = ("serve", str(source), "--endpoint", "tcp://127.0.0.1:*", "--capture", str(capture))
        async with running(*serve) as server:
            endpoint = (await server.line_with("serving 3 files on")).split()[-1]
            async with running("subscribe", endpoint, "/", "--inbox", str(inbox)) as client:
                for name in (r"/new\nline", r"/\x1b[31mred", "/🧀"):
                    await client.line_with(f"received {name} ")
                await client.stop()
            await server.line_with("is not valid UTF-8")
            await server.stop()
        assert digests(inbox).keys() == {"/new\nline", "/\x1b[31mred", "/🧀"}
        watch = watch_capture(capture, "S")
        assert watch.seen["S:Cheezburger"] == 6 and not watch.violations, watch.violations

    run(story)


def test_files_become_folders_and_the_reverse_while_a_client_is_away(tmp_path: Path, source: Path) -> None:
    """At any depth, and twice; the inbox that was left behind becomes what is published now."""

    trees = [["a", "d/e/f", "g/h/i", "same"], ["a/b/c", "d", "g/h", "same"]] * 2

    async def story() -> None:
        async with serving(source) as (server, _):
            for tree in trees:
                for path in source.iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                fill(source, tree)
                async with subscribing(server.endpoint, tmp_path / "inbox") as (client, _):
                    await in_step(server, client)
                    assert client.counters.refusals == 0
                assert digests(tmp_path / "inbox") == digests(source)
                assert len(server.digests()) == len(tree)

    run(story)
