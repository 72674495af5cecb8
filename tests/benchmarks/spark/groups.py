"""Conversations as one follows them without the machines: a session of the package over each group of `applyInArrow`.

Two functions do so: the least, which counts what a session objects to, and one that gives the rows that the machines
give. Neither knows of conversations that begin in the middle or begin anew.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from specwire.runtime.spark.answers.dialogs.advance import FOLDED_ROWS
from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet
from specwire.runtime.spark.answers.dialogs.fold import FOLDED
from specwire.runtime.spark.answers.dialogs.texts import names_of_one, symbols_of

READINGS = ("strict", "concurrent")


def count_by_group(rows: DataFrame, protocol: str) -> DataFrame:
    """Return how many violations each conversation of narrow rows has, in both readings together."""
    labels = Alphabet(protocol).labels
    kinds: list[Any] = []  # made once in a worker; classes that are made here could not be sent

    def count(table: pa.Table) -> pa.Table:
        machine = import_module(f"specwire.generated.{protocol}.machine")
        if not kinds:
            kinds.extend(type(label.message or "_", (), {"flags": 0}) for label in labels)
        table = table.sort_by("seq")
        symbols: list[int] = symbols_of(table["said"].to_numpy()).tolist()
        has_keys = "key" in table.column_names
        keys = table["key"].to_pylist() if has_keys else [None] * len(symbols)
        wrong = 0
        for reading in READINGS:
            session = machine.Session("S", reading)
            for symbol, key in zip(symbols, keys, strict=True):
                message = kinds[symbol]()
                message.matchtag = key
                wrong += session.observe(labels[symbol].sender, message) is not None
        return pa.table({"place": table["place"][:1], "violations": pa.array([wrong])})

    return rows.groupBy("place").applyInArrow(count, "place long, violations long")


def follow_by_group(rows: DataFrame, protocol: str, kept: int) -> DataFrame:
    """Return what `advance.fold` finds in narrow rows, with the first `kept` violations of each reading."""
    labels = Alphabet(protocol).labels
    kinds: list[Any] = []

    def follow(table: pa.Table) -> pa.Table:
        machine = import_module(f"specwire.generated.{protocol}.machine")
        if not kinds:
            kinds.extend(type(label.message or "_", (), {"flags": 0}) for label in labels)
        table = table.sort_by("seq")
        said, symbols = table.to_pylist(), symbols_of(table["said"].to_numpy()).tolist()
        first, last = said[0], said[-1]
        tap, conversation, peer = names_of_one(first["said"], first["text"])
        whole = {
            f"{end}_{name}": row[name]
            for end, row in (("first", first), ("last", last))
            for name in ("ts", "mono")
        }
        whole |= {"last_seq": last["seq"], "messages": len(said), "errors": 0}
        common = {"tap": tap, "conversation": conversation, "peer": peer or None, "first_seq": first["seq"]}
        found: list[dict[str, Any]] = []
        for reading in READINGS:
            session, wrong = machine.Session("S", reading), 0
            for row, symbol in zip(said, symbols, strict=True):
                message = kinds[symbol]()
                message.matchtag = row.get("key")
                violation = session.observe(labels[symbol].sender, message)
                if violation is None:
                    continue
                wrong += 1
                if wrong <= kept:
                    words = {
                        "reading": reading, "number": wrong, "ts": row["ts"], "seq": row["seq"],
                        "kind": "unexpected", "dialog": session.dialog.name, "sender": violation.role,
                        "message": violation.message, "state": violation.state,
                        "expected": violation.expected, "text": str(violation),
                    }  # fmt: skip
                    found.append(common | {"violation": [words]})
            whole[reading] = {
                "dialog": session.dialog.name, "from_middle": False, "state": session.state,
                "ended": session.closed, "restarts": 0, "violations": wrong,
                "waiting": sum(session.waiting().values()),
            }  # fmt: skip
        return pa.Table.from_pylist([*found, common | {"whole": whole}], FOLDED)

    return rows.groupBy("place").applyInArrow(follow, FOLDED_ROWS)
