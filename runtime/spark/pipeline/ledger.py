"""Ledger of the inspected segments, with the outcome of each: the table ``segments``.

Every inspected file has an entry, including unreadable files. A file that has changed, such as a
truncated segment that is now complete, gets another entry. A later entry of an unchanged file
replaces the earlier one. This happens to a late segment when its messages are added to the tables.

The table is read once in a process and grows by one small file each run. `MERGED_AFTER` files are
merged into one. Sums are updated with each entry, so reading them takes the same time with a
million segments as with a few.

A tap numbers its messages without gaps. The known messages of a tap are therefore stored as
stretches: pairs of a first and a last number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specwire.runtime.capture.names import is_compacted
from specwire.runtime.spark.pipeline.commit import Area, Run, visible_files
from specwire.runtime.spark.reading.position import Stretch, join

TABLE = "segments"
MERGED_AFTER = 64


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
    """One segment at the time of its inspection.

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

_TEXT, _NUMBER = pa.string(), pa.int64()
_COLUMNS: dict[str, pa.DataType] = {
    "name": _TEXT,
    "size": _NUMBER,
    "modified": _NUMBER,
    "run": _NUMBER,
    "outcome": _TEXT,
    "reason": _TEXT,
    "rows": _NUMBER,
    "repeated": _NUMBER,
    "tap": _TEXT,
    "edition": _TEXT,
    "dropped": _NUMBER,
    "taps": pa.list_(_TEXT),
    "stretches": pa.list_(pa.list_(_NUMBER)),
    "protocols": pa.list_(_TEXT),
    "first": _NUMBER,
    "last": _NUMBER,
}
SCHEMA = pa.schema(_COLUMNS)


class Ledger:
    """Immutable collection of all inspected segments and the known messages of each tap."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[_State, Entry] = {}
        self._latest: dict[str, Entry] = {}
        self._known: dict[str, tuple[Stretch, ...]] = {}
        self._settled: dict[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._quarantined: dict[str, Entry] = {}
        self._odd: dict[_State, Entry] = {}
        self._sums: Counter[str] = Counter()
        self._take(list(entries))

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def add(self, entries: Iterable[Entry]) -> Ledger:
        """Return a ledger with these entries added."""
        whole = Ledger()
        whole._entries, whole._latest = dict(self._entries), dict(self._latest)
        whole._known, whole._settled, whole._dropped = self.known(), self.settled(), dict(self._dropped)
        whole._quarantined, whole._odd, whole._sums = dict(self._quarantined), dict(self._odd), self.sums()
        whole._take(list(entries))
        return whole

    def _take(self, entries: Sequence[Entry]) -> None:
        fresh: dict[str, list[Stretch]] = {}
        for entry in entries:
            self._weigh(entry, self._entries.get(entry.state))
            self._entries[entry.state] = self._latest[entry.name] = entry
            if entry.outcome == Outcome.QUARANTINED:
                continue
            self._dropped[entry.tap] = max(self._dropped.get(entry.tap, 0), entry.dropped)
            for tap, stretches in entry.by_tap().items():
                fresh.setdefault(tap, []).extend(stretches)
                if entry.outcome in (Outcome.READ, Outcome.PARTIAL):
                    self._settled[tap] = max(self._settled.get(tap, -1), stretches[-1][1])
        for tap, found in fresh.items():
            self._known[tap] = join([*self._known.get(tap, ()), *found])

    def _weigh(self, entry: Entry, before: Entry | None) -> None:
        """Add an entry to the sums and the reported segments, in place of `before`."""
        self._sums.update(_sums_of(entry))
        if before is not None:
            self._sums.subtract(_sums_of(before))
        self._quarantined.pop(entry.name, None)
        self._odd.pop(entry.state, None)
        if entry.outcome == Outcome.QUARANTINED:
            self._quarantined[entry.name] = entry
        elif entry.reason:
            self._odd[entry.state] = entry

    def has(self, name: str, size: int, modified: int) -> bool:
        """Return whether the file was inspected in this state."""
        return (name, size, modified) in self._entries

    def latest(self, name: str) -> Entry | None:
        """Return the latest entry of a file name."""
        return self._latest.get(name)

    def quarantined(self) -> list[Entry]:
        """Return, sorted by name, the unreadable segments, without those that became readable."""
        return sorted(self._quarantined.values(), key=lambda entry: entry.name)

    def odd(self) -> list[Entry]:
        """Return the unusual segments: those that were read and have a reason."""
        return list(self._odd.values())

    def sums(self) -> Counter[str]:
        """Return the number of segments by outcome, and of messages by the names in `TOTALS`."""
        return Counter(self._sums)

    def known(self) -> dict[str, tuple[Stretch, ...]]:
        """Return, by tap, the `seq` of all messages in the tables, including late ones."""
        return dict(self._known)

    def settled(self) -> dict[str, int]:
        """Return, by tap, the greatest `seq` that is not late."""
        return dict(self._settled)

    def dropped(self) -> dict[str, int]:
        """Return, by tap, the number of dropped messages as of its last segment."""
        return {tap: number for tap, number in self._dropped.items() if tap}


TOTALS = ("captured messages", "late messages", "repeated messages")
"""Sums over the readable segments.

