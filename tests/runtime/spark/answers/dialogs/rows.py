"""Narrow rows made by hand, as the exchange and the sort would give them to the machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from specwire.runtime.spark.answers.dialogs.symbols import BEFORE_ALL, STATE, Alphabet, Label, Pairing
from specwire.runtime.spark.answers.dialogs.tracking import ConversationTracker
from tests.runtime.spark.answers.dialogs.sessions import Said

Conversations = Mapping[tuple[str, str], Sequence[Said]]
"""What was said, by tap and conversation."""

SECOND_NS = 10**9
_COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("tap", "conversation", "peer", "sender", "carried"), pa.string()),
    **dict.fromkeys(("seq", "ts", "mono", "key"), pa.int64()),
    "symbol": pa.int32(),
}
NARROW = pa.schema(_COLUMNS)


def symbol_of(alphabet: Alphabet, message: str | None, sender: str | None, pairing: Pairing) -> int:
    """Return the symbol of a message, by its label."""
    return alphabet.labels.index(Label(sender if sender in alphabet.roles else None, message, pairing))


def narrow(
    protocol: str, conversations: Conversations, carried: Mapping[tuple[str, str], str] | None = None
) -> pa.Table:
    """Return the rows of conversations; message `seq` is said at second `seq`. `carried` are states from before."""
    alphabet, carried = Alphabet(protocol), carried or {}
    rows: list[dict[str, Any]] = []
    for tap, conversation in sorted({*conversations, *carried}):
        common = {"tap": tap, "conversation": conversation, "peer": "p", "key": 0, "ts": 0, "mono": 0}
        if (tap, conversation) in carried:
            state = {"seq": BEFORE_ALL, "symbol": STATE, "carried": carried[tap, conversation]}
            rows.append(common | state)
        for said in conversations.get((tap, conversation), ()):
            rows.append(
                common
                | {
                    "seq": said.seq,
                    "ts": said.seq * 10**6,
                    "mono": said.seq * SECOND_NS,
                    "symbol": symbol_of(alphabet, said.message, said.sender, _pairing(alphabet, said)),
                    "sender": None if said.sender in alphabet.roles else said.sender,
                    "key": hash(tuple(said.fields.get(name) for name in alphabet.key)),
                }
            )
    return pa.Table.from_pylist(rows, NARROW)


def run(
    protocol: str,
    table: pa.Table,
    *,
    size: int = 50_000,
    kept: int = 10**6,
    idle_s: int = 10**6,
    saves_state: bool = False,
    **bounds: int,
) -> list[dict[str, Any]]:
    """Return the conversations that the machines find, the rows given to them `size` at a time.

    `bounds` are those of `ConversationTracker`. Without violations there is an empty list of them.
    """
    machines = ConversationTracker(
        protocol, idle_ns=idle_s * SECOND_NS, kept=kept, saves_state=saves_state, **bounds
    )
    rows = (row for batch in machines.run(_cut(table, size)) for row in batch.to_pylist())
    return [row | {"violations": row["violations"] or []} for row in rows]


def _cut(table: pa.Table, size: int) -> Iterable[pa.RecordBatch]:
    for start in range(0, table.num_rows, size):
        yield from _whole(table.slice(start, size))


def _whole(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.combine_chunks().to_batches()


def _pairing(alphabet: Alphabet, said: Said) -> Pairing:
    dialog = alphabet.dialogs[0]
    get = said.fields.get
    if dialog.keyless and all(get(name) == value for name, value in dialog.keyless.items()):
        return Pairing.KEYLESS
    bits = dialog.unanswered.items()
    if bits and all(
        isinstance(found := get(name, 0), int) and found & value == value for name, value in bits
    ):
        return Pairing.UNANSWERED
    return Pairing.KEYED
