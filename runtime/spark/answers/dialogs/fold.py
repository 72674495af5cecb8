"""Loop over sorted messages that finds the conversations and their violations.

Only the state of the current conversation's readings is in memory, so memory does not grow with the
length of a conversation. A conversation ends with its last row, or with a silence of `idle_ns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from specwire.generated.session import OPEN_LIMIT
from specwire.runtime.spark.answers.dialogs.automaton import NODES_KEPT, Automaton, Node, Verdict
from specwire.runtime.spark.answers.dialogs.readings import ConcurrentReading, StrictReading
from specwire.runtime.spark.answers.dialogs.state import (
    ConversationTotals,
    Names,
    OpenConversation,
    ReadingState,
    Tokens,
    restore,
    save,
)
from specwire.runtime.spark.answers.dialogs.symbols import STATE, Alphabet
from specwire.runtime.spark.answers.schemas.conversations import WATCHED

KINDS = {Verdict.UNEXPECTED: "unexpected", Verdict.SENDER: "sender", Verdict.UNDECODABLE: "undecodable"}

VIOLATION = StructType(
    [
        StructField("reading", StringType()),
        StructField("number", LongType()),
        StructField("ts", LongType()),
        StructField("seq", LongType()),
        StructField("kind", StringType()),
        StructField("dialog", StringType()),
        StructField("sender", StringType()),
        StructField("message", StringType()),
        StructField("state", StringType()),
        StructField("expected", ArrayType(StringType())),
        StructField("text", StringType()),
    ]
)
_NAMES = ("tap", "conversation", "peer")
_COLUMNS = (*_NAMES, *ConversationTotals.__struct_fields__)
_totals = attrgetter(*ConversationTotals.__struct_fields__)
_READING = StructType([StructField(each.name, each.dataType) for each in WATCHED])
FOLDED = StructType(
    [
        *(StructField(name, StringType()) for name in _NAMES),
        *(StructField(name, LongType()) for name in ConversationTotals.__struct_fields__),
        StructField("strict", _READING),
        StructField("concurrent", _READING),
        StructField("violations", ArrayType(VIOLATION)),
        StructField("carried", StringType()),
    ]
)
"""A row for each conversation, or each part of it between long silences.