Repeated messages of a compacted segment are in none, because compaction repeats them on purpose.
"""


def _sums_of(entry: Entry) -> Mapping[str, int]:
    if entry.outcome == Outcome.QUARANTINED:
        return {entry.outcome: 1}
    on_purpose = is_compacted(entry.name)
    late = entry.taken if entry.outcome == Outcome.LATE else 0
    messages = (entry.taken if on_purpose else entry.rows, late, 0 if on_purpose else entry.repeated)
    return {entry.outcome: 1, **dict(zip(TOTALS, messages, strict=True))}


def read_ledger(out: Path) -> Ledger:
    """Return the ledger of an output folder; an empty one if there is none."""
    files = visible_files(out / TABLE)
    rows = (row for file in files for row in pq.read_table(file, schema=SCHEMA).to_pylist())
    return Ledger(msgspec.convert(row, Entry) for row in rows)


def write_entries(run: Run, entries: Sequence[Entry]) -> None:
    """Stage the rows of a run, merged with all earlier rows if these are in too many files."""
    files = visible_files(run.out / TABLE)
    added = pa.Table.from_pylist([msgspec.to_builtins(entry) for entry in entries], schema=SCHEMA)
    if len(files) >= MERGED_AFTER:
        added = _without_replaced(
            pa.concat_tables([*(pq.read_table(file, schema=SCHEMA) for file in files), added])
        )
        run.replace(files)
    if added.num_rows:
        folder = run.folder(Area.ADDED, TABLE)
        folder.mkdir(parents=True)
        pq.write_table(added, folder / "part-0.parquet")


def _without_replaced(rows: pa.Table) -> pa.Table:
    """Return rows without those that a later row replaces."""
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(["name", "size", "modified"]).aggregate([("row", "max")])["row_max"]
    return rows.take(last.take(pc.array_sort_indices(last)))


def overlap(ours: Iterable[Stretch], theirs: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Return the numbers in both; the stretches of each side ascend and do not touch."""
    found: list[Stretch] = []
    others = list(theirs)
    for first, last in ours:
        found += (
            (max(first, begin), min(last, end)) for begin, end in others if begin <= last and first <= end
        )
    return tuple(found)


def first_without(ours: Iterable[Stretch], theirs: Iterable[Stretch]) -> int | None:
    """Return the least number in `ours` that is not in `theirs`; None if there is none."""
    others = list(theirs)
    for first, last in ours:
        for begin, end in others:
            if begin <= first <= end:
                first = end + 1
        if first <= last:
            return first
    return None


def count(stretches: Iterable[Stretch]) -> int:
    """Return how many numbers are in stretches that do not overlap."""
    return sum(last - first + 1 for first, last in stretches)


def runs_of(numbers: Iterable[int]) -> tuple[Stretch, ...]:
    """Return single numbers as stretches."""
    return join((number, number) for number in numbers)
