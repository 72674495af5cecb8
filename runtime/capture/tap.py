"""The tap: where a peer hands over the messages it sends and receives.

`Tap.record` puts a message into a bounded queue and returns; a thread feeds the queue to the writer process
(`specwire.runtime.capture.writer`) through a pipe, and another listens to what the writer has done. Traffic
never waits for a capture: a message that finds the queue full, or the writer gone, is dropped and counted, and
the first of each such event is logged. So a capture may have holes, and says so: `dropped` here, and the same
count in the metadata of the next segment. `seq` counts what was handed to the writer and has no gaps.

This module imports neither numpy nor pyarrow.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.identity import make_tap_id
from specwire.runtime.capture.limits import Limits
from specwire.runtime.capture.link import Captured, Closing, Opening, Progress, WordReader, pack_word
from specwire.runtime.packages import choose_package, user_package_folder

logger = logging.getLogger(__name__)

WRITER = "specwire.runtime.capture.writer"
PIPE_OCTETS = 1 << 20
BATCH_OCTETS = 1 << 20


class _Waiting(NamedTuple):
    """A message in the queue; `dropped` is the count at the time it came."""

    ts: int
    mono: int
    conversation: str
    sender: str
    peer: str
    frames: tuple[bytes, ...]
    octets: int
    dropped: int


class Tap:
    """A `Recorder` that writes a capture; made by `Tap.open`, ended by `close` or as a context manager."""

    def __init__(self, writer: subprocess.Popen[bytes], *, tap_id: str, limits: Limits) -> None:
        self.id = tap_id
        self._writer = writer
        self._limits = limits
        self._queue: deque[_Waiting] = deque()
        self._queued_octets = 0
        self._changed = threading.Condition()
        self._closing = False
        self._gone = False
        self._accepted = 0
        self._refused = 0
        self._progress = Progress(written=0, lost=0, fault=None)
        self._reported: set[str] = set()
        self._threads = [
            threading.Thread(target=self._feed, name=f"{tap_id} feed", daemon=True),
            threading.Thread(target=self._listen, name=f"{tap_id} listen", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)

    @classmethod
    def open(
        cls, folder: Path, *, protocol: str, name: str, edition: str = "", limits: Limits | None = None
    ) -> Self:
        """Start a writer for `folder`, which is made (mode 0700) where it is missing.

        The tap's id is `name`, this process's id and the time of opening, so that ids never repeat.
        Raises CaptureError where nothing can be written there, or the writer's libraries are missing.
        """
        tap_id = make_tap_id(name)
        _make_writable(folder)
        limits = limits or Limits()
        package = user_package_folder(choose_package(protocol, edition) or protocol)
        opening = Opening(str(folder.resolve()), tap_id, protocol, edition, limits, package)
        # -P: the working directory is not the writer's to import from.
        command = [sys.executable, "-P", "-m", WRITER, msgspec.json.encode(opening).decode()]
        writer = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        _widen(_pipe(writer.stdin))
        return cls(writer, tap_id=tap_id, limits=limits)

    @property
    def recorded(self) -> int:
        """Messages taken into the queue."""
        return self._accepted

    @property
    def written(self) -> int:
        """Messages that the writer has said are in finished segments."""
        return self._progress.written

    @property
    def dropped(self) -> int:
        """Messages that will be in no segment; after a writer was killed, all that it had not said it wrote."""
        with self._changed:
            if self._gone:
                return self._refused + self._accepted - self._progress.written
            return self._refused + self._progress.lost

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message; see `Recorder.record`. Safe to call from any thread."""
        octets = sum(map(len, frames))
        with self._changed:
            full = self._is_full(octets)
            if full or self._gone or self._closing:
                self._refused += 1
            else:
                self._accepted += 1
                self._queued_octets += octets
                ts, mono = time.time_ns() // 1000, time.monotonic_ns()
                kept = tuple(frames)
                self._queue.append(
                    _Waiting(ts, mono, conversation, sender, peer, kept, octets, self._refused)
                )
                self._changed.notify()
        if full:
            self._report("the queue is full, messages are dropped")

    def close(self) -> None:
        """Write everything that waits and end the writer; repeated calls do nothing.

        A writer that does not finish within `Limits.close_s` is ended, and its messages count as dropped.
        """
        atexit.unregister(self.close)
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._join(self._limits.close_s)
        if any(thread.is_alive() for thread in self._threads):
            self._report(f"the writer did not finish within {self._limits.close_s:g} s")
            self._writer.kill()
            # Both pipes end with the process, and the threads with them.
            self._join(self._limits.close_s)
        self._writer.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _join(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _is_full(self, octets: int) -> bool:
        too_many = len(self._queue) >= self._limits.queue_rows
        return too_many or self._queued_octets + octets > self._limits.queue_octets

    def _feed(self) -> None:
        """Pass the queue on to the writer until the tap is closed or the writer is gone."""
        pipe = _pipe(self._writer.stdin)
        seq = 0
        try:
            with pipe:
                while batch := self._next_batch():
                    octets, seq = self._pack(batch, seq)
                    _write_all(pipe.fileno(), octets)
                _write_all(pipe.fileno(), pack_word(Closing(self._refused)))
        except BrokenPipeError:
            self._lose_writer()

    def _next_batch(self) -> list[_Waiting]:
        """Wait for messages and take about a mebioctet of them; an empty list once closed and empty."""
        with self._changed:
            while not self._queue and not self._closing:
                self._changed.wait()
            batch: list[_Waiting] = []
            octets = 0
            while self._queue and octets < BATCH_OCTETS:
                batch.append(self._queue.popleft())
                octets += batch[-1].octets
            self._queued_octets -= octets
            return batch

    def _pack(self, batch: Iterable[_Waiting], seq: int) -> tuple[bytes, int]:
        """Return the words of a batch and the next `seq`; a message that has no octets in UTF-8 is dropped."""
        words: list[bytes] = []
        for item in batch:
            ts, mono, conversation, sender, peer, frames, _, dropped = item
            try:
                words.append(pack_word(Captured(ts, mono, seq, conversation, sender, peer, frames, dropped)))
            except (UnicodeEncodeError, TypeError) as error:
                self._refuse_accepted(str(error))
            else:
                seq += 1
        return b"".join(words), seq

    def _refuse_accepted(self, reason: str) -> None:
        with self._changed:
            self._accepted -= 1
            self._refused += 1
        self._report(f"a message cannot be written: {reason}")

    def _listen(self) -> None:
        """Keep the writer's counts until it ends."""
        pipe, reader = _pipe(self._writer.stdout), WordReader()
        with pipe:
            while octets := pipe.read(1 << 16):
                for word in reader.feed(octets):
                    if isinstance(word, Progress):
                        self._progress = word
                        self._tell_of(word)
        self._lose_writer()

    def _tell_of(self, progress: Progress) -> None:
        """Say once that nothing can be written, and once that it can be again."""
        if progress.note:
            self._report(progress.note)
        elif progress.fault:
            self._report(f"{progress.fault}; messages are dropped until it can", once_for="fault")
        elif "fault" in self._reported:
            self._reported.discard("fault")
            logger.warning("capture %s: writes again, %d messages were dropped", self.id, self.dropped)

    def _lose_writer(self) -> None:
        """Count what is still queued as dropped, and everything after it."""
        with self._changed:
            known = self._progress.written + self._progress.lost
            finished = self._closing and known == self._accepted
            self._gone = True
            self._queue.clear()
            self._queued_octets = 0
            self._changed.notify()
        if not finished:
            self._report("the writer process has ended, messages are dropped")

    def _report(self, sentence: str, *, once_for: str | None = None) -> None:
        key = once_for or sentence
        if key not in self._reported:
            self._reported.add(key)
            logger.error("capture %s: %s", self.id, sentence)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "the writer is started with both pipes"
    return stream


def _widen(pipe: IO[bytes]) -> None:
    """Ask for a larger pipe, so that a segment being written holds up fewer messages; refused is fine."""
    import fcntl  # Not on Windows.

    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_OCTETS)


def _write_all(descriptor: int, octets: bytes) -> None:
    with memoryview(octets) as view:
        start = 0
        while start < len(view):
            start += os.write(descriptor, view[start:])


def _make_writable(folder: Path) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise CaptureError("recording needs pyarrow: pip install 'specwire[capture]'")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CaptureError(f"{folder}: the capture folder cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CaptureError(f"{folder}: the capture folder cannot be written to")
