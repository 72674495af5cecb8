"""Octets of files and pipes in portions, unpacked where they are compressed, and waited for where a file grows."""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from specwire.runtime.cli.console import fail, messages
from specwire.runtime.cli.decode_waiting import Waiting

STANDARD_INPUT = "-"
PORTION = 1 << 20
LOOK_EVERY_S = 0.2

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31


def read_portions(source: str, waiting: Waiting, *, follow: bool, bar: bool = False) -> Iterator[bytes]:
    """Yield the octets of a file, or of standard input for ``-``, as they come; with a bar on a terminal.

    Of a file that is followed there is no end: no octets are yielded whenever it has been waited for more.
    """
    portions = (
        _standard_input(waiting)
        if source == STANDARD_INPUT
        else _counted(Path(source), waiting)
        if bar and not follow
        else _file(Path(source), waiting, follow=follow)
    )
    first = next(portions, b"")
    while 0 < len(first) < 4 and (more := next(portions, b"")):
        first += more
    yield from _unzip(source, first, portions) if first.startswith(_GZIP) else _chain(first, portions)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _standard_input(waiting: Waiting) -> Iterator[bytes]:
    descriptor = sys.stdin.fileno()
    while True:
        with waiting.waiting():
            octets = os.read(descriptor, PORTION)
        if not octets:
            return
        yield octets


def _counted(path: Path, waiting: Waiting) -> Iterator[bytes]:
    """The octets of a file, with a bar where standard error is a terminal."""
    console = messages()
    if not console.is_terminal:
        yield from _file(path, waiting, follow=False)
        return
    from rich.progress import Progress

    # Rich would take standard output over, and print what is written there to the terminal.
    with Progress(console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task(path.name, total=path.stat().st_size)
        for octets in _file(path, waiting, follow=False):
            yield octets
            bar.advance(task, len(octets))


def _file(path: Path, waiting: Waiting, *, follow: bool) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while True:
            waiting.check()
            octets = file.read(PORTION)
            if octets:
                yield octets
            elif not follow:
                return
            else:
                if os.fstat(file.fileno()).st_size < file.tell():
                    fail(f"{path}: the file became shorter while it was followed", status=1)
                yield b""
                with waiting.waiting():
                    time.sleep(LOOK_EVERY_S)


def _unzip(name: str, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack gzip, in portions whatever the rate of compression."""
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        for packed in _chain(first, rest):
            held = packed
            while held:
                yield unpacker.decompress(held, PORTION)
                held = unpacker.unconsumed_tail
                if unpacker.eof:
                    held, unpacker = unpacker.unused_data, zlib.decompressobj(_GZIP_WINDOW)
    except zlib.error:
        fail(f"{name}: the compressed file is damaged")