`violations` are the first of this run, null for none. `carried` is the state with which a later run
continues.
"""


class Fold:
    """The conversations of one partition.

    Args:
        protocol: name of the generated package.
        idle_ns: silence after which a conversation is over.
        kept: violations with rows, for each conversation and reading.
        keep: whether a later run continues the conversations, so that `carried` is needed.
        open_limit: keys that a place keeps.
        nodes_kept: nodes that an automaton keeps from one batch to the next.
    """

    def __init__(
        self,
        protocol: str,
        *,
        idle_ns: int,
        kept: int,
        keep: bool,
        open_limit: int = OPEN_LIMIT,
        nodes_kept: int = NODES_KEPT,
    ) -> None:
        self._alphabet = Alphabet(protocol)
        dialogs = self._alphabet.dialogs
        readings = (StrictReading(dialogs), ConcurrentReading(dialogs))
        self._automata = tuple(Automaton(self._alphabet, reading) for reading in readings)
        self._idle_ns, self._kept, self._keep = idle_ns, kept, keep
        self._open_limit, self._nodes_kept = open_limit, nodes_kept
        self._current: OpenConversation | None = None
        self._finished: list[dict[str, Any]] = []
        self._schema = to_arrow_schema(FOLDED)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each conversation in the batches of a partition, which are sorted."""
        for batch in batches:
            self._follow(batch)
            self._bound_nodes()
            if self._finished:
                yield self._take_finished()
        self._finish()
        if self._finished:
            yield self._take_finished()

    def _follow(self, batch: pa.RecordBatch) -> None:
        current, idle_ns, undecodable = self._current, self._idle_ns, self._alphabet.undecodable
        names = self._names_at_changes(batch)
        for row, (seq, ts, mono, symbol, key) in enumerate(_numbers(batch)):
            if row in names:
                self._finish()
                current = self._current = None
            if symbol == STATE:
                carried = batch.column("carried")[row].as_py()
                current = self._current = restore(names[row], carried, self._automata, self._open_limit)
                continue
            if current is None:
                current = self._current = self._begin(names[row], seq, ts, mono)
            elif mono - current.last_mono > idle_ns:
                self._finish()
                current = self._current = self._begin(current.names, seq, ts, mono)
            current.last_seq, current.last_ts, current.last_mono = seq, ts, mono
            current.messages += 1
            if symbol >= undecodable:
                current.errors += 1
            for state in current.states:
                node = state.node
                verdict = state.observe(symbol, key)
                if verdict >= Verdict.UNEXPECTED and state.violations <= self._kept:
                    sender = self._alphabet.labels[symbol].sender or batch.column("sender")[row].as_py()
                    found = _violation(node, state, symbol, sender)
                    current.violations.append({"ts": ts, "seq": seq, "kind": KINDS[verdict], **found})

    def _names_at_changes(self, batch: pa.RecordBatch) -> dict[int, Names]:
        """Return the names by row, for rows whose tap or conversation differs from the row before."""
        if not batch.num_rows:
            return {}
        columns: list[Any] = [batch.column(name) for name in _NAMES]
        tap, conversation, _ = columns
        current = self._current
        is_first = current is None or current.names[:2] != (tap[0].as_py(), conversation[0].as_py())
        differs = pc.or_(pc.not_equal(tap[1:], tap[:-1]), pc.not_equal(conversation[1:], conversation[:-1]))
        rows: list[int] = [0] * is_first + (differs.to_numpy(zero_copy_only=False).nonzero()[0] + 1).tolist()
        names = zip(*(column.take(pa.array(rows, pa.int64())).to_pylist() for column in columns), strict=True)
        return dict(zip(rows, names, strict=True))

    def _begin(self, names: Names, seq: int, ts: int, mono: int) -> OpenConversation:
        return OpenConversation(
            names=names,
            states=tuple(
                ReadingState(automaton.start, Tokens((), self._open_limit)) for automaton in self._automata
            ),
            first_seq=seq, last_seq=seq, first_ts=ts, last_ts=ts, first_mono=mono, last_mono=mono,
        )  # fmt: skip

    def _finish(self) -> None:
        """Make the row of the current conversation, if there is one."""
        current = self._current
        if current is None:
            return
        row: dict[str, Any] = dict(zip(_COLUMNS, (*current.names, *_totals(current)), strict=True))
        for state in current.states:
            summary = state.node.summary
            row[state.node.automaton.reading.name] = {
                "dialog": summary.dialog,
                "from_middle": state.from_middle,
                "state": summary.state,
                "ended": summary.ended,
                "restarts": state.restarts,
                "violations": state.violations,
                "waiting": state.waiting,
            }
        row["violations"] = current.violations or None
        row["carried"] = save(current) if self._keep else None
        self._finished.append(row)

    def _take_finished(self) -> pa.RecordBatch:
        rows, self._finished = self._finished, []
        return pa.RecordBatch.from_pylist(rows, self._schema)

    def _bound_nodes(self) -> None:
        """Clear the automata that have too many nodes."""
        for number, automaton in enumerate(self._automata):
            if len(automaton) > self._nodes_kept:
                automaton.clear()
                if self._current is not None:
                    state = self._current.states[number]
                    state.node = automaton.node(state.node.configurations)


def _numbers(batch: pa.RecordBatch) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield seq, ts, mono, symbol and key of each row; the column of keys may be missing."""
    columns = [batch.column(name).to_numpy().tolist() for name in ("seq", "ts", "mono", "symbol")]
    has_key = "key" in batch.schema.names
    columns.append(batch.column("key").to_numpy().tolist() if has_key else [0] * batch.num_rows)
    return zip(*columns, strict=True)


def _violation(node: Node, state: ReadingState, symbol: int, sender: str | None) -> dict[str, Any]:
    """Return the description of a violation that was found at `node`."""
    automaton = node.automaton
    message = automaton.alphabet.labels[symbol].message
    name = f"{sender}:{message}"
    # A reply with an unknown key can have the label of one that is expected: do not list it.
    expected = [label for label in automaton.expected(node, state.tokens.occupied()) if label != name]
    at, dialog = node.summary.state, node.summary.dialog
    what = f"{name} in state {at}" if message else f"{sender} sent what is no message in state {at}"
    rules = " or ".join(dialog.rule for dialog in automaton.dialogs(node))
    return {
        "reading": automaton.reading.name,
        "number": state.violations,
        "dialog": dialog,
        "sender": sender,
        "message": message,
        "state": at,
        "expected": expected,
        "text": f"{what}: expected {', '.join(expected) or 'nothing'} [{rules}]",
    }
