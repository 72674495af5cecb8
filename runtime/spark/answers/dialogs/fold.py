"""Follow conversations through sorted rows, batch by batch.

Only the conversation at the end of a batch is kept in memory, and of it only what the machines know, so a conversation
of any length streams through. Out come batches of two kinds of rows: a conversation's (`whole`, when its last
message has been seen) and a violation's (`violation`, when it is met).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet
from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Verdict
from specwire.runtime.spark.answers.dialogs.batches import NOTHING, Batch, Carry, read_batch
from specwire.runtime.spark.answers.dialogs.carrying import write_all
from specwire.runtime.spark.answers.dialogs.findings import VIOLATION, find_violations
from specwire.runtime.spark.answers.dialogs.joint import Joint
from specwire.runtime.spark.answers.dialogs.opened import Opened
from specwire.runtime.spark.answers.dialogs.texts import Longs
from specwire.runtime.spark.answers.dialogs.watching import Watched, watch_all

WATCHED = pa.struct(
    [
        ("dialog", pa.string()),
        ("from_middle", pa.bool_()),
        ("state", pa.string()),
        ("ended", pa.bool_()),
        ("restarts", pa.int64()),
        ("violations", pa.int64()),
        ("waiting", pa.int64()),
    ]
)
WHOLE = pa.struct(
    [
        ("last_seq", pa.int64()),
        ("first_ts", pa.int64()),
        ("last_ts", pa.int64()),
        ("first_mono", pa.int64()),
        ("last_mono", pa.int64()),
        ("messages", pa.int64()),
        ("errors", pa.int64()),
        ("strict", WATCHED),
        ("concurrent", WATCHED),
        ("carried", pa.string()),
    ]
)
_FIELDS: list[pa.Field[Any]] = [
    pa.field("tap", pa.string()),
    pa.field("conversation", pa.string()),
    pa.field("peer", pa.string()),
    pa.field("first_seq", pa.int64()),
    pa.field("whole", WHOLE),
    pa.field("violation", pa.list_(VIOLATION)),
]
FOLDED = pa.schema(_FIELDS)
"""What comes out; of `whole` and `violation` a row has one.

Few rows have a violation, and a list that is null takes no room on its way to Java, where a struct has that of all
its fields: so it is a list of one.
"""


class Fold:
    """The conversations of one partition.

    Args:
        protocol: name of the generated package.
        idle_ns: how long a conversation may be silent before it is over.
        kept: violations of which there are rows, for each conversation and reading.
        keep: whether conversations are to be continued later, so that `carried` is wanted.
    """

    def __init__(self, protocol: str, *, idle_ns: int, kept: int, keep: bool) -> None:
        self._joint = Joint(Alphabet(protocol))
        self._idle_ns, self._kept, self._keep = idle_ns, kept, keep
        self._carry: Carry | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is found in the batches of a partition."""
        for rows in batches:
            if rows.num_rows:
                yield from self._take(rows, is_last=False)
        if self._carry is not None:
            yield from self._take(NOTHING, is_last=True)

    def _take(self, rows: pa.RecordBatch, *, is_last: bool) -> Iterator[pa.RecordBatch]:
        batch = read_batch(rows, self._carry, self._idle_ns)
        self._joint = self._joint.renewed()
        watched = watch_all(self._joint, batch, keep=self._keep)
        wholes = _Wholes(batch, watched, self._joint.automata)
        for automaton, seen in zip(self._joint.automata, watched, strict=True):
            found, violations = find_violations(automaton, batch, seen, self._kept)
            if len(found):
                first_seq = wholes.first_seq[batch.conversation[found]]
                yield _put_out(batch, found, first_seq, violation=violations)
        finished = len(wholes.firsts) - (not is_last)
        if finished:
            first_seq = wholes.first_seq[:finished]
            whole = wholes.rows(finished, keep=self._keep)
            yield _put_out(batch, wholes.firsts[:finished], first_seq, whole=whole)
        self._carry = None if is_last else wholes.carry()


