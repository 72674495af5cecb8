"""Watching folders: what the notifications miss, the rescan finds."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from watchfiles import awatch

from specwire.runtime.filemq import lookout as lookout_module
from specwire.runtime.filemq.publication import Change, Gone, Publication, Put, Unfit
from specwire.runtime.filemq.watcher import Watcher

TIMEOUT_S = 60.0


def watch(folder: Path, *, rescan_s: float) -> tuple[Watcher, asyncio.Queue[list[Change]]]:
    seen: asyncio.Queue[list[Change]] = asyncio.Queue()
    publication = Publication(folder)
    return Watcher([publication], lambda _, changes: seen.put_nowait(changes), rescan_s=rescan_s), seen


def names(changes: list[Change]) -> list[str]:
    return [change.entry.name for change in changes if isinstance(change, Put)]


async def never(
    *paths: Path, stop_event: asyncio.Event, **settings: object
) -> AsyncIterator[set[tuple[int, str]]]:
    """Stand for a system whose notifications are lost."""
    await stop_event.wait()
    if not stop_event.is_set():
        yield set()


async def fail(*paths: Path, **settings: object) -> AsyncIterator[set[tuple[int, str]]]:
    """Stand for a system that allows no more watches."""
    raise OSError("no space left for watches")
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


def once(place: str) -> Callable[..., AsyncIterator[set[tuple[int, str]]]]:
    """Stand for a system whose queue has overflowed: it tells of `place`, and of nothing after that."""
    untold = [place]

    async def notify(
        *paths: Path, stop_event: asyncio.Event, **settings: object
    ) -> AsyncIterator[set[tuple[int, str]]]:
        while not (paths[0] / place).exists():
            await asyncio.sleep(0.01)
        if untold:
            yield {(1, str(paths[0] / untold.pop()))}
        await stop_event.wait()

    return notify


def test_what_was_not_notified_in_a_burst_is_found_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before the next rescan, which is hours away."""
    monkeypatch.setattr(lookout_module, "awatch", once("last"))

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


def test_a_watch_that_fails_is_told_once_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Four times there are no watches left; the fifth time there are."""
    tries = 0

    def notify(*paths: Path, **settings: Any) -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        return awatch(*paths, **settings) if tries == 5 else fail(*paths)

    monkeypatch.setattr(lookout_module, "awatch", notify)

    async def story() -> None:
        watcher, seen = watch(tmp_path, rescan_s=0.02)
        await watcher.start()
        async with asyncio.timeout(TIMEOUT_S):
            while tries < 5:
                await asyncio.sleep(0)
            (tmp_path / "new").write_bytes(b"new")
            assert names(await seen.get()) == ["/new"]
        await watcher.close()

    asyncio.run(story())
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path} is not watched, only rescanned: no space left for watches"
    ]


async def break_off(*paths: Path, **settings: object) -> AsyncIterator[set[tuple[int, str]]]:
    """Stand for `awatch` when a name is not UTF-8."""
    raise ExceptionGroup("unhandled errors in a TaskGroup", [RuntimeError("Unable to decode path")])
    yield set()


def test_a_watch_that_breaks_off_is_told_once_and_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What came while there was none is found by a walk, what comes after by notification again."""
    tries = 0

    def notify(*paths: Path, **settings: Any) -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        if tries == 4:
            (tmp_path / "between").touch()  # which has one version only
        return awatch(*paths, **settings) if tries > 4 else break_off(*paths)

    monkeypatch.setattr(lookout_module, "awatch", notify)
    monkeypatch.setattr(lookout_module, "AGAIN_S", 0.01)

    async def story() -> None:
        watcher, seen = watch(tmp_path, rescan_s=3600.0)
        await watcher.start()
        async with asyncio.timeout(TIMEOUT_S):
            while tries < 5:
                await asyncio.sleep(0)
            assert names(await seen.get()) == ["/between"]
            (tmp_path / "new").write_bytes(b"new")
            assert names(await seen.get()) == ["/new"]
        await watcher.close()

    asyncio.run(story())
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(f"the notifications of {tmp_path} broke off") and "Unable to decode path" in told


def test_a_watch_that_breaks_off_each_time_is_not_begun_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def notify(*paths: Path, **settings: Any) -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        return break_off(*paths)

    monkeypatch.setattr(lookout_module, "awatch", notify)
    monkeypatch.setattr(lookout_module, "AGAIN_S", 3600.0)

    async def story() -> None:
        watcher, seen = watch(tmp_path, rescan_s=3600.0)
        await watcher.start()
        (tmp_path / "new").write_bytes(b"new")
        await watcher.rescan()
        assert names(await seen.get()) == ["/new"]
        assert tries == 1
        async with asyncio.timeout(TIMEOUT_S):
            await watcher.close()

    asyncio.run(story())


def test_closing_ends_everything_though_a_watch_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an error that nobody thought of, which the loop is told of."""
    told: list[object] = []

    async def fail_oddly(*paths: Path, **settings: object) -> AsyncIterator[set[tuple[int, str]]]:
        raise ZeroDivisionError
        yield set()

    monkeypatch.setattr(lookout_module, "awatch", fail_oddly)

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
    monkeypatch.setattr(lookout_module, "awatch", notifications)

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
