"""What happens in a published folder is known from the system's notifications alone, whatever kind of change it is.

The walks through the folder come once an hour here, so nothing but a notification can have told. That a change is
looked at soon is a matter of two figures, `STEP_S` and `GATHER_S`, which add up to less than the 200 ms that are promised;
how long it takes in fact is measured by ``make bench``.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from specwire.runtime.filemq import inotify
from specwire.runtime.filemq.catalogue import Change, Gone, Put
from specwire.runtime.filemq.events import FileReceived
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.watcher import Watcher
from tests.integration.filemq_scene import NEVER_S, digests, event_of, run, serving, subscribing

FILES = ("file", "folder/one", "folder/deep/two", "other/three")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A tree whose files all hold 10,000 octets; beside it one that can be moved in."""
    for folder, names in (("source", FILES), ("outside", ("file", "tree/a", "tree/deep/b"))):
        for name in names:
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * 10_000)
    return tmp_path / "source"


def map_and_write(path: Path) -> None:
    """Write through a memory map, which the system notifies when the file is closed."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as octets:
        octets[5000:5004] = b"mmap"


def write_in_place(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(5000)
        file.write(b"here")


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def swap(a: Path, b: Path) -> None:
    aside = a.with_name("aside")
    a.rename(aside)
    b.rename(a)
    aside.rename(b)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inner").write_bytes(b"inner")


def to_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"a file")


CHANGES: Mapping[str, Callable[[Path, Path], object]] = {
    "a new file": lambda source, _: (source / "new").write_bytes(b"new"),
    "a new empty file": lambda source, _: (source / "new").touch(),
    "a file in a new folder": lambda source, _: to_folder(source / "file"),
    "a file in a folder of two new ones": lambda source, _: shutil.copytree(
        source / "folder", source / "new/folder"
    ),
    "written anew": lambda source, _: (source / "file").write_bytes(b"anew"),
    "written to in its middle": lambda source, _: write_in_place(source / "file"),
    "appended to": lambda source, _: append(source / "file"),
    "written to through a memory map": lambda source, _: map_and_write(source / "file"),
    "truncated": lambda source, _: os.truncate(source / "file", 10),
    "extended with a hole": lambda source, _: os.truncate(source / "file", 20_000),
    "renamed": lambda source, _: (source / "file").rename(source / "renamed"),
    "renamed to another folder": lambda source, _: (source / "file").rename(source / "other/file"),
    "renamed over another": lambda source, _: (source / "file").rename(source / "folder/one"),
    "moved in": lambda source, outside: (outside / "file").rename(source / "moved in"),
    "moved in over another": lambda source, outside: (outside / "tree/a").rename(source / "file"),
    "moved out": lambda source, outside: (source / "file").rename(outside / "moved out"),
    "deleted": lambda source, _: (source / "file").unlink(),
    "linked to": lambda source, _: os.link(source / "file", source / "link"),
    "a link from outside": lambda source, outside: os.link(outside / "file", source / "link"),
    "a folder moved in": lambda source, outside: (outside / "tree").rename(source / "tree"),
    "a folder moved out": lambda source, outside: (source / "folder").rename(outside / "folder"),
    "a folder renamed": lambda source, _: (source / "folder").rename(source / "renamed"),
    "a folder deleted": lambda source, _: shutil.rmtree(source / "folder"),
    "a folder that becomes a file": lambda source, _: to_file(source / "folder"),
    "two folders that change names": lambda source, _: swap(source / "folder", source / "other"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_kind_of_change_is_noticed(tmp_path: Path, source: Path, change: str) -> None:
    """And after it, in what it made, a change of the ordinary kind too."""
    known = digests(source)

    async def story() -> None:
        news = asyncio.Event()

        def take(_: Publication, changes: list[Change]) -> None:
            for item in changes:
                match item:
                    case Put(entry=entry):
                        known[entry.name] = entry.sha1
                    case Gone(name=name):
                        known.pop(name, None)
            news.set()

        async def until_known() -> None:
            while known != digests(source):
                news.clear()
                await news.wait()

        watcher = Watcher([Publication(source)], take, rescan_s=NEVER_S)
        await watcher.start()
        try:
            CHANGES[change](source, tmp_path / "outside")
            await until_known()
            for path in [path for path in source.rglob("*") if path.is_file()]:
                path.write_bytes(b"once more: " + bytes(path))
            await until_known()
        finally:
            await watcher.close()

    run(story)


def test_a_change_of_mode_is_no_change(source: Path) -> None:
    """It may be looked at, and the file told of again, with the content that it had."""

    async def story() -> None:
        seen: asyncio.Queue[list[Change]] = asyncio.Queue()
        watcher = Watcher(
            [Publication(source)], lambda _, changes: seen.put_nowait(changes), rescan_s=NEVER_S
        )
        await watcher.start()
        before = digests(source)
        await seen.get()
        (source / "file").chmod(0o600)
        (source / "folder").chmod(0o700)
        (source / "new").write_bytes(b"new")
        told: dict[str, str] = {}
        while "/new" not in told:
            changes = await seen.get()
            assert all(isinstance(change, Put) for change in changes)
            told |= {change.entry.name: change.entry.sha1 for change in changes if isinstance(change, Put)}
        await watcher.close()
        del told["/new"]
        assert told.items() <= before.items()

    run(story)


def test_changes_are_gathered_for_less_than_is_promised() -> None:
    """A burst is handed over GATHER_S after its first change at the latest."""
    assert inotify.STEP_S + inotify.GATHER_S < 0.2


def test_a_change_that_never_stops_delays_no_other(tmp_path: Path, source: Path) -> None:
    """While one file is written to without a pause, other files are noticed, one after the other."""

    async def write(path: Path) -> None:
        while True:
            path.write_bytes(os.urandom(100))
            await asyncio.sleep(0)

    async def story() -> None:
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            received = client.events()
            writing = asyncio.create_task(write(source / "busy"))
            for i in range(5):
                (source / str(i)).write_bytes(b"calm")
                await event_of(received, FileReceived, lambda event, path=f"/{i}": event.path == path)  # type: ignore[misc]
            writing.cancel()

    run(story)
