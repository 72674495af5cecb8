"""Notifications of the system about a tree of folders (Linux inotify), in bursts.

Every folder has a separate watch. A folder that cannot be read has none, which does not affect the
others. Watches and instances are limited (``fs.inotify.max_user_watches``, ``max_user_instances``):
`watch_tree` raises OSError at the limit. When the queue of the system overflows, the root itself is
reported, which means everything.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path

STEP_S = 0.03
GATHER_S = 0.1
"""A burst of changes is reported when none came for STEP_S, and after GATHER_S at the latest."""

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
OVERFLOW, IGNORED, IS_FOLDER = 0x4000, 0x8000, 0x40000000
ONLY_FOLDERS, DO_NOT_FOLLOW, EXCLUDE_UNLINKED = 0x1000000, 0x2000000, 0x4000000
WANTED = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF

LIMITS = {errno.ENOSPC: "fs.inotify.max_user_watches", errno.EMFILE: "fs.inotify.max_user_instances"}
SKIPPED = {errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""A folder that cannot be read, or does not exist any more. Walks report it."""

BUFFER_OCTETS = 1 << 16
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class WatchedTree:
    """Watches on one tree. Every method raises OSError at a limit of the system.

    Args:
        skips: returns whether the folder at this path is not watched.
    """

    def __init__(self, folder: Path, skips: Callable[[str], bool]) -> None:
        self._skips = skips
        self._root = os.fsencode(folder)
        self._paths: dict[int, bytes] = {}
        self.descriptor = _check(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._add(self._root)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all watches."""
        os.close(self.descriptor)

    def read(self) -> set[str]:
        """Return the places that changed; watch new folders from now on."""
        places: set[bytes] = set()
        with suppress(BlockingIOError):
            while True:
                octets = os.read(self.descriptor, BUFFER_OCTETS)
                start = 0
                while start < len(octets):
                    number, mask, _, size = _EVENT.unpack_from(octets, start)
                    start += _EVENT.size + size
                    leaf = octets[start - size : start].rstrip(b"\0")
                    places.add(self._handle(number, mask, leaf))
        return {os.fsdecode(place) for place in places}

    def _handle(self, number: int, mask: int, leaf: bytes) -> bytes:
        folder = self._root if mask & OVERFLOW else self._paths.get(number, self._root)
        place = folder + b"/" + leaf if leaf else folder
        if mask & IGNORED:
            self._paths.pop(number, None)
        elif mask & IS_FOLDER and mask & (MOVED_FROM | DELETE):
            self._remove(place)
        elif mask & OVERFLOW or (mask & IS_FOLDER and mask & (CREATE | MOVED_TO | ATTRIB)):
            self._add(place)
        return place

    def _add(self, folder: bytes) -> None:
        """Watch a folder and those below it. A folder that is watched already gets its new path."""
        if folder != self._root and self._skips(os.fsdecode(folder)):
            return
        mask = WANTED | ONLY_FOLDERS | EXCLUDE_UNLINKED | (DO_NOT_FOLLOW if folder != self._root else 0)
        try:
            self._paths[_check(_libc.inotify_add_watch(self.descriptor, folder, mask))] = folder
            with os.scandir(folder) as entries:
                inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            if error.errno not in SKIPPED:
                raise
            return
        for path in inner:
            self._add(path)

    def _remove(self, folder: bytes) -> None:
        below = folder + b"/"
        for number in [n for n, path in self._paths.items() if path == folder or path.startswith(below)]:
            del self._paths[number]
            _libc.inotify_rm_watch(self.descriptor, number)


async def watch_tree(
    folder: Path, stop: asyncio.Event, begun: asyncio.Event, skips: Callable[[str], bool]
) -> AsyncGenerator[set[str]]:
    """Yield the places that changed in each burst, as paths, until `stop` is set; raises OSError.

    Args:
        begun: set when every folder is watched.
        skips: returns whether the folder at this path is not watched.
    """
    tree = await asyncio.to_thread(WatchedTree, folder, skips)
    begun.set()
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(tree.descriptor, heard.set)
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            hearing = asyncio.create_task(heard.wait())
            await asyncio.wait((hearing, stopping), return_when=asyncio.FIRST_COMPLETED)
            hearing.cancel()
            places: set[str] = set()
            end = loop.time() + GATHER_S
            while heard.is_set() and loop.time() < end:
                places |= await asyncio.to_thread(tree.read)
                heard.clear()
                await asyncio.wait((stopping,), timeout=STEP_S)
            if places:
                yield places
    finally:
        stopping.cancel()
        loop.remove_reader(tree.descriptor)
        tree.close()


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        limit = f"the limit {LIMITS[number]} is reached" if number in LIMITS else os.strerror(number)
        raise OSError(number, limit)
    return result
