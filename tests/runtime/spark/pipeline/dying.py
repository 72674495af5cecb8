"""A process that dies before one of its calls to the file system, whichever the test says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CALLS = ("replace", "fsync", "unlink", "mkdir")


class Killed(BaseException):
    """Stands for the end of the process."""


ALIVE = 10**6
"""Calls that nobody makes."""


def kill_before_each_call(
    dying: list[int], base: Path, work: Callable[[Path], object]
) -> Iterator[tuple[int, Path]]:
    """Do `work` on copies of a folder and die before its first call, its second, …, until it is done; give each copy."""
    for calls in range(300):
        out = base.parent / f"out{calls}"
        shutil.copytree(base, out)
        dying[0] = calls
        finished = True
        try:
            work(out)
        except Killed:
            finished = False
        dying[0] = ALIVE
        yield calls, out
        if finished:
            return
    raise AssertionError("the work does not end")


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let the process die before the call to the file system whose number is in the list; count down to it."""
    left = [ALIVE]

    def wrap(real: object) -> object:
        def call(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(*arguments, **named)  # type: ignore[operator]  # any function of os

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, wrap(getattr(os, name)))
    remove = shutil.rmtree
    # A killed process removes nothing behind itself.
    monkeypatch.setattr(
        shutil, "rmtree", lambda path, **named: remove(path, **named) if left[0] >= 0 else None
    )
    yield left
