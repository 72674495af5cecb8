"""Processes that die, or meet a full disk, before one of their calls to the file system."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

GROWING, SHRINKING = ("replace", "fsync", "mkdir"), ("unlink", "rmdir")
"""Calls that may need space on the disk, and calls that do not."""


class Killed(BaseException):
    """Stands for the end of the process."""


def full_disk() -> OSError:
    """Return the error of a disk without space."""
    return OSError(28, os.strerror(28))


def _pass() -> None:
    """Do nothing."""


@contextmanager
def fault(
    before: int, error: BaseException | None = None, look: Callable[[], None] = _pass
) -> Iterator[None]:
    """Raise an error in the block before the call with this number, counted from 0.

    Without an `error` the process dies: all later calls fail too. An error is that of a call that
    may need space. A file that is written then has half of its octets. `look` is called before each
    call.
    """
    left = before

    def count(*, growing: bool = True) -> None:
        nonlocal left
        look()
        left -= growing or error is None
        if left < 0 and error is None:
            raise Killed
        if left == -1 and growing and error is not None:
            raise error

    def wrap(real: Callable[..., Any], *, growing: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            count(growing=growing)
            return real(*arguments, **named)

        return call

    write, remove = Path.write_bytes, shutil.rmtree

    def write_half(path: Path, octets: bytes) -> int:
        try:
            count()
        except BaseException:
            if left == -1:
                write(path, octets[: len(octets) // 2])
            raise
        return write(path, octets)

    def rmtree(path: Path, **named: Any) -> None:
        if left >= 0 or error is not None:  # A killed process removes nothing behind itself.
            remove(path, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)  # Nobody pulls the plug.
        for name in (*GROWING, *SHRINKING):
            patched.setattr(os, name, wrap(getattr(os, name), growing=name in GROWING))
        patched.setattr(Path, "write_bytes", write_half)
        patched.setattr(shutil, "rmtree", rmtree)
        yield


def kill_before_each_call(folder: Path, work: Callable[[Path], object]) -> Iterator[tuple[int, Path]]:
    """Do `work` on copies of a folder, and die before its first call, its second, …; yield each copy.

    The work on the last copy is completed. A folder that does not exist is not copied.
    """
    for call in range(300):
        out = folder.with_name(f"{folder.name}{call}")
        if folder.exists():
            shutil.copytree(folder, out)
        try:
            with fault(call):
                work(out)
        except Killed:
            yield call, out
        else:
            yield call, out
            return
    raise AssertionError("the work does not end")
