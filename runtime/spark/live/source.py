"""The segments of a growing capture as a stream: one row for each file, in the order of `arriving`.

Spark's own file source would stream the messages. It was not taken, because one truncated file fails its query,
it passes over files older than `maxFileAge` without a word, it gives a tap's segments in the order in which
they happened to be changed, and its list of seen files grows for ever. Here the stream carries names alone. Who
reads a batch of them reads the files as a batch job does, so that both have one code path, and the messages do
not pass through Python. An offset is a `Position`: it needs no log beside Spark's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StringType, StructField, StructType

from specwire.runtime.spark.live.arriving import (
    Patience,
    choose,
    come_whole,
    list_names,
    look_at,
    note_unwhole,
)
from specwire.runtime.spark.live.position import Position

FORMAT = "specwire_segments"

SEGMENTS = StructType([StructField("name", StringType(), metadata={"comment": "file name of a segment"})])
"""The one column of the stream."""


class SegmentSource(DataSource):
    """`spark.readStream.format("specwire_segments").option("path", FOLDER)`, once it is registered.

    Further options are the fields of `Patience`.
    """

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """Names alone."""
        return SEGMENTS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of the folder that the options name."""
        return SegmentReader(*read_options(self.options))


def read_options(options: MutableMapping[str, str]) -> tuple[Path, Patience]:
    """Return the folder and the patience that a source's options state."""
    known = msgspec.structs.fields(Patience)
    stated = {field.name: options[field.name] for field in known if field.name in options}
    return Path(options["path"]), msgspec.convert(stated, Patience, strict=False)


def source_options(folder: Path, patience: Patience) -> dict[str, str]:
    """Return the options that `read_options` reads."""
    return {"path": str(folder.resolve())} | {
        name: str(getattr(patience, name)) for name in Patience.__struct_fields__
    }


class Segments(InputPartition):
    """Names that one task reads."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)


class SegmentReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Gives the names of segments; its offsets are positions as JSON."""

    tasks = 1
    """Tasks that read the segments of one batch, at most."""

    def __init__(self, folder: Path, patience: Patience) -> None:
        self.folder = folder
        self.patience = patience
        self._wanted: frozenset[str] | None = None
        self._given: frozenset[str] = frozenset()

    def initialOffset(self) -> dict[str, Any]:
        """Nothing was given yet."""
        return Position().to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the position after what is given next; `start` itself where there is nothing."""
        given = Position.from_json(start)
        present = list_names(self.folder)
        again = come_whole(look_at(self.folder, given.unwhole), given)
        arrivals = [*again, *look_at(self.folder, self._fresh(present, given))]
        patience = self.patience
        if self._wanted is not None:
            arrivals = [arrival for arrival in arrivals if arrival.name in self._wanted]
            patience = msgspec.structs.replace(patience, gap_s=0.0)
        names = choose(arrivals, given, patience, time.time())
        if not names:
            return start
        unwhole = note_unwhole(arrivals, names, given)
        return given.forget_missing(present).add(names, unwhole).to_json()

    def _fresh(self, present: Sequence[str], given: Position) -> list[str]:
        """Return the names that were not given, looking up those alone that were not found to be given before.

        A tap writes 86,400 segments a day, and the folder is looked at every second.
        """
        known = self._given.intersection(present)
        fresh: list[str] = []
        found: list[str] = []
        for name in present:
            if name not in known:
                (found if given.has(name) else fresh).append(name)
        self._given = known.union(found)
        return fresh

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limits are the reader's own."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Give what is here now and whole, without waiting for what is missing, and nothing that comes later."""
        arrivals = look_at(self.folder, list_names(self.folder))
        settle_s = self.patience.settle_s
        now_s = time.time()
        self._wanted = frozenset(
            arrival.name for arrival in arrivals if arrival.whole or now_s - arrival.changed_s >= settle_s
        )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return a few tasks for the names between two positions, one where there are none."""
        names = Position.from_json(end).names_since(Position.from_json(start))
        return [Segments(names[at :: self.tasks]) for at in range(min(self.tasks, max(1, len(names))))]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        """Yield the names of a task."""
        return ((name,) for name in cast(Segments, partition).names)
