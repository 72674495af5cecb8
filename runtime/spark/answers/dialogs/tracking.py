"""Loop over sorted messages that finds the conversations and their violations.

Only the state of the current conversation's readings is in memory, so memory does not grow with the
length of a conversation. A conversation ends with its last row, or with a silence of `idle_ns`.
Between two runs its state is JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType, TimestampType

from specwire.generated.session import OPEN_LIMIT
from specwire.runtime.spark.answers.answer import table_schema
from specwire.runtime.spark.answers.dialogs.automaton import (
    NODES_KEPT,
    Automaton,
    Configuration,
    Node,
    SavedTokens,
    Tokens,
    Verdict,
    both_readings,
)
from specwire.runtime.spark.answers.dialogs.symbols import STATE, Alphabet

READING = table_schema(
    "dialog STRING: dialog of the machine; null while the messages fit several",
    "from_middle BOOLEAN: the first message is none that the dialog begins with",
    "state STRING: state after the last message; several, by '|', where it is not known",
    "ended BOOLEAN: the dialog is complete: nothing may follow",
    "restarts BIGINT: times that the dialog began anew after it had ended",
    "violations BIGINT: messages out of turn, of senders that are no role, or undecodable",
    "waiting BIGINT: requests that a reply may still come to; always 0 in the strict reading",
)
"""Columns of a conversation in one reading of the dialog."""

VIOLATION = table_schema(
    "reading STRING: strict or concurrent",
    "number BIGINT: which violation of the conversation in this reading; 1 is the first",
    "ts TIMESTAMP: when the tap saw the message, UTC",
    "seq BIGINT: seq of the message; with the tap, its key in the typed tables",
    "kind STRING: unexpected, sender (no role of the dialog) or undecodable",
    "dialog STRING: dialog of the machine; null while the messages fit several",
    "sender STRING: role letter of the side that sent the message, as captured",
    "message STRING: class of the message; null where it did not decode",
    "state STRING: state that the message found, and left as it was",
    "expected ARRAY<STRING>: what would have been valid, each as ROLE:Message",
    "text STRING: the finding as one sentence",
)
"""A violation of the dialog."""


class ConversationTotals(msgspec.Struct, kw_only=True):
    """Numbers of a conversation: `ts` in microseconds, `mono` in nanoseconds of the tap's clock."""

    first_seq: int
    last_seq: int
    first_ts: int
    last_ts: int
    first_mono: int
    last_mono: int
    messages: int = 0
    errors: int = 0


NAMES = ("tap", "conversation", "peer")
TOTALS = ConversationTotals.__struct_fields__


def _plain(schema: StructType) -> StructType:
    """Return columns without comments, and times as microseconds."""
    kinds = {field.name: field.dataType for field in schema}
    return StructType(
        [StructField(name, LongType() if kind == TimestampType() else kind) for name, kind in kinds.items()]
    )


TRACKED = StructType(
    [
        *(StructField(name, StringType()) for name in NAMES),
        *(StructField(name, LongType()) for name in TOTALS),
        StructField("strict", _plain(READING)),
        StructField("concurrent", _plain(READING)),
        StructField("violations", ArrayType(_plain(VIOLATION))),
        StructField("carried", StringType()),
    ]
)
"""A row for each conversation, or each part of it between long silences.

`violations` are the first of this run, null for none. `carried` is the state with which a later run
continues.
"""

Names = tuple[str, str, str | None]
"""Tap, conversation and peer."""


@dataclass(slots=True)
class ReadingState:
    """State of one reading of a conversation."""

    node: Node
    tokens: Tokens
    from_middle: bool = False
    restarts: int = 0
    violations: int = 0

    def observe(self, symbol: int, key: int) -> Verdict:
        """Judge a message and move to the node after it."""
        self.node, verdict, change = self.node[symbol]
        if verdict is Verdict.RESTART:
            self.restarts += 1
            self.tokens.clear()
        if change is not None and not self.tokens.apply(change, key):
            verdict = Verdict.UNEXPECTED
        if verdict:
            self.from_middle |= verdict is Verdict.MIDDLE
            self.violations += verdict >= Verdict.UNEXPECTED
        return verdict

    @property
    def waiting(self) -> int:
        """Number of requests that a reply may still answer."""
        return self.node.waiting + self.tokens.waiting

    def row(self) -> dict[str, Any]:
        """Return the columns of `READING`."""
        node = self.node
        return {
            **{name: getattr(node, name) for name in ("dialog", "state", "ended")},
            **{name: getattr(self, name) for name in ("from_middle", "restarts", "violations", "waiting")},
        }


