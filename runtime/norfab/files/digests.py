"""MD5 and SHA-256 of shared files, taken once for each version of a file.

Deployed peers know a file by its MD5; ours look at SHA-256. A version is known by the file's number, size and times. The last of
these the system sets by itself at every change, in steps of some milliseconds: so a digest that was taken within `UNSETTLED_NS` of
a change is not kept, as the file may change again without its times telling.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

BLOCK_OCTETS = 1024 * 1024
KEPT = 10_000
UNSETTLED_NS = 2_000_000_000
ATTEMPTS = 3


class UnstableError(Exception):
    """A file changes while it is read."""


class Digest(NamedTuple):
    """What one version of a file holds."""

    size: int
    md5: str
    sha256: str
    version: str


def version_of(state: os.stat_result) -> str:
    """Return a word that is another when the file is; it tells nothing about this machine."""
    facts = f"{state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


class Digests:
    """The digests of the files that were asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Digest] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, descriptor: int, is_abandoned: Callable[[], bool] = lambda: False) -> Digest:
        """Return the digest of an open file; raises UnstableError, or OSError.

        Args:
            is_abandoned: asked between blocks; where it says so, the work ends with UnstableError.
        """
        with self._lock:
            known = self._kept.get(version_of(os.fstat(descriptor)))
            if known is not None:
                self._kept.move_to_end(known.version)
                return known
        for _ in range(ATTEMPTS):
            digest = _take(descriptor, is_abandoned)
            if digest is not None:
                self._keep(descriptor, digest)
                return digest
        raise UnstableError("changes while it is read; ask again later")

    def _keep(self, descriptor: int, digest: Digest) -> None:
        if time.time_ns() - os.fstat(descriptor).st_ctime_ns < UNSETTLED_NS:
            return
        with self._lock:
            self._kept[digest.version] = digest
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def _take(descriptor: int, is_abandoned: Callable[[], bool]) -> Digest | None:
    """Return the digest, None where the file changed meanwhile."""
    state = os.fstat(descriptor)
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    buffer = memoryview(bytearray(min(BLOCK_OCTETS, state.st_size or 1)))
    offset = 0
    while count := os.preadv(descriptor, [buffer], offset):
        md5.update(buffer[:count])
        sha256.update(buffer[:count])
        offset += count
        if offset > state.st_size:
            return None
        if is_abandoned():
            raise UnstableError("is not read to the end: nobody waits for it")
    version = version_of(state)
    if offset != state.st_size or version_of(os.fstat(descriptor)) != version:
        return None
    return Digest(offset, md5.hexdigest(), sha256.hexdigest(), version)
