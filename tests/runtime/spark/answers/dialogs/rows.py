"""Narrow rows made by hand, as the exchange and the sort would give them to the machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet, Pairing
from specwire.runtime.spark.answers.dialogs.batches import NOTHING, STATE
from specwire.runtime.spark.answers.dialogs.fold import Fold
from specwire.runtime.spark.answers.dialogs.texts import join_one
from tests.runtime.spark.answers.dialogs.sessions import Said

Conversations = Mapping[tuple[str, str], Sequence[Said]]
"""What was said, by tap and conversation."""

SECOND_NS = 10**9


def narrow(
    protocol: str, conversations: Conversations, carried: Mapping[tuple[str, str], str] | None = None
) -> pa.Table:
    """Return the rows of conversations; message `seq` is said at second `seq`. `carried` are states from before."""
    alphabet, carried = Alphabet(protocol), carried or {}
    rows: list[dict[str, Any]] = []
    for number, place in enumerate(sorted({*conversations, *carried})):
        names = (*place, "p")
        common = {"place": number, "key": 0, "ts": 0, "mono": 0}
        if place in carried:
            symbol, text = join_one(STATE, names, carried[place])
            rows.append(common | {"seq": -(1 << 63), "said": symbol, "text": text})
        for said in conversations.get(place, ()):
            symbol, text = join_one(
                alphabet.symbol(said.message, said.sender, _pairing(alphabet, said)),
                names,
                None if said.sender in alphabet.roles else said.sender,
            )
            rows.append(
                common
                | {
                    "seq": said.seq,
                    "ts": said.seq * 10**6,
                    "mono": said.seq * SECOND_NS,
                    "said": symbol,
                    "key": hash(tuple(said.fields.get(name) for name in alphabet.key)),
                    "text": text,
                }
            )
    return pa.Table.from_pylist(rows, NOTHING.schema)


def run(
    protocol: str,
    table: pa.Table,
    *,
    size: int = 50_000,
    kept: int = 10**6,
    idle_s: int = 10**6,
    keep: bool = False,
) -> list[dict[str, Any]]:
    """Return what the machines find, the rows given to them `size` at a time; `violation` is one or None."""
    machines = Fold(protocol, idle_ns=idle_s * SECOND_NS, kept=kept, keep=keep)
    found = machines.run(batch for batch in _cut(table, size))
    return [row | {"violation": _one(row["violation"])} for batch in found for row in batch.to_pylist()]


def _one(violations: list[Any] | None) -> Any:
    if violations is None:
        return None
    [violation] = violations
    return violation


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
