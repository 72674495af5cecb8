"""Violations as rows: which message, where the conversation was, and what would have been valid.

Most violations are alike, so each distinct one is put into words once for a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Verdict
from specwire.runtime.spark.answers.dialogs.batches import Batch
from specwire.runtime.spark.answers.dialogs.texts import Longs
from specwire.runtime.spark.answers.dialogs.tokens import places_of
from specwire.runtime.spark.answers.dialogs.watching import Watched

KINDS = {Verdict.UNEXPECTED: "unexpected", Verdict.SENDER: "sender", Verdict.UNDECODABLE: "undecodable"}
WORDING = pa.struct(
    [
        ("kind", pa.string()),
        ("dialog", pa.string()),
        ("sender", pa.string()),
        ("message", pa.string()),
        ("state", pa.string()),
        ("expected", pa.list_(pa.string())),
        ("text", pa.string()),
    ]
)
VIOLATION = pa.struct(
    [
        ("reading", pa.string()),
        ("number", pa.int64()),
        ("ts", pa.int64()),
        ("seq", pa.int64()),
        *WORDING,
    ]
)
"""What is said of a violation, beside its conversation."""

Finding = tuple[int, int, int, str | None]
"""Node, symbol, places in which keys wait, and the sender where it is no role."""


def find_violations(
    automaton: Automaton, batch: Batch, watched: Watched, kept: int
) -> tuple[Longs, pa.StructArray]:
    """Return the rows of the first `kept` violations of each conversation, and what is said of them."""
    rows = np.flatnonzero((watched.verdict >= Verdict.UNEXPECTED) & (watched.numbers <= kept))
    if not len(rows):
        return rows, pa.StructArray.from_arrays(
            [pa.array([], field.type) for field in VIOLATION], fields=list(VIOLATION)
        )
    odd = [
        batch.more(row) if verdict >= Verdict.SENDER else None
        for row, verdict in zip(rows.tolist(), watched.verdict[rows], strict=True)
    ]
    occupied = [watched.occupied.get(row, 0) for row in rows.tolist()]
    places: dict[Finding, int] = {}
    found = zip(watched.before[rows].tolist(), batch.symbol[rows].tolist(), occupied, odd, strict=True)
    indices = [places.setdefault(finding, len(places)) for finding in found]
    verdicts = dict(zip(indices, watched.verdict[rows].tolist(), strict=True))
    worded = pa.array(
        [word(automaton, finding, Verdict(verdicts[place])) for finding, place in places.items()], WORDING
    ).take(np.array(indices, np.int64))
    columns: list[pa.Array[Any]] = [
        pa.repeat(automaton.reading.name, len(rows)),
        pa.array(watched.numbers[rows]),
        pa.array(batch.ts[rows]),
        pa.array(batch.seq[rows]),
        *(pc.struct_field(worded, place) for place in range(len(WORDING))),
    ]
    return rows, pa.StructArray.from_arrays(columns, fields=list(VIOLATION))


def word(automaton: Automaton, finding: Finding, verdict: Verdict) -> dict[str, object]:
    """Put a finding into words."""
    number, symbol, occupied, odd = finding
    node, label = automaton.nodes[number], automaton.alphabet.labels[symbol]
    sender = label.sender or odd
    name = f"{sender}:{label.message}"
    # A reply with an unknown key can have the label of one that is expected: it is not what it names.
    expected = [item for item in automaton.expected(node, list(places_of(occupied))) if item != name]
    dialogs, state = automaton.dialogs(node), automaton.state(node)
    what = (
        f"{name} in state {state}" if label.message else f"{sender} sent what is no message in state {state}"
    )
    rules = " or ".join(dialog.rule for dialog in dialogs)
    return {
        "kind": KINDS[verdict],
        "dialog": dialogs[0].name if len(dialogs) == 1 else None,
        "sender": sender,
        "message": label.message,
        "state": state,
        "expected": expected,
        "text": f"{what}: expected {', '.join(expected) or 'nothing'} [{rules}]",
    }
