"""Telling of alerts that another process stored: in their order, each of them once but for a crash.

Behind a Spark Connect server the table of alerts is written by a process of the server. Who began the watch reads from it
what is new. A batch is told once Spark has committed it, because its file for each day is there then, and its number
is kept after that: so after a crash the last alerts may be told twice, and none is left out.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from specwire.runtime.spark.live.alert_table import TABLE, Line, alert_file, tell
from specwire.runtime.spark.live.rounds import write_aside

NAME = "told.json"


class Told(msgspec.Struct, frozen=True):
    """The last batch of a stream that was told of."""

    stream: str
    number: int


def last_commit(checkpoint: Path) -> int:
    """Return the number of the last batch that Spark has committed, -1 where there is none."""
    numbers = (path.name for path in (checkpoint / "commits").glob("*") if path.name.isdigit())
    return max(map(int, numbers), default=-1)


def forget_told(folder: Path) -> None:
    """Forget what was told, where somebody else tells from now on."""
    (folder / NAME).unlink(missing_ok=True)


class Telling:
    """Gives new alerts of an output folder to a `Line`; `folder` has the query's checkpoint and keeps what was told.

    What was committed before this was made counts as told, unless it is noted that it was not.
    """

    def __init__(self, out: Path, folder: Path, line: Line | None) -> None:
        self._out = out
        self._file = folder / NAME
        self._checkpoint = folder / TABLE
        self._before = last_commit(self._checkpoint)
        self._line = line
        self._told: Told | None = None

    def tell(self, stream: str) -> int:
        """Give the alerts that the query of this id has found since the last call; return how many."""
        told = self._told or self._recall(stream)
        last = last_commit(self._checkpoint)
        count = 0
        for number in range(told.number + 1, last + 1):
            for path in sorted((self._out / TABLE).glob(f"date=*/{alert_file(stream, number)}")):
                with path.open("rb") as file:
                    rows = pq.read_table(file)
                tell(rows, self._line)
                count += rows.num_rows
        self._told = Told(stream, max(told.number, last))
        if self._told != told:
            write_aside(self._file, msgspec.json.encode(self._told))
        return count

    def _recall(self, stream: str) -> Told:
        try:
            told = msgspec.json.decode(self._file.read_bytes(), type=Told)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return Told(stream, self._before)
        return told if told.stream == stream else Told(stream, self._before)
