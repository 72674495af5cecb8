"""Fetched files, kept by what they hold: the same content is fetched once, whatever it is called.

Below the folder each content has a folder of its own, named by its digest, with the file in it under each name it was asked by.
A file is digested again before it is given out, so one that was damaged or changed is fetched anew. What is on its way
is a `.part` beside, locked by whoever writes it, and goes on where it was after a crash.

The methods block, and may be called from several threads.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

KEPT_OCTETS = 4 * 1024**3
IN_USE_S = 3600.0
"""What was given out this short a time ago is not thrown away, however much there is."""
ABANDONED_S = 7 * 86400.0
"""A part that nobody went on with for this long."""
_BLOCK_OCTETS = 1024 * 1024
_PART = ".part"


class Content(NamedTuple):
    """What a file is to hold. `digest` is in lower-case hexadecimal, by `algorithm` (``sha256`` or ``md5``)."""

    algorithm: str
    digest: str
    size: int

    @property
    def key(self) -> str:
        """The name of its folder."""
        return f"{self.algorithm}-{self.digest}"

    def new_hash(self) -> hashlib._Hash:
        """Return a hash of its kind."""
        return hashlib.new(self.algorithm, usedforsecurity=False)


class Part:
    """A file on its way; the descriptor is open and locked until `close`.

    Attributes:
        offset: octets that are there, all from its start.
    """

    def __init__(self, path: Path, descriptor: int, content: Content) -> None:
        self.path, self.content = path, content
        self._descriptor = descriptor
        self._hash = content.new_hash()
        self.offset = 0
        while piece := os.pread(descriptor, _BLOCK_OCTETS, self.offset):
            self._hash.update(piece)
            self.offset += len(piece)
        if self.offset > content.size:
            self.clear()

    def append(self, piece: bytes) -> None:
        """Add what follows; raises OSError."""
        view = memoryview(piece)
        while view:
            count = os.pwrite(self._descriptor, view, self.offset)
            self._hash.update(view[:count])
            self.offset += count
            view = view[count:]

    def is_right(self) -> bool:
        """Whether it holds what it should."""
        return self.offset == self.content.size and self._hash.hexdigest() == self.content.digest

    def sync(self) -> None:
        """Wait until it is on the disk."""
        os.fsync(self._descriptor)

    def clear(self) -> None:
        """Begin anew."""
        os.ftruncate(self._descriptor, 0)
        self._hash, self.offset = self.content.new_hash(), 0

    def close(self) -> None:
        """Let go of it; what is there stays for the next attempt. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def drop(self) -> None:
        """Throw it away."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.close()


class FileCache:
    """One folder of fetched files.

    Args:
        folder: is made where it is missing.
        octets: what is kept; what was not used for longest goes first.
    """

    def __init__(self, folder: Path, octets: int = KEPT_OCTETS) -> None:
        self.folder, self._octets = folder, octets

    def find(self, content: Content, leaf: str) -> Path | None:
        """Return the file with this content under the name `leaf`, None where it has to be fetched; raises OSError."""
        folder = self.folder / content.key
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return None
        for name in names:
            if _holds(folder / name, content):
                wanted = folder / leaf
                if name != leaf:
                    _link(folder / name, wanted)
                os.utime(folder)
                return wanted
            (folder / name).unlink(missing_ok=True)
        return None

    def begin(self, content: Content) -> Part:
        """Return the part of this content: an earlier one, or a new one. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        free = shutil.disk_usage(self.folder).free
        path = self.folder / f"{content.key}{_PART}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.stat(path)
        except (
            BlockingIOError,
            FileNotFoundError,
        ):  # another one fetches it, or has just put it into its place
            os.close(descriptor)
            path = self.folder / f"{content.key}.{secrets.token_hex(8)}{_PART}"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            part = Part(path, descriptor, content)
            if content.size - part.offset > free:
                raise OSError(28, f"{content.size - part.offset} octets do not fit")
        except BaseException:
            os.close(descriptor)
            raise
        return part

    def place(self, part: Part, leaf: str) -> Path:
        """Put a part that is right into its place; returns the path. Raises OSError."""
        folder = self.folder / part.content.key
        folder.mkdir(exist_ok=True, mode=0o700)
        part.sync()
        os.chmod(part.path, 0o400)
        os.rename(part.path, folder / leaf)
        part.close()
        self._trim(part.content.key)
        return folder / leaf

    def _trim(self, spared: str) -> None:
        """Throw away what was not used for longest while there is too much, and parts that nobody goes on with."""
        now = time.time()
        kept: list[tuple[float, int, Path]] = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):  # gone meanwhile
                if entry.name.endswith(_PART):
                    _drop_abandoned(Path(entry.path), now - entry.stat().st_mtime)
                elif entry.name != spared and entry.is_dir(follow_symlinks=False):
                    kept.append((entry.stat().st_mtime, _octets_in(entry.path), Path(entry.path)))
        total = sum(octets for _, octets, _ in kept) + _octets_in(self.folder / spared)
        for used_at, octets, path in sorted(kept):
            if total <= self._octets or now - used_at < IN_USE_S:
                return
            shutil.rmtree(path, ignore_errors=True)
            total -= octets


def _holds(path: Path, content: Content) -> bool:
    digest = content.new_hash()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size != content.size:
            return False
        while piece := file.read(_BLOCK_OCTETS):
            digest.update(piece)
    return digest.hexdigest() == content.digest


def _link(present: Path, wanted: Path) -> None:
    try:
        os.link(present, wanted)
    except FileExistsError:
        return  # a name of the same content, put there meanwhile
    except OSError:  # a file system without links
        shutil.copyfile(present, wanted)


def _octets_in(folder: Path | str) -> int:
    """Return what the names in a folder take; several names of one file count once."""
    states = {}
    for entry in os.scandir(folder):
        state = entry.stat(follow_symlinks=False)
        states[state.st_ino] = state.st_size
    return sum(states.values())


def _drop_abandoned(part: Path, age_s: float) -> None:
    if age_s < ABANDONED_S:
        return
    descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink()
    finally:
        os.close(descriptor)
