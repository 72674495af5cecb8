"""Watching folders: what the notifications miss, the rescan finds."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from specwire.runtime.filemq import watcher as watcher_module
from specwire.runtime.filemq.catalogue import Change, Doubt, Gone, Put, Trust, Unfit
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.watcher import Watcher
from tests.integration.filemq_disks import open_folder, run_as_nobody

TIMEOUT_S = 60.0


def watch(folder: Path, *, rescan_s: float) -> tuple[Watcher, asyncio.Queue[list[Change]]]:
    seen: asyncio.Queue[list[Change]] = asyncio.Queue()
    publication = Publication(folder)
    return Watcher([publication], lambda _, changes: seen.put_nowait(changes), rescan_s=rescan_s), seen


def names(changes: list[Change]) -> list[str]:
    return [change.entry.name for change in changes if isinstance(change, Put)]


async def never(
    folder: Path, stop: asyncio.Event, begun: asyncio.Event, skips: object
) -> AsyncGenerator[set[str]]:
    """A system whose notifications are lost."""
    begun.set()
    await stop.wait()
    if not stop.is_set():
        yield set()


async def fail(
    folder: Path, stop: asyncio.Event, begun: asyncio.Event, skips: object
) -> AsyncGenerator[set[str]]:
    """A system that allows no more watches."""
    raise OSError(errno.ENOSPC, "no space left for watches")
    yield set()


def test_notification_is_enough(tmp_path: Path) -> None:
    async def story() -> None:
        watcher, seen = watch(tmp_path, rescan_s=3600.0)
        await watcher.start()
        (tmp_path / "new").write_bytes(b"new")
        async with asyncio.timeout(TIMEOUT_S):
            assert names(await seen.get()) == ["/new"]
        await watcher.close()

    asyncio.run(story())


def once(place: str) -> Callable[..., AsyncGenerator[set[str]]]:
    """A system that has dropped notifications: it reports `place`, and nothing after that."""
    untold = [place]

    async def notify(
        folder: Path, stop: asyncio.Event, begun: asyncio.Event, skips: object
    ) -> AsyncGenerator[set[str]]:
        begun.set()
        while not (folder / place).exists():
            await asyncio.sleep(0.01)
        if untold:
            yield {str(folder / untold.pop())}
        await stop.wait()

    return notify


def test_what_was_not_notified_in_a_burst_is_found_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before the next rescan, which is hours away."""
    monkeypatch.setattr(watcher_module, "watch_tree", once("last"))

    async def story() -> None:
        watcher, seen = watch(tmp_path, rescan_s=3600.0)
        await watcher.start()
        for name in ("lost", "last"):
            (tmp_path / name).write_text(name)
        async with asyncio.timeout(TIMEOUT_S):
            assert names(await seen.get()) == ["/last"]
            assert "/lost" in names(await seen.get())
        await watcher.close()

    asyncio.run(story())


def test_a_name_that_is_not_utf8_breaks_no_notification(tmp_path: Path) -> None:
    async def story() -> None:
        watcher, seen = watch(tmp_path, rescan_s=3600.0)
        await watcher.start()
        (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"1")
        (tmp_path / "new").write_bytes(b"new")
        async with asyncio.timeout(TIMEOUT_S):
            changes: list[Change] = []
            while "/new" not in names(changes):
                changes += await seen.get()
            assert [change.reason for change in changes if isinstance(change, Unfit)] == [
                "is not valid UTF-8"
            ]
        await watcher.close()

    asyncio.run(story())


def test_a_folder_that_cannot_be_read_costs_no_other_its_notifications() -> None:
    """The folder is watched as soon as it can be read."""

    async def story(folder: Path) -> None:
        for name in ("a", "locked", "z"):
            (folder / name).mkdir()
        (folder / "locked").chmod(0)
        watcher, seen = watch(folder, rescan_s=3600.0)
        await watcher.start()
        async with asyncio.timeout(TIMEOUT_S):
            assert await seen.get() == [Doubt("/locked", "cannot be read: Permission denied")]
            (folder / "z" / "new").write_bytes(b"new")
            assert names(await seen.get()) == ["/z/new"]
            (folder / "locked").chmod(0o755)
            assert Trust("/locked") in await seen.get()
            (folder / "locked" / "new").write_bytes(b"new")
            assert names(await seen.get()) == ["/locked/new"]
        await watcher.close()

    with open_folder() as folder:
        run_as_nobody(folder, lambda: asyncio.run(story(folder)))