class OpenConversation(ConversationTotals, kw_only=True):
    """A conversation up to its last message; `violations` are rows of the output."""

    names: Names
    states: tuple[ReadingState, ...]
    violations: list[dict[str, Any]] = []


class _SavedReading(msgspec.Struct):
    configurations: tuple[Configuration, ...]
    from_middle: bool
    restarts: int
    violations: int
    waiting: int
    tokens: SavedTokens = ()


class _SavedConversation(ConversationTotals):
    """The JSON of an open conversation. Earlier versions wrote it too: its keys are fixed."""

    tracks: tuple[_SavedReading, ...]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_SavedConversation)


def save(conversation: OpenConversation) -> str:
    """Return the state of a conversation as JSON, without its names."""
    tracks = tuple(
        _SavedReading(
            state.node.configurations,
            state.from_middle,
            state.restarts,
            state.violations,
            state.waiting,
            state.tokens.saved(),
        )
        for state in conversation.states
    )
    totals = {name: getattr(conversation, name) for name in TOTALS}
    return _encoder.encode({**totals, "tracks": tracks}).decode()


def restore(names: Names, text: str, automata: Iterable[Automaton], open_limit: int) -> OpenConversation:
    """Return what `save` wrote. Raises msgspec.ValidationError for any other text."""
    saved = _decoder.decode(text)
    states = tuple(
        ReadingState(
            automaton.node(state.configurations),
            Tokens(state.tokens, open_limit),
            state.from_middle,
            state.restarts,
            state.violations,
        )
        for automaton, state in zip(automata, saved.tracks, strict=True)
    )
    return OpenConversation(names=names, states=states, **{name: getattr(saved, name) for name in TOTALS})


class ConversationTracker:
    """The conversations of one partition.

    Args:
        protocol: name of the generated package.
        idle_ns: silence after which a conversation is over.
        kept: violations with rows, for each conversation and reading.
        saves_state: whether a later run continues the conversations, so that `carried` is needed.
        open_limit: keys that a place keeps.
        nodes_kept: nodes that an automaton keeps from one batch to the next.
    """

    def __init__(
        self,
        protocol: str,
        *,
        idle_ns: int,
        kept: int,
        saves_state: bool,
        open_limit: int = OPEN_LIMIT,
        nodes_kept: int = NODES_KEPT,
    ) -> None:
        self._alphabet = Alphabet(protocol)
        self._automata = both_readings(self._alphabet)
        self._idle_ns, self._kept, self._saves_state = idle_ns, kept, saves_state
        self._open_limit, self._nodes_kept = open_limit, nodes_kept
        self._current: OpenConversation | None = None
        self._finished: list[dict[str, Any]] = []
        self._schema = to_arrow_schema(TRACKED)

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each conversation in the batches of a partition, which are sorted."""
        for batch in batches:
            self._follow(batch)
            self._bound_nodes()
            yield from self._take_finished()
        self._finish()
        yield from self._take_finished()

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
                    current.violations.append({"ts": ts, "seq": seq, "kind": verdict.name.lower(), **found})

    def _names_at_changes(self, batch: pa.RecordBatch) -> dict[int, Names]:
        """Return the names by row, for rows with another tap or conversation than the row before."""
        if not batch.num_rows:
            return {}
        columns: list[Any] = [batch.column(name) for name in NAMES]
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
        row: dict[str, Any] = dict(zip(NAMES, current.names, strict=True))
        row |= {name: getattr(current, name) for name in TOTALS}
        row |= {state.node.automaton.name: state.row() for state in current.states}
        row["violations"] = current.violations or None
        row["carried"] = save(current) if self._saves_state else None
        self._finished.append(row)

    def _take_finished(self) -> Iterator[pa.RecordBatch]:
        rows, self._finished = self._finished, []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, self._schema)

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
    sent = name if message else f"{sender} sent what is no message"
    rules = " or ".join(dialog.rule for dialog in node.dialogs)
    return {
        "reading": automaton.name,
        "number": state.violations,
        "dialog": node.dialog,
        "sender": sender,
        "message": message,
        "state": node.state,
        "expected": expected,
        "text": f"{sent} in state {node.state}: expected {', '.join(expected) or 'nothing'} [{rules}]",
    }
