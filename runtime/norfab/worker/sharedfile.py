"""File that the broker shares, as an argument of a task: clients send its URL, and the task opens it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

Fetch = Callable[[str], Path]

_fetch: ContextVar[Fetch] = ContextVar("fetch")


class SharedFile(os.PathLike[str]):
    """Argument for a parameter of this type; a client sends ``"nf://path"``.

    It can be opened like any path. The file is fetched on first use, which blocks until it is transferred. A
    coroutine awaits `fetched` before it opens the file.

    Attributes:
        url: as the client sent it; its syntax is checked before the task starts.
    """

    def __init__(self, url: str, fetch: Fetch) -> None:
        self.url = url
        self._fetch = fetch

    @cached_property
    def path(self) -> Path:
        """Path of a local copy, checked with its digest; raises OSError if it cannot be fetched."""
        return self._fetch(self.url)

    async def fetched(self) -> Path:
        """Return `path` without blocking the event loop."""
        return await asyncio.to_thread(lambda: self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"SharedFile({self.url!r})"


@contextmanager
def files_from(fetch: Fetch) -> Iterator[None]:
    """Let files that `make_shared_file` constructs in the block be fetched with this function."""
    token = _fetch.set(fetch)
    try:
        yield
    finally:
        _fetch.reset(token)


def make_shared_file(value: Any) -> SharedFile:
    """Return the file with this URL; raises ValueError or TypeError for any other value."""
    from specwire.runtime.norfab.files.urls import read_url

    if not isinstance(value, str):
        raise TypeError("a shared file is named by a text, nf://PATH")
    read_url(value)
    return SharedFile(value, _fetch.get())
