"""Ledger of the inspected segments, with the outcome of each: the table ``segments``.

Every inspected file has an entry, including unreadable files. A file that has changed, such as a
truncated segment that is now complete, gets another entry. A later entry of an unchanged file
replaces the earlier one. This happens to a late segment when its messages are added to the tables.

The table is read once in a process and grows by one small file each run, which
`specwire.runtime.spark.pipeline.merging` merges with others. Sums are updated with each entry, so
reading them takes the same time with a million segments as with a few.

A tap numbers its messages without gaps. The known messages of a tap are therefore stored as
stretches: pairs of a first and a last number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from operator import attrgetter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.capture.names import is_compacted
from specwire.runtime.spark.pipeline.commit import Area, Run, visible_files
from specwire.runtime.spark.reading.position import Stretch, join, without

TABLE = "segments"


class Outcome(StrEnum):
    """Outcome of a segment."""

    READ = "read"
    """Its messages are in the tables."""
    PARTIAL = "partial"
    """Some of its messages were known from other segments. The others are in the tables."""
    DUPLICATE = "duplicate"
    """All its messages were known from other segments."""
    LATE = "late"
    """Its messages arrived after later ones of their tap were answered. They wait in `late`."""
    QUARANTINED = "quarantined"
    """It cannot be read; `reason` says why. It is inspected again when the file changes."""


class Entry(msgspec.Struct, frozen=True):
    """One segment at the time of its inspection; the fields are the columns of the table.

    Attributes:
        name: file name.
        size: octets of the file.
        modified: modification time of the file, nanoseconds since 1970.
        run: number of the run that inspected it.
        outcome: one of `Outcome`.
        reason: why it is quarantined, or what is unusual about it; empty otherwise.
        rows: number of messages in it.
        repeated: number of these messages that were already known.
        tap: tap in its metadata; empty if there is none.
        edition: edition of the specification, as the tap stated it.
        dropped: messages that the tap had dropped when it wrote the segment.
        taps: taps of its messages.
        stretches: for each of these taps the `seq` of its messages, alternating first and last.
        protocols: protocols that its messages state, or without messages its metadata; an empty
            text for none.
        first, last: least and greatest `ts` in microseconds since 1970; None without messages.
    """

    name: str
    size: int
    modified: int
    run: int
    outcome: str
    reason: str = ""
    rows: int = 0
    repeated: int = 0
    tap: str = ""
    edition: str = ""
    dropped: int = 0
    taps: list[str] = []
    stretches: list[list[int]] = []
    protocols: list[str] = []
    first: int | None = None
    last: int | None = None

    @property
    def state(self) -> _State:
        """Name, size and modification time, which identify an unchanged file."""
        return (self.name, self.size, self.modified)

    @property
    def taken(self) -> int:
        """Number of its messages that are in the tables, or wait in the table `late`."""
        return 0 if self.outcome == Outcome.QUARANTINED else self.rows - self.repeated

    def by_tap(self) -> dict[str, tuple[Stretch, ...]]:
        """Return the `seq` of its messages, by tap."""
        pairs = (tuple(zip(flat[::2], flat[1::2], strict=True)) for flat in self.stretches)
        return dict(zip(self.taps, pairs, strict=True))


_State = tuple[str, int, int]

_LISTS: dict[str, pa.DataType] = {
    "taps": pa.list_(pa.string()),
    "stretches": pa.list_(pa.list_(pa.int64())),
    "protocols": pa.list_(pa.string()),
}
_TEXT: pa.DataType = pa.string()
_NUMBER: pa.DataType = pa.int64()
_TEXTS = ("name", "outcome", "reason", "tap", "edition")
SCHEMA = pa.schema(
    {name: _LISTS.get(name, _TEXT if name in _TEXTS else _NUMBER) for name in Entry.__struct_fields__}
)
TOTALS = ("captured messages", "late messages", "repeated messages")
"""Sums over the readable segments.

