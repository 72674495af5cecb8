"""Ledger of the segments that runs have inspected, with the outcome of each: the table ``segments``.

Every inspected file has an entry, also one that cannot be read. A file that changed since, such as a truncated segment
that is complete now, gets another entry. A later entry of an unchanged file replaces the earlier one: a late segment
whose messages were added to the tables.

The table is read once in a process and grows by one small file each run; `MERGED_AFTER` files are merged into one. Sums
are updated with each entry, so that reading them takes the same time with a million segments as with a few.

A tap counts its messages without gaps, so the known messages of a tap are stored as stretches: pairs of a first and a
last number.
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
    """What came of a segment."""

    READ = "read"
    """Its messages are in the tables."""
    PARTIAL = "partial"
    """Some of its messages were known from other segments; the others are in the tables."""
    DUPLICATE = "duplicate"
    """All its messages were known from other segments."""
    LATE = "late"
    """Its messages came after later ones of their tap had been answered: they wait in the table `late`."""
    QUARANTINED = "quarantined"
    """It cannot be read; `reason` says why. It is looked at again when the file changes."""


class Entry(msgspec.Struct, frozen=True):
    """One segment, as it was when it was looked at.

    Attributes:
        name: of the file.
        size: octets of the file.
        modified: nanoseconds since 1970, as the file system says.
        run: number of the run that looked at it.
        outcome: one of `Outcome`.
        reason: why it is quarantined, or what is odd about it; empty otherwise.
        rows: messages in it.
        repeated: messages of these that were known already.
        tap: the tap in its metadata, empty where there is none.
        edition: as the tap stated it.
        dropped: messages that the tap had dropped when it wrote the segment.
        taps: the taps of its messages.
        stretches: for each of these the `seq` of its messages, first and last by turns.
        protocols: what its messages state, or its metadata where it has no messages; an empty text for none.
        first, last: the least and the greatest `ts`, microseconds since 1970; None without messages.
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
        """What tells whether a file is the same, unchanged."""
        return (self.name, self.size, self.modified)

    @property
    def taken(self) -> int:
        """Messages of it that are in the tables, or wait in the table `late`."""
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
    """All segments that were seen, and what is known of each tap. It does not change; `add` gives another."""

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
        """Return the ledger with these entries as well."""
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
        """Have an entry in the sums, in the place of one that it replaces, and among those that are told."""
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
        """Return whether a file was looked at as it is now."""
        return (name, size, modified) in self._entries

    def latest(self, name: str) -> Entry | None:
        """Return what came of a file as it was last time."""
        return self._latest.get(name)

    def quarantined(self) -> list[Entry]:
        """Return the segments that cannot be read, by name; not those that could be read later."""
        return sorted(self._quarantined.values(), key=lambda entry: entry.name)

    def odd(self) -> list[Entry]:
        """Return the segments that were read and have a reason all the same."""
        return list(self._odd.values())

    def sums(self) -> Counter[str]:
        """Return how many segments have each outcome, and under the names of `TOTALS` where their messages are."""
        return Counter(self._sums)

    def known(self) -> dict[str, tuple[Stretch, ...]]:
        """Return by tap the `seq` of all messages in the tables, late ones included."""
        return dict(self._known)

    def settled(self) -> dict[str, int]:
        """Return by tap the greatest `seq` that is not late."""
        return dict(self._settled)

    def dropped(self) -> dict[str, int]:
        """Return by tap the messages that it had dropped by its last segment."""
        return {tap: number for tap, number in self._dropped.items() if tap}


TOTALS = ("captured messages", "late messages", "repeated messages")
"""Sums over the segments that could be read. What a compacted one repeats is in none: it does so on purpose."""


def _sums_of(entry: Entry) -> Mapping[str, int]:
    if entry.outcome == Outcome.QUARANTINED:
        return {entry.outcome: 1}
    on_purpose = is_compacted(entry.name)
    late = entry.taken if entry.outcome == Outcome.LATE else 0
    messages = (entry.taken if on_purpose else entry.rows, late, 0 if on_purpose else entry.repeated)
    return {entry.outcome: 1, **dict(zip(TOTALS, messages, strict=True))}


def read_ledger(out: Path) -> Ledger:
    """Return the ledger of an output folder, an empty one where there is none."""
    files = visible_files(out / TABLE)
    rows = (row for file in files for row in pq.read_table(file, schema=SCHEMA).to_pylist())
    return Ledger(msgspec.convert(row, Entry) for row in rows)


def write_entries(run: Run, entries: Sequence[Entry]) -> None:
    """Stage the rows of a run, with all earlier ones where these lie in too many files."""
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
    """Return rows without those in whose place a later one stands."""
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(["name", "size", "modified"]).aggregate([("row", "max")])["row_max"]
    return rows.take(last.take(pc.array_sort_indices(last)))


def overlap(ours: Iterable[Stretch], theirs: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Return the numbers that both have; each side ascends and does not touch."""
    found: list[Stretch] = []
    others = list(theirs)
    for first, last in ours:
        found += (
            (max(first, begin), min(last, end)) for begin, end in others if begin <= last and first <= end
        )
    return tuple(found)


def first_without(ours: Iterable[Stretch], theirs: Iterable[Stretch]) -> int | None:
    """Return the least number of ours that is not among theirs; None where there is none."""
    others = list(theirs)
    for first, last in ours:
        for begin, end in others:
            if begin <= first <= end:
                first = end + 1
        if first <= last:
            return first
    return None


def count(stretches: Iterable[Stretch]) -> int:
    """Return how many numbers there are in stretches that do not overlap."""
    return sum(last - first + 1 for first, last in stretches)


def runs_of(numbers: Iterable[int]) -> tuple[Stretch, ...]:
    """Return single numbers as stretches."""
    return join((number, number) for number in numbers)
