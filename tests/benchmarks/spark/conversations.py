"""Following conversations: the machines against the exchange and the sort that they need, and a session for each group.

The conversations are five messages each, interleaved as on a busy server, and lie in typed tables: for FILEMQ, and for
Flux, where replies are paired by key. Both ways read the same columns. A session for each group (`applyInArrow`) is
measured on a part of the conversations, and its time is multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from specwire.runtime.spark.answers.dialogs.advance import IDLE_S, VIOLATIONS_KEPT, fold
from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet
from specwire.runtime.spark.answers.dialogs.narrow import narrow_tables, order
from tests.benchmarks.spark.harness import Bench, Row, consume

LENGTH = 5
PART = 50
"""Of the conversations, one in so many is given to a session for each group."""
STARTED_US = 1_780_000_000_000_000
DIALOGS = {
    "filemq": (("C", "Ohai"), ("S", "OhaiOk"), ("C", "Icanhaz"), ("S", "IcanhazOk"), ("C", "Nom")),
    "flux": (("C", "Request"), ("S", "Response"), ("C", "Request"), ("S", "Response"), ("S", "Event")),
}


def measure(bench: Bench) -> Iterator[Row]:
    """Yield the times for `bench.rows` messages of each protocol."""
    for protocol in DIALOGS:
        count = bench.rows // LENGTH
        whole = _write(bench.folder / f"conversations-{protocol}", protocol, count)
        part = _write(bench.folder / f"conversations-{protocol}-part", protocol, count // PART)
        alphabet = Alphabet(protocol)

        def rows(folder: Path, alphabet: Alphabet = alphabet) -> DataFrame:
            typed = {path.name: bench.spark.read.parquet(str(path)) for path in sorted(folder.iterdir())}
            return narrow_tables(typed, alphabet)

        yield from bench.take_turns(
            f"{protocol}, {count:,} conversations",
            {
                "exchange and sort": lambda: consume(order(rows(whole))),
                "machines": lambda: consume(
                    fold(rows(whole), protocol, idle_s=IDLE_S, kept=VIOLATIONS_KEPT, keep=False)
                ),
                "machines, to be continued": lambda: consume(
                    fold(rows(whole), protocol, idle_s=IDLE_S, kept=VIOLATIONS_KEPT, keep=True)
                ),
                "a session a group": lambda: consume(_group(rows(part), protocol)),
            },
            bench.rows,
            wanted={"machines": 1.3, "a session a group": -65},
            counted={"a session a group": PART},
        )


def _group(rows: DataFrame, protocol: str) -> DataFrame:
    """What is compared with: a session over the messages of each group, only counting its violations."""

    def watch(table: pa.Table) -> pa.Table:
        from importlib import import_module

        machine = import_module(f"specwire.generated.{protocol}.machine")
        labels = Alphabet(protocol).labels
        table = table.sort_by("seq")
        wrong = 0
        for reading in ("strict", "concurrent"):
            session = machine.Session(machine.DIALOGS[machine.DEFAULT].roles[0], reading)
            for symbol, key in zip(table["symbol"].to_pylist(), table["key"].to_pylist(), strict=True):
                label = labels[symbol]
                stand_in = type(label.message, (), {"matchtag": key, "flags": 0})()
                wrong += session.observe(label.sender, stand_in) is not None
        return pa.table({"conversation": table["conversation"][:1], "violations": [wrong]})

    return rows.groupBy("tap", "conversation").applyInArrow(watch, "conversation string, violations long")


def _write(folder: Path, protocol: str, count: int) -> Path:
    """Write typed tables, of each message type one; conversations run side by side in lots of 100,000."""
    for message in dict.fromkeys(name for _, name in DIALOGS[protocol]):
        said = [(place, sender) for place, (sender, name) in enumerate(DIALOGS[protocol]) if name == message]
        (folder / message).mkdir(parents=True, exist_ok=True)
        for lot in range(0, count, 100_000):
            table = _table(lot, min(100_000, count - lot), said)
            pq.write_table(table, folder / message / f"{lot:08}.parquet")
    return folder


def _table(lot: int, count: int, said: Sequence[tuple[int, str]]) -> pa.Table:
    numbers = np.arange(lot, lot + count)
    names = pa.array([f"9f3c2a10-{number:010x}" for number in numbers])
    parts: list[pa.Table] = []
    for place, sender in said:
        seq = lot * LENGTH + place * count + (numbers - lot)
        columns: dict[str, Any] = {
            "tap": pa.array(["server-4711-1a2b3c4d5e"]).take(pa.array(np.zeros(count, np.int64))),
            "conversation": names,
            "sender": pa.array([sender]).take(pa.array(np.zeros(count, np.int64))),
            "peer": names,
            "seq": pa.array(seq),
            "ts": pa.array(STARTED_US + seq * 10, pa.timestamp("us", tz="UTC")),
            "mono": pa.array(seq * 10_000),
            "matchtag": pa.array(np.full(count, 1 + place // 2)),
            "flags": pa.array(np.zeros(count, np.int16)),
        }
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)

