"""Which segments were seen and what came of each: the table ``segments`` of an output folder.

Every file of the capture that was looked at has a row, so that nothing is left out in silence; one that has
changed since, such as a segment that was cut off and is whole now, has another. A later row of the same file as it
was takes the place of an earlier one: a late segment that was worked in.

The table is read at the beginning of each run and grows by one small file a run; `MERGED_AFTER` of them become
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from enum import StrEnum
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.spark.pipeline.commit import Area, Run, visible_files
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
    def state(self) -> tuple[str, int, int]:
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
        self._entries: dict[tuple[str, int, int], Entry] = {}
        self._latest: dict[str, Entry] = {}
        self._known: dict[str, tuple[Stretch, ...]] = {}
        self._settled: dict[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._take(entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def add(self, entries: Iterable[Entry]) -> Ledger:
        """Return the ledger with these entries as well."""
        whole = copy(self)
        for name in ("_entries", "_latest", "_known", "_settled", "_dropped"):
            setattr(whole, name, dict(getattr(self, name)))
        whole._take(entries)
        return whole

    def _take(self, entries: Iterable[Entry]) -> None:
        fresh: dict[str, list[Stretch]] = {}
        for entry in entries:
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

    def has(self, name: str, size: int, modified: int) -> bool:
        """Return whether a file was looked at as it is now."""
        return (name, size, modified) in self._entries

    def latest(self, name: str) -> Entry | None:
        """Return what came of a file as it was last time."""
        return self._latest.get(name)

    def quarantined(self) -> list[Entry]:
        """Return the segments that cannot be read, by name; not those that could be read later."""
        return sorted(
            (entry for entry in self._latest.values() if entry.outcome == Outcome.QUARANTINED),
            key=lambda entry: entry.name,
        )

    def known(self) -> dict[str, tuple[Stretch, ...]]:
        """Return by tap the `seq` of all messages in the tables, late ones included."""
        return dict(self._known)

    def settled(self) -> dict[str, int]:
        """Return by tap the greatest `seq` that is not late."""
        return dict(self._settled)

    def dropped(self) -> dict[str, int]:
        """Return by tap the messages that it had dropped by its last segment."""
        return {tap: number for tap, number in self._dropped.items() if tap}


def read_ledger(out: Path) -> Ledger:
    """Return the ledger of an output folder, an empty one where there is none."""
    files = visible_files(out / TABLE)
    rows = (row for file in files for row in pq.read_table(file, schema=SCHEMA).to_pylist())
    return Ledger(msgspec.convert(row, Entry) for row in rows)


def write_entries(run: Run, entries: Sequence[Entry]) -> None:
    """Stage the rows of a run, with all earlier ones where these lie in too many files."""
    files = visible_files(run.out / TABLE)
    if len(files) >= MERGED_AFTER:
        entries = list(read_ledger(run.out).add(entries))
        run.replace(files)
    if entries:
        folder = run.folder(Area.ADDED, TABLE)
        folder.mkdir(parents=True)
        rows = [msgspec.to_builtins(entry) for entry in entries]
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "part-0.parquet")