def test_closing_ends_everything_though_a_watch_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an error that nobody thought of, which the loop is told of."""
    told: list[object] = []

    async def fail_oddly(
        folder: Path, stop: asyncio.Event, begun: asyncio.Event, skips: object
    ) -> AsyncGenerator[set[str]]:
        raise ZeroDivisionError
        yield set()

    monkeypatch.setattr(watcher_module, "watch_tree", fail_oddly)

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        watcher, _ = watch(tmp_path, rescan_s=3600.0)
        await watcher.start()
        async with asyncio.timeout(TIMEOUT_S):
            await watcher.close()

    asyncio.run(story())
    (error,) = told
    assert isinstance(error, ZeroDivisionError)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("filemq-scan")]


@pytest.mark.parametrize(
    "how", ["moved and back", "moved, another made", "deleted, another made", "emptied place"]
)
def test_a_folder_that_vanishes_deletes_nothing_and_is_watched_again_when_it_is_back(
    tmp_path: Path, how: str
) -> None:
    """It is told once. Files that are not in what comes back are gone then; a place without files is not back."""
    folder, aside = tmp_path / "folder", tmp_path / "aside"
    folder.mkdir()
    for name in ("kept", "left out"):
        (folder / name).write_text(name)

    async def story() -> None:
        watcher, seen = watch(folder, rescan_s=3600.0)
        await watcher.start()
        await seen.get()
        folder.rename(aside)  # in one step: what is deleted one by one, while the folder is there, is deleted
        if how == "deleted, another made":
            shutil.rmtree(aside)
        if how == "emptied place":
            folder.mkdir()
        async with asyncio.timeout(TIMEOUT_S):
            (told,) = await seen.get()
            assert isinstance(told, Unfit) and told.name == "/"
            assert f"{folder} " in told.reason
            if how == "moved and back":
                (aside / "left out").unlink()
                aside.rename(folder)
            else:
                other = tmp_path / "other"
                other.mkdir()
                (other / "kept").write_text("kept")
                other.rename(folder)  # takes the place of an empty folder, too
            changes = await seen.get()
            while Gone("/left out") not in changes:
                changes += await seen.get()
            assert Gone("/kept") not in changes
            assert not any(isinstance(change, Unfit) for change in changes)
            (folder / "new").write_text("new")
            while "/new" not in names(changes):
                changes += await seen.get()
        await watcher.close()

    asyncio.run(story())


@pytest.mark.parametrize("notifications", [never, fail])
def test_rescan_finds_what_was_not_notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notifications: object
) -> None:
    monkeypatch.setattr(watcher_module, "watch_tree", notifications)

    async def story() -> None:
        watcher, seen = watch(tmp_path, rescan_s=0.05)
        await watcher.start()
        (tmp_path / "new").write_bytes(b"new")
        async with asyncio.timeout(TIMEOUT_S):
            assert names(await seen.get()) == ["/new"]
        await watcher.close()

    asyncio.run(story())


def test_missing_folder_is_told_and_nothing_is_left_running(tmp_path: Path) -> None:
    async def story() -> None:
        watcher, _ = watch(tmp_path / "missing", rescan_s=3600.0)
        with pytest.raises(FileNotFoundError):
            await watcher.start()
        await watcher.close()

    asyncio.run(story())


def test_publication_given_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()

    async def story() -> None:
        watcher, seen = watch(Path("folder"), rescan_s=3600.0)
        await watcher.start()
        monkeypatch.chdir("/")
        (tmp_path / "folder" / "new").write_bytes(b"new")
        async with asyncio.timeout(TIMEOUT_S):
            assert names(await seen.get()) == ["/new"]
        await watcher.close()

    asyncio.run(story())
