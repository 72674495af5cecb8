"""Batches of a watch, which this program starts.

This program commits each batch in the output folder, so no Spark query is needed to find its
segments. They are read in the order of `specwire.runtime.spark.reading.stream`.

Exactly-once processing needs no log besides the output folder, which identifies segments by their
names and messages by tap and `seq`. The stored position in the capture folder only avoids a search
of the whole folder. It is written after the commit of a batch. If a watch dies in between, the
batch is repeated under its number, with the segments that have arrived since.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
from pyspark.sql.streaming.datasource import ReadAllAvailable

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.running import RETRIES, RETRY_S
from specwire.runtime.spark.live.work import Stopped, Watch
from specwire.runtime.spark.reading.position import Position
from specwire.runtime.spark.reading.stream import FolderStream, Wanted

NAME = "rounds.json"
"""File in the watch's folder: the state of the rounds."""


class Reached(msgspec.Struct, frozen=True):
    """State of the rounds: their id, the number of the next batch, and the processed segments."""

    stream: str
    number: int = 0
    given: Position = Position()


class Worker(Protocol):
    """Interface for the processing of batches, see `specwire.runtime.spark.live.work.Work`."""

    def name_stream(self, name: str, stream: str) -> None:
        """Set the id of the stream in which batches are numbered."""

    def take_names(self, names: Sequence[str], number: int) -> None:
        """Process one batch of segments; raise Stopped if the batch must not begin."""

    def tell_failure(self, text: str) -> None:
        """Report a failure after which the watch retries."""


class Rounds:
    """Source of batches of segments from a capture folder, one after the other.

    `folder` stores the position.
    """

    def __init__(self, request: Watch, folder: Path, worker: Worker) -> None:
        self._file = folder / NAME
        self._reached = _read(self._file)
        self._every_s = 0.0 if request.once else request.every_s
        self._worker = worker
        self._reader = FolderStream(request.capture, request.patience, _read_nothing)
        if request.once:
            self._reader.prepareForTriggerAvailableNow()
        self._due_s = 0.0
        self._once = request.once
        self._unreadable = 0
        worker.name_stream("tables", self._reached.stream)

    def take(self, now_s: float) -> bool:
        """Process new segments, if the next batch is due; return whether there was a batch.

        `now_s` is a monotonic clock. Raises CaptureError if the capture folder cannot be read,
        JobError if the state cannot be written, and the errors of `Worker.take_names`, except
        Stopped.
        """
        if now_s < self._due_s:
            return False
        self._due_s = now_s + self._every_s
        reached = self._reached
        start = reached.given.to_json()
        try:
            given = Position.from_json(self._reader.latestOffset(start, ReadAllAvailable()))
        except CaptureError as error:
            self._unreadable += 1
            if self._once or self._unreadable > RETRIES:
                raise
            self._worker.tell_failure(str(error))
            self._due_s = now_s + self._unreadable * RETRY_S
            return False
        self._unreadable = 0
        names = given.names_since(reached.given)
        if not names:
            return False
        with suppress(Stopped):
            self._worker.take_names(names, reached.number)
            self._reached = Reached(reached.stream, reached.number + 1, given)
            write_aside(self._file, msgspec.json.encode(self._reached))
        return self._reached is not reached


def _read_nothing(path: Path, wanted: Wanted) -> Iterator[object]:
    """Yield nothing: a run of the pipeline reads the files."""
    return iter(())


def _read(file: Path) -> Reached:
    """Return the stored state; a new one if the file does not exist or is damaged."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Reached)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return Reached(str(uuid.uuid4()))
    except OSError as error:
        raise JobError(f"{file}: it cannot be read: {error.strerror or error}") from error


def write_aside(file: Path, octets: bytes) -> None:
    """Replace a file atomically; JobError if it cannot be written."""
    aside = file.with_name(f".{file.name}.tmp")
    try:
        with aside.open("wb") as opened:
            opened.write(octets)
            opened.flush()
            os.fsync(opened.fileno())
        aside.replace(file)
    except OSError as error:
        raise JobError(f"{file}: it cannot be written: {error.strerror or error}") from error
