"""Watching folders: what the notifications miss, the rescan finds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specwire.runtime.filemq import watcher as watcher_module
from specwire.runtime.filemq.publication import Change, Publication, Put
from specwire.runtime.filemq.watcher import Watcher

TIMEOUT_S = 10.0


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


@pytest.mark.parametrize("notifications", [never, fail])
def test_rescan_finds_what_was_not_notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notifications: object
) -> None:
    monkeypatch.setattr(watcher_module, "awatch", notifications)

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