class _Wholes:
    """The conversations of a batch, each a position in these arrays."""

    def __init__(self, batch: Batch, watched: list[Watched], automata: Sequence[Automaton]) -> None:
        self._batch, self._watched, self._automata = batch, watched, automata
        self.firsts = batch.firsts
        self._lasts = np.append(self.firsts[1:], len(batch.begins)) - 1
        self._messages = np.add.reduceat(batch.is_message.astype(np.int64), self.firsts)
        wrong = batch.conversation[watched[0].verdict == Verdict.UNDECODABLE]
        self._errors = np.bincount(wrong, minlength=len(self.firsts))
        self.first_seq, self._first_ts = batch.seq[self.firsts], batch.ts[self.firsts]
        self._first_mono = batch.mono[self.firsts]
        for row, opened in batch.opened.items():
            at = np.searchsorted(self.firsts, row)
            self.first_seq[at], self._first_ts[at] = opened.first_seq, opened.first_ts
            self._first_mono[at] = opened.first_mono
            self._messages[at] += opened.messages
            self._errors[at] += opened.errors

    def rows(self, count: int, *, keep: bool) -> pa.StructArray:
        """Return the first `count` conversations."""
        lasts = self._lasts[:count]
        carried = write_all(self._numbers(), self._automata, self._watched, count) if keep else None
        columns: list[pa.Array[Any]] = [
            pa.array(self._batch.seq[lasts]),
            pa.array(self._first_ts[:count]),
            pa.array(self._batch.ts[lasts]),
            pa.array(self._first_mono[:count]),
            pa.array(self._batch.mono[lasts]),
            pa.array(self._messages[:count]),
            pa.array(self._errors[:count]),
            *(_watched_rows(*pair, count) for pair in zip(self._automata, self._watched, strict=True)),
            pa.nulls(count, pa.string()) if carried is None else carried,
        ]
        return pa.StructArray.from_arrays(columns, fields=list(WHOLE))

    def carry(self) -> Carry:
        """Return the last conversation."""
        tokens = self._watched[1].tokens
        opened = self._open(len(self.firsts) - 1)
        if tokens is not None:
            opened.tracks[1].tokens = ()
        return self._batch.carry(int(self.firsts[-1]), opened, tokens)

    def _open(self, at: int) -> Opened:
        tracks = (
            seen.track(automaton, at) for automaton, seen in zip(self._automata, self._watched, strict=True)
        )
        return Opened(
            **{name: int(column[at]) for name, column in self._numbers().items()}, tracks=tuple(tracks)
        )

    def _numbers(self) -> dict[str, Longs]:
        """The fields of `Opened` before its tracks, for all conversations."""
        batch, lasts = self._batch, self._lasts
        return {
            "first_seq": self.first_seq,
            "last_seq": batch.seq[lasts],
            "first_ts": self._first_ts,
            "last_ts": batch.ts[lasts],
            "first_mono": self._first_mono,
            "last_mono": batch.mono[lasts],
            "messages": self._messages,
            "errors": self._errors,
        }


def _watched_rows(automaton: Automaton, watched: Watched, count: int) -> pa.StructArray:
    nodes = watched.node[:count]
    dialogs = [automaton.dialogs(node) for node in automaton.nodes]
    names = [found[0].name if len(found) == 1 else None for found in dialogs]
    columns: list[pa.Array[Any]] = [
        pa.array(names, pa.string()).take(nodes),
        pa.array(watched.from_middle[:count]),
        pa.array([automaton.state(node) for node in automaton.nodes], pa.string()).take(nodes),
        pa.array([automaton.is_closed(node) for node in automaton.nodes], pa.bool_()).take(nodes),
        pa.array(watched.restarts[:count]),
        pa.array(watched.violations[:count]),
        pa.array(watched.waiting[:count]),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(WATCHED))


def _put_out(
    batch: Batch,
    rows: Longs,
    first_seq: Longs,
    *,
    whole: pa.StructArray | None = None,
    violation: pa.StructArray | None = None,
) -> pa.RecordBatch:
    """Return rows of the output, of conversations that have a row at each of `rows`."""
    one_each = FOLDED.field("violation").type
    return pa.RecordBatch.from_arrays(
        [
            *batch.names(rows),
            pa.array(first_seq),
            pa.nulls(len(rows), WHOLE) if whole is None else whole,
            pa.nulls(len(rows), one_each) if violation is None else _one_each(violation),
        ],
        schema=FOLDED,
    )


def _one_each(values: pa.StructArray) -> pa.Array[Any]:
    """Return lists of one value each."""
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1), pa.int32()), values)
