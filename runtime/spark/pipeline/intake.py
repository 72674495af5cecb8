"""Selection of input for a run: new segments and new messages, and the reason for skipping others.

A segment is identified by name, size and modification time. A new or changed segment is inspected.
A message is identified by tap and `seq`, whatever the name of its file. Therefore a copy of a
segment counts once, overlapping segments count each message once, and a truncated segment is read
when it is complete.

A segment is late if its messages precede messages of the same tap that a run has answered:
conversations have continued without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.pipeline.inspection import Holding, Inspected, inspect
from specwire.runtime.spark.pipeline.ledger import Entry, Ledger, Outcome, count, overlap
from specwire.runtime.spark.pipeline.packets import Staged
from specwire.runtime.spark.reading.position import Stretch, join, without

STRETCHES_APART = 1000
"""Maximum overlaps of a segment with known messages; a segment with more is quarantined."""


class Portion(msgspec.Struct, frozen=True):
    """A segment that a run reads completely or in part.

    Attributes:
        known: by tap, the `seq` of its messages that are already known and skipped.
        repeats: whether the file contains a message more than once.
        late: whether its messages arrived after the answers.
        protocols: protocols that its rows state, with None if a row states none.
        edition: edition of the specification, as the tap stated it; empty if it stated none.
    """

    path: Path
    known: dict[str, tuple[Stretch, ...]]
    repeats: bool
    late: bool
    protocols: tuple[str | None, ...]
    edition: str = ""


class Intake(msgspec.Struct, frozen=True):
    """Input of a run: the portions to read, and a ledger entry for each inspected segment."""

    portions: tuple[Portion, ...]
    entries: tuple[Entry, ...]

    @property
    def rows(self) -> int:
        """Number of messages that the run reads."""
        return sum(entry.taken for entry in self.entries)


def take_in(
    paths: Iterable[Path], ledger: Ledger, run: int, staged: Mapping[Path, Staged] | None = None
) -> Intake:
    """Inspect the segments that are new or changed since the ledger, and select what to read.

    `staged` maps packet captures among the paths to their staged segments.
    """
    known, settled = ledger.known(), ledger.settled()
    entries: list[Entry] = []
    sound: list[tuple[Entry, Path, Inspected]] = []
    for path in paths:
        stands_for = (staged or {}).get(path)
        state = stands_for.state if stands_for else _state(path)
        if state is None or ledger.has(path.name, *state):
            continue
        entry = Entry(path.name, *state, run=run, outcome=Outcome.READ)
        try:
            sound.append(_look_at(entry, path, stands_for))
        except CaptureError as error:
            entries.append(msgspec.structs.replace(entry, outcome=Outcome.QUARANTINED, reason=str(error)))
    portions: list[Portion] = []
    for entry, path, found in sorted(sound, key=_order):
        made, portion = _decide(entry, path, found, ledger.latest(entry.name), known, settled)
        entries.append(made)
        if portion:
            portions.append(portion)
            for tap, stretches in made.by_tap().items():
                known[tap] = join([*known.get(tap, ()), *stretches])
    return Intake(tuple(portions), tuple(entries))


def _look_at(entry: Entry, path: Path, staged: Staged | None) -> tuple[Entry, Path, Inspected]:
    """Return an entry with the segment to read and what it holds.

    CaptureError if it cannot be read.
    """
    if staged is None:
        return entry, path, inspect(path)
    if staged.inspected is None:
        raise CaptureError(staged.reason)
    return msgspec.structs.replace(entry, reason=staged.reason), staged.path, staged.inspected


def _state(path: Path) -> tuple[int, int] | None:
    """Return the file's size and modification time; None if it no longer exists."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _order(item: tuple[Entry, Path, Inspected]) -> tuple[str, int, str]:
    """Return the sort key of a segment: its tap, its first `seq`, then its name."""
    _, path, found = item
    if not found.holdings:
        return (found.tap or "", -1, path.name)
    return (found.holdings[0].tap, found.holdings[0].stretches[0][0], path.name)


def _decide(
    entry: Entry,
    path: Path,
    found: Inspected,
    before: Entry | None,
    known: dict[str, tuple[Stretch, ...]],
    settled: dict[str, int],
) -> tuple[Entry, Portion | None]:
    shared = {
        held.tap: overlap(held.stretches, known[held.tap]) for held in found.holdings if held.tap in known
    }
    shared = {tap: stretches for tap, stretches in shared.items() if stretches}
    distinct = sum(count(held.stretches) for held in found.holdings)
    fresh = distinct - sum(map(count, shared.values()))
    entry = msgspec.structs.replace(
        entry,
        rows=found.rows,
        repeated=found.rows - fresh,
        tap=found.tap or "",
        edition=found.edition,
        dropped=found.dropped,
        taps=[held.tap for held in found.holdings],
        stretches=[[number for stretch in held.stretches for number in stretch] for held in found.holdings],
        protocols=[name or "" for name in found.protocols],
        first=found.first,
        last=found.last,
        reason=entry.reason or _tell_change(before, fresh),
    )
    if sum(map(len, shared.values())) > STRETCHES_APART:
        reason = f"{path}: it overlaps with other segments in more than {STRETCHES_APART} places"
        return msgspec.structs.replace(entry, outcome=Outcome.QUARANTINED, reason=reason), None
    if found.rows and not fresh:
        return msgspec.structs.replace(entry, outcome=Outcome.DUPLICATE), None
    late = any(_is_late(held, shared.get(held.tap, ()), settled.get(held.tap, -1)) for held in found.holdings)
    outcome = Outcome.LATE if late else Outcome.PARTIAL if entry.repeated else Outcome.READ
    portion = Portion(path, shared, distinct < found.rows, late, found.protocols, found.edition)
    return msgspec.structs.replace(entry, outcome=outcome), portion if found.rows else None


def _is_late(held: Holding, known: Sequence[Stretch], settled: int) -> bool:
    fresh = without(held.stretches, known)
    return bool(fresh) and fresh[0][0] < settled


def _tell_change(before: Entry | None, fresh: int) -> str:
    if before is None or before.outcome == Outcome.QUARANTINED:
        return ""
    return f"the file has changed since run {before.run} read it; {fresh} messages in it were not known"
