"""Which messages of a run's work go to the tables now, and which wait.

Answers go on from where they were, so a message that comes after its answer has no place in them any more.
Either it waits in the table ``late``, and the answers are as if it had not come; or it is worked in with those
that wait, and all answers are made anew from the whole typed layer. Without answers in the run, it waits.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from specwire.runtime.spark.pipeline.intake import Portion
from specwire.runtime.spark.pipeline.ledger import Entry, Outcome
from specwire.runtime.spark.pipeline.request import Request, Work
from specwire.runtime.spark.pipeline.rows import protocols_of
from specwire.runtime.spark.pipeline.view import partition


class Sorted(msgspec.Struct, frozen=True):
    """What a run does with its work.

    Attributes:
        portions: segments whose messages go to the tables.
        late: segments whose messages go to the table `late`.
        waiting: files of that table whose messages go to the tables now.
        entries: what the ledger is told.
        messages: messages that go to the tables.
        rebuild: whether all answers are made anew.
    """

    portions: tuple[Portion, ...]
    late: tuple[Portion, ...]
    waiting: tuple[Path, ...]
    entries: tuple[Entry, ...]
    messages: int
    rebuild: bool

    def protocols(self, override: str | None) -> dict[str, list[Portion]]:
        """Return what the messages are read as, each with its segments; of what waited there may be none."""
        found = {partition(path, "protocol"): list[Portion]() for path in self.waiting}
        return found | protocols_of(self.portions, override)


def sort_out(work: Work, request: Request, run: int, waiting: list[Path]) -> Sorted:
    """Decide on the messages of run number `run`; `waiting` are the files of the table ``late``."""
    portions, entries = work.intake.portions, work.intake.entries
    late = tuple(portion for portion in portions if portion.late)
    if not request.answering or request.late == "keep":
        now = tuple(portion for portion in portions if not portion.late)
        messages = sum(entry.taken for entry in entries if entry.outcome != Outcome.LATE)
        return Sorted(now, late, (), entries, messages, rebuild=False)
    came = tuple(entry for entry in work.ledger if entry.outcome == Outcome.LATE)
    whole = tuple(_work_in(entry, run) for entry in (*entries, *came))
    messages = sum(entry.taken for entry in whole)
    return Sorted(portions, (), tuple(waiting), whole, messages, rebuild=bool(late or waiting))


def _work_in(entry: Entry, run: int) -> Entry:
    if entry.outcome != Outcome.LATE:
        return entry
    outcome = Outcome.PARTIAL if entry.repeated else Outcome.READ
    reason = entry.reason or "its messages came after later ones of their tap; the answers were made anew"
    return msgspec.structs.replace(entry, outcome=outcome, run=run, reason=reason)
