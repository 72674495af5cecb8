"""A file of the broker's as an argument: the client names it by its URL, the task opens it."""

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
    """What a task is given where a parameter has this type; a client sends ``"nf://path"``.

    It can be opened like any path. The file is fetched when it is used first, which takes the time of the transfer: a
    coroutine awaits `fetched` before it opens it.

    Attributes:
        url: as the client sent it; its form is checked before the task begins.
    """

    def __init__(self, url: str, fetch: Fetch) -> None:
        self.url = url
        self._fetch = fetch

    @cached_property
    def path(self) -> Path:
        """The local copy, whole and compared with its digest; raises OSError where it cannot be had."""
        return self._fetch(self.url)

    async def fetched(self) -> Path:
        """Return `path` without holding up the other coroutines."""
        return await asyncio.to_thread(lambda: self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"SharedFile({self.url!r})"


@contextmanager
def files_from(fetch: Fetch) -> Iterator[None]:
    """Have what `make_shared_file` makes in the block fetched by this."""
    token = _fetch.set(fetch)
    try:
        yield
    finally:
        _fetch.reset(token)


def make_shared_file(value: Any) -> SharedFile:
    """Return the file that a value of JSON names; raises ValueError where it is no URL of one."""
    from specwire.runtime.norfab.files.urls import read_url

    if not isinstance(value, str):
        raise TypeError("a shared file is named by a text, nf://PATH")
    read_url(value)
    return SharedFile(value, _fetch.get())
