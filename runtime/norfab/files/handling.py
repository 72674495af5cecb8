"""``fss.service.broker``: files a piece at a time, by question and answer.

A peer asks for `file_details`, then with `fetch_file` for piece after piece; a piece that is shorter than was asked for is the last.
Peers of version 0.6 ask for several at once and write down the answers as they come, so pieces of one file for
one user are answered in the order of the questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from specwire.runtime.norfab.files.share import Share, ShareError

READERS = 4
DESCRIBERS = 2
"""Threads for what may take long: digests, and walks."""
LONG_QUESTIONS = 8
"""Such questions at a time; more are told to come again, so that they do not keep the others waiting."""


class _Wish(msgspec.Struct, frozen=True):
    url: str
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0
    chunk_size: Annotated[int, msgspec.Meta(gt=0)] = 256_000
    version: str = ""


_WISH = msgspec.json.Decoder(_Wish)
TASKS = ("fetch_file", "file_details", "list_files", "walk")


class _Turn:
    """Whose turn it is with one file, and how many wait."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class FileHandler:
    """Answers for one folder of files.

    Args:
        root: the folder.
        private: folders that are not shared although they may lie in it.
    """

    def __init__(self, root: Path, private: Sequence[Path] = ()) -> None:
        self._share = Share(root, private)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="norfab-files")
        self._describers = ThreadPoolExecutor(DESCRIBERS, thread_name_prefix="norfab-digests")
        self._turns: dict[tuple[str, str], _Turn] = {}
        self._long_questions = 0
        self._closing = False

    async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
        """Return status and body of the answer: 400 a bad question, 404 no such file, 417 another version of it."""
        if task not in TASKS:
            return 400, _refused(f"Unsupported task '{task[:80]}'; there are {', '.join(TASKS)}")
        try:
            wish = _WISH.decode(kwargs)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return 400, _refused(f"{task}: {error}")
        try:
            if task == "fetch_file":
                async with self._turn(user, wish.url):
                    return 200, await self._run(self._readers, self._fetch, wish)
            if task == "list_files":
                return 200, await self._run(self._readers, self._list, wish)
            return 200, await self._run_long(self._walk if task == "walk" else self._describe, wish)
        except ShareError as error:
            return error.status, _refused(str(error))

    async def check(self) -> str:
        """Return what is wrong with the folder; empty where nothing is."""
        return await asyncio.to_thread(self._share.fault)

    async def close(self) -> None:
        """Wait for what is being read, and end the threads."""
        self._closing = True
        await asyncio.to_thread(self._readers.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._describers.shutdown, cancel_futures=True)

    async def _run_long(self, work: Any, wish: _Wish) -> bytes:
        if self._long_questions >= LONG_QUESTIONS:
            raise ShareError(500, "too many files are looked through at present; ask again")
        self._long_questions += 1
        try:
            return await self._run(self._describers, work, wish)
        finally:
            self._long_questions -= 1

    async def _run(self, threads: ThreadPoolExecutor, work: Any, wish: _Wish) -> bytes:
        if self._closing:
            raise ShareError(500, "the broker stops")
        answer: bytes = await asyncio.get_running_loop().run_in_executor(threads, work, wish)
        return answer

    @asynccontextmanager
    async def _turn(self, user: str, url: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault((user, url), _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:  # first come, first served
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[user, url]

    def _fetch(self, wish: _Wish) -> bytes:
        return self._share.read(wish.url, wish.offset, wish.chunk_size, wish.version)

    def _list(self, wish: _Wish) -> bytes:
        return msgspec.json.encode(self._share.list_names(wish.url))

    def _walk(self, wish: _Wish) -> bytes:
        return msgspec.json.encode(self._share.walk(wish.url))

    def _describe(self, wish: _Wish) -> bytes:
        try:
            found = self._share.describe(wish.url, lambda: self._closing)
        except ShareError as error:
            if error.status != 404:
                raise
            return msgspec.json.encode({"md5hash": None, "size_bytes": None, "exists": False})
        return msgspec.json.encode(
            {
                "md5hash": found.md5,
                "size_bytes": found.size,
                "exists": True,
                "sha256": found.sha256,
                "version": found.version,
            }
        )


def _refused(why: str) -> bytes:
    return msgspec.json.encode({"status": "FAILED", "error": why, "errors": [why]})
