"""Fetching a shared file: whole, right, and not twice.

First the broker tells what the file holds. What is in the cache with that digest is taken from there; else it is asked for piece
by piece, `WINDOW` pieces at a time, each written down as it comes, so that memory is bounded whatever the size. Every piece names
the version of the file. Where the file has changed meanwhile, or the digest at the end is another, nothing of it is given out and
the whole begins anew. A fetch that was cut off, by a crash too, goes on where it was.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from specwire.runtime.norfab.files.cache import Content, FileCache, Part
from specwire.runtime.norfab.files.urls import UrlError, read_url

Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[tuple[int, bytes]]]
"""Asks the broker: service, task, arguments by name; returns status and body of the answer.

An error that may pass is TimeoutError or OSError; anything else it raises ends the fetch as it is.
"""

SERVICE = "fss.service.broker"
PIECE_OCTETS = 256 * 1024
WINDOW = 8
VERSIONS = 5
"""How often a fetch begins anew because the file has changed."""
PATIENCE_S = 120.0
"""How long questions may stay without a good answer, as they do while a broker is restarted."""
PAUSE_S = 0.2
CHANGED = 417
PASSING = (300, 408, 500)
_HEXADECIMAL = r"\A[0-9a-f]+\Z"


class FetchError(Exception):
    """A file could not be fetched; says why."""


class _ChangedError(Exception):
    """The file is not what it was told to be."""


class _Details(msgspec.Struct, frozen=True):
    exists: bool = False
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    md5hash: Annotated[str, msgspec.Meta(pattern=_HEXADECIMAL, min_length=32, max_length=32)] | None = None
    sha256: Annotated[str, msgspec.Meta(pattern=_HEXADECIMAL, min_length=64, max_length=64)] | None = None
    version: str = ""

    def content(self) -> Content | None:
        """Return what the file holds; None where too little is said."""
        if self.size_bytes is None:
            return None
        if self.sha256 is not None:
            return Content("sha256", self.sha256, self.size_bytes)
        return None if self.md5hash is None else Content("md5", self.md5hash, self.size_bytes)


class _Errors(msgspec.Struct, frozen=True):
    error: str = ""


_turns: weakref.WeakValueDictionary[tuple[int, str, str], asyncio.Lock] = weakref.WeakValueDictionary()
"""Who fetches what in which event loop: a second one waits, and finds it in the cache."""


async def fetch(
    url: str, ask: Ask, destination: Path | None = None, *, cache: FileCache, patience_s: float = PATIENCE_S
) -> Path:
    """Return the path of the file that `url` names.

    Args:
        ask: asks the broker.
        destination: where the file is to be; a folder means under its own name in it. What is there is replaced at once by
            the whole file. Without it the file in the cache is given, which must not be written to.
        cache: where fetched files are kept.
        patience_s: how long to go on without a good answer.

    Raises:
        FetchError: it is not there, keeps changing, comes damaged, or there is no answer or no room for it.
    """
    try:
        leaf = read_url(url)[-1]
    except UrlError as error:
        raise FetchError(str(error)) from error
    fetching = _Fetching(url, leaf, ask, cache, patience_s)
    try:
        path = await fetching.run()
        if destination is None:
            return path
        return await asyncio.to_thread(_copy, path, destination, leaf)
    except OSError as error:
        raise FetchError(f"{url} cannot be written down: {error.strerror or error}") from error


class _Fetching:
    """One fetch."""

    def __init__(self, url: str, leaf: str, ask: Ask, cache: FileCache, patience_s: float) -> None:
        self._url, self._leaf, self._ask, self._cache = url, leaf, ask, cache
        self._patience_s = patience_s

    async def run(self) -> Path:
        """Return the path in the cache."""
        for _ in range(VERSIONS):
            details = await self._describe()
            content = details.content()
            if content is None:
                raise FetchError(f"{self._url} is not there")
            key = (id(asyncio.get_running_loop()), str(self._cache.folder), content.key)
            lock = _turns.setdefault(key, asyncio.Lock())
            async with lock:
                found = await asyncio.to_thread(self._cache.find, content, self._leaf)
                if found is not None:
                    return found
                with suppress(_ChangedError):
                    return await self._transfer(content, details.version)
        raise FetchError(
            f"{self._url} changes all the time, or comes damaged: given up after {VERSIONS} attempts"
        )

    async def _describe(self) -> _Details:
        status, body = await self._answer("file_details", {"url": self._url})
        try:
            return msgspec.json.decode(body, type=_Details)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FetchError(
                f"{self._url}: the broker's answer ({status}) is no description: {error}"
            ) from error

    async def _transfer(self, content: Content, version: str) -> Path:
        part = await asyncio.to_thread(self._cache.begin, content)
        try:
            await self._complete(part, version)
            if not part.is_right():
                raise _ChangedError
            return await asyncio.to_thread(self._cache.place, part, self._leaf)
        except _ChangedError:
            part.drop()
            raise
        finally:
            part.close()

    async def _complete(self, part: Part, version: str) -> None:
        """Ask for what is missing, several pieces at a time, and write them down in order."""
        size = part.content.size
        offsets = iter(range(part.offset, size, PIECE_OCTETS))
        under_way: deque[asyncio.Task[bytes]] = deque()
        try:
            while True:
                while len(under_way) < WINDOW and (offset := next(offsets, None)) is not None:
                    wanted = min(PIECE_OCTETS, size - offset)
                    under_way.append(asyncio.create_task(self._piece(offset, wanted, version)))
                if not under_way:
                    return
                await asyncio.to_thread(part.append, await under_way.popleft())
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _piece(self, offset: int, wanted: int, version: str) -> bytes:
        arguments: dict[str, Any] = {"url": self._url, "offset": offset, "chunk_size": wanted}
        _, piece = await self._answer("fetch_file", arguments | ({"version": version} if version else {}))
        if len(piece) != wanted:
            raise _ChangedError
        return piece

    async def _answer(self, task: str, arguments: Mapping[str, Any]) -> tuple[int, bytes]:
        """Return a good answer, asking again where there may be one later."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience_s
        pause_s = PAUSE_S
        while True:
            try:
                status, body = await self._ask(SERVICE, task, arguments)
                why = f"{status} {_error_in(body)}".strip()
            except (TimeoutError, OSError) as error:
                status, body, why = 408, b"", str(error) or "no answer"
            if status == 200:
                return status, body
            if status == CHANGED:
                raise _ChangedError
            if status not in PASSING or loop.time() + pause_s > until:
                raise FetchError(f"{self._url}: {why}")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 5.0)


def _error_in(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Errors).error[:500]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _copy(path: Path, destination: Path, leaf: str) -> Path:
    """Put a copy where it is wanted: written aside, then in one step in its place."""
    target = destination / leaf if destination.is_dir() else destination
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.parent / f".{secrets.token_hex(8)}.part"
    try:
        with path.open("rb") as source, aside.open("xb") as copy:
            shutil.copyfileobj(source, copy, 1024 * 1024)
            copy.flush()
            os.fsync(copy.fileno())
        os.rename(aside, target)
    finally:
        aside.unlink(missing_ok=True)
    return target