Repeated messages of a compacted segment are in none, because compaction repeats them on purpose.
"""


class Ledger:
    """Immutable collection of all inspected segments and the known messages of each tap."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[_State, Entry] = {}
        self._latest: dict[str, Entry] = {}
        self._told: dict[_State, Entry] = {}
        self._known: dict[str, tuple[Stretch, ...]] = {}
        self._settled: dict[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._sums: Counter[str] = Counter()
        self._take(entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def add(self, entries: Iterable[Entry]) -> Ledger:
        """Return a ledger with these entries added."""
        whole = Ledger()
        vars(whole).update({name: value.copy() for name, value in vars(self).items()})
        whole._take(entries)
        return whole

    def _take(self, entries: Iterable[Entry]) -> None:
        fresh: dict[str, list[Stretch]] = {}
        for entry in entries:
            self._replace(entry)
            if entry.outcome == Outcome.QUARANTINED:
                continue
            self._dropped[entry.tap] = max(self._dropped.get(entry.tap, 0), entry.dropped)
            for tap, stretches in entry.by_tap().items():
                fresh.setdefault(tap, []).extend(stretches)
                if entry.outcome in (Outcome.READ, Outcome.PARTIAL):
                    self._settled[tap] = max(self._settled.get(tap, -1), stretches[-1][1])
        for tap, found in fresh.items():
            self._known[tap] = join([*self._known.get(tap, ()), *found])

    def _replace(self, entry: Entry) -> None:
        """Add an entry to the sums and the reported segments, in place of those it replaces."""
        state = entry.state
        if (same := self._entries.get(state)) is not None:
            self._weigh(same, -1)
            self._told.pop(state, None)
        before = self._latest.get(entry.name)
        if before is not None and before.outcome == Outcome.QUARANTINED:
            self._told.pop(before.state, None)
        self._weigh(entry, 1)
        if entry.reason:
            self._told[state] = entry
        self._entries[state] = self._latest[entry.name] = entry

    def _weigh(self, entry: Entry, sign: int) -> None:
        """Add an entry to the sums, or subtract it."""
        sums, taken = self._sums, sign * entry.taken
        sums[entry.outcome] += sign
        if entry.outcome != Outcome.QUARANTINED:
            repeated = 0 if is_compacted(entry.name) else sign * entry.repeated
            sums["captured messages"] += taken + repeated
            sums["repeated messages"] += repeated
            sums["late messages"] += taken if entry.outcome == Outcome.LATE else 0

    def has(self, name: str, size: int, modified: int) -> bool:
        """Return whether the file was inspected in this state."""
        return (name, size, modified) in self._entries

    def latest(self, name: str) -> Entry | None:
        """Return the latest entry of a file name."""
        return self._latest.get(name)

    def told(self) -> list[Entry]:
        """Return the unreadable segments, without those that became readable, and unusual ones."""
        return list(self._told.values())

    def sums(self) -> Counter[str]:
        """Return the number of segments by outcome, and of messages by the names in `TOTALS`."""
        return self._sums.copy()

    def known(self) -> dict[str, tuple[Stretch, ...]]:
        """Return, by tap, the `seq` of all messages in the tables, including late ones."""
        return self._known.copy()

    def settled(self) -> dict[str, int]:
        """Return, by tap, the greatest `seq` that is not late."""
        return self._settled.copy()

    def dropped(self) -> dict[str, int]:
        """Return, by tap, the number of dropped messages as of its last segment."""
        return {tap: number for tap, number in self._dropped.items() if tap}


def read_ledger(out: Path) -> Ledger:
    """Return the ledger of an output folder; an empty one if there is none."""
    entries: list[Entry] = []
    for file in visible_files(out / TABLE):
        columns = pq.read_table(file, schema=SCHEMA).columns
        entries += map(Entry, *(column.to_pylist() for column in columns))
    # A merged file has the number of the run that merged it.
    return Ledger(sorted(entries, key=attrgetter("run")))


def write_entries(run: Run, entries: Sequence[Entry]) -> None:
    """Stage the entries of a run."""
    if entries:
        folder = run.folder(Area.ADDED, TABLE)
        folder.mkdir(parents=True)
        rows = pa.Table.from_pylist(msgspec.to_builtins(entries), schema=SCHEMA)
        # Without Arrow's description, merged files have the schema of those that are merged.
        pq.write_table(rows, folder / "part-0.parquet", store_schema=False)


def overlap(ours: Sequence[Stretch], theirs: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """Return the numbers in both; the stretches of each side ascend and do not touch."""
    return tuple(without(ours, without(ours, theirs)))


def count(stretches: Iterable[Stretch]) -> int:
    """Return how many numbers are in stretches that do not overlap."""
    return sum(last - first + 1 for first, last in stretches)
