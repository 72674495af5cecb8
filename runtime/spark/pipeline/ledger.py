"""Which segments were seen and what came of each: the table ``segments`` of an output folder.

Every file of the capture that was looked at has a row, so that nothing is left out in silence; one that has
changed since, such as a segment that was cut off and is whole now, has another. A later row of the same file as it
was takes the place of an earlier one: a late segment that was worked in.

The table is read when a process begins and grows by one small file a run; `MERGED_AFTER` of them become one. What a
stream asks of it with each batch takes no longer with a million segments than with a few: sums are kept, not made.
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
from specwire.runtime.spark.pipeline.layered import Layered
from specwire.runtime.spark.pipeline.stretches import Stretch, join

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
        self._entries: Layered[_State, Entry] = Layered()
        self._latest: Layered[str, Entry] = Layered()
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
        whole._entries, whole._latest = self._entries, self._latest
        whole._known, whole._settled, whole._dropped = self.known(), self.settled(), dict(self._dropped)
        whole._quarantined, whole._odd, whole._sums = dict(self._quarantined), dict(self._odd), self.sums()
        whole._take(list(entries))
        return whole

    def _take(self, entries: Sequence[Entry]) -> None:
        before = self._entries
        self._entries = before.add({entry.state: entry for entry in entries})
        self._latest = self._latest.add({entry.name: entry for entry in entries})
        replaced: dict[_State, Entry | None] = {}
        fresh: dict[str, list[Stretch]] = {}
        for entry in entries:
            self._weigh(entry, replaced.get(entry.state) or before.get(entry.state))
            replaced[entry.state] = entry
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
        return self._entries.get((name, size, modified)) is not None

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
