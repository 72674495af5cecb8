"""Conversations without the state machines: a session for each group of `applyInArrow`.

One function only counts violations. The other returns the rows that the machines return. Neither
supports conversations that begin in the middle or restart.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from specwire.runtime.spark.answers.dialogs.symbols import Alphabet
from specwire.runtime.spark.answers.dialogs.tracking import TRACKED

NAMES = ("tap", "conversation")
READINGS = ("strict", "concurrent")


def count_by_group(rows: DataFrame, protocol: str) -> DataFrame:
    """Return the number of violations of each conversation, in both readings together."""
    labels = Alphabet(protocol).labels
    kinds: list[Any] = []  # made once in a worker; classes that are made here could not be sent

    def count(table: pa.Table) -> pa.Table:
        machine = import_module(f"specwire.generated.{protocol}.machine")
        if not kinds:
            kinds.extend(type(label.message or "_", (), {"flags": 0}) for label in labels)
        table = table.sort_by("seq")
        symbols: Any = table["symbol"].to_pylist()
        has_keys = "key" in table.column_names
        keys = table["key"].to_pylist() if has_keys else [None] * len(symbols)
        wrong = 0
        for reading in READINGS:
            session = machine.Session("S", reading)
            for symbol, key in zip(symbols, keys, strict=True):
                message = kinds[symbol]()
                message.matchtag = key
                wrong += session.observe(labels[symbol].sender, message) is not None
        return pa.table({"conversation": table["conversation"][:1], "violations": pa.array([wrong])})

    return rows.groupBy(*NAMES).applyInArrow(count, "conversation string, violations long")


def follow_by_group(rows: DataFrame, protocol: str, kept: int) -> DataFrame:
    """Return the rows of `conversations.track`, with the first `kept` violations of each reading."""
    labels = Alphabet(protocol).labels
    kinds: list[Any] = []

    def follow(table: pa.Table) -> pa.Table:
        machine = import_module(f"specwire.generated.{protocol}.machine")
        if not kinds:
            kinds.extend(type(label.message or "_", (), {"flags": 0}) for label in labels)
        rows = table.sort_by("seq").to_pylist()
        first, last = rows[0], rows[-1]
        found: dict[str, Any] = {name: first[name] for name in (*NAMES, "peer")}
        found |= {f"first_{name}": first[name] for name in ("seq", "ts", "mono")}
        found |= {f"last_{name}": last[name] for name in ("seq", "ts", "mono")}
        found |= {"messages": len(rows), "errors": 0}
        violations: list[dict[str, Any]] = []
        sessions = [(reading, machine.Session("S", reading)) for reading in READINGS]
        counts = dict.fromkeys(READINGS, 0)
        for row in rows:
            message = kinds[row["symbol"]]()
            message.matchtag = row.get("key")
            for reading, session in sessions:
                violation = session.observe(labels[row["symbol"]].sender, message)
                if violation is None:
                    continue
                counts[reading] += 1
                if counts[reading] <= kept:
                    violations.append({
                        "reading": reading, "number": counts[reading], "ts": row["ts"], "seq": row["seq"],
                        "kind": "unexpected", "dialog": session.dialog.name, "sender": violation.role,
                        "message": violation.message, "state": violation.state,
                        "expected": violation.expected, "text": str(violation),
                    })  # fmt: skip
        for reading, session in sessions:
            found[reading] = {
                "dialog": session.dialog.name, "from_middle": False, "state": session.state,
                "ended": session.closed, "restarts": 0, "violations": counts[reading],
                "waiting": sum(session.waiting().values()),
            }  # fmt: skip
        return pa.Table.from_pylist([found | {"violations": violations or None}], to_arrow_schema(TRACKED))

    return rows.groupBy(*NAMES).applyInArrow(follow, TRACKED)
