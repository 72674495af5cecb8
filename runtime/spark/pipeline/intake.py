"""What of a capture a run reads: segments that are new, messages that are not known, and why the rest is not.

A segment is known by name, size and time of change. One that is new, or has changed, is inspected;
its messages are known by tap and `seq`, however the file is called. So a copy of a segment counts
once, two segments that overlap count each message once, and a segment that was cut off is read when
it has become whole.

A segment whose messages come before others of the same tap that a run has answered is late:
conversations have gone on without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.pipeline.inspection import Holding, Inspected, inspect
from specwire.runtime.spark.pipeline.ledger import (
    Entry,
    Ledger,
    Outcome,
    count,
    first_without,
    overlap,
)
from specwire.runtime.spark.pipeline.packets import Staged
from specwire.runtime.spark.reading.position import Stretch, join

STRETCHES_APART = 1000
"""A segment that overlaps with known messages in more places than this is quarantined."""


class Portion(msgspec.Struct, frozen=True):
    """A segment of which a run reads something.

    Attributes:
        known: by tap the `seq` of messages in it that are known already, and left out.
        repeats: whether a message is in the file itself more than once.
        late: whether its messages come after the answers.
        protocols: what its rows state, None among them where one states nothing.
    """

    path: Path
    known: dict[str, tuple[Stretch, ...]]
    repeats: bool
    late: bool
    protocols: tuple[str | None, ...]


class Intake(msgspec.Struct, frozen=True):
    """What a run takes in: what it reads, and a ledger entry for each segment that it looked at."""

    portions: tuple[Portion, ...]
    entries: tuple[Entry, ...]

    @property
    def rows(self) -> int:
        """Messages that the run reads."""
        return sum(entry.taken for entry in self.entries)


def take_in(
    paths: Iterable[Path], ledger: Ledger, run: int, staged: Mapping[Path, Staged] | None = None
) -> Intake:
    """Look at the segments that the ledger does not know as they are now, and decide what to read of each.

    `staged` has the segments that stand for packet captures among the paths.
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
    """The file's size and time of change; None where it has been taken away meanwhile."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _order(item: tuple[Entry, Path, Inspected]) -> tuple[str, int, str]:
    """A tap's segments in the order of its messages, and of two with the same the one whose name is first."""
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
    portion = Portion(path, shared, distinct < found.rows, late, found.protocols)
    return msgspec.structs.replace(entry, outcome=outcome), portion if found.rows else None


def _is_late(held: Holding, known: Sequence[Stretch], settled: int) -> bool:
    first = first_without(held.stretches, known)
    return first is not None and first < settled


def _tell_change(before: Entry | None, fresh: int) -> str:
    if before is None or before.outcome == Outcome.QUARANTINED:
        return ""
    return f"the file has changed since run {before.run} read it; {fresh} messages in it were not known"
