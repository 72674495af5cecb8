"""Following conversations: the machines against the exchange and the sort that they need, and a session for each group.

The conversations are five messages each, interleaved as on a busy server, and lie in typed tables: for FILEMQ, and for
Flux, where replies are paired by key; and once more for Flux with one conversation that has three tenths of all
messages. All ways read the same columns. A session for each group (`applyInArrow`) would take minutes: it is measured
once, on a part of the conversations, without what a few of them take, and multiplied. Both it and the machines need the
exchange and the sort, so they are compared a second time without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from specwire.runtime.spark.answers.dialogs.advance import IDLE_S, VIOLATIONS_KEPT, fold
from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet
from specwire.runtime.spark.answers.dialogs.narrow import narrow_rows, order
from specwire.runtime.spark.answers.dialogs.sending import unweighed
from tests.benchmarks.spark.harness import Bench, Row, Ways, consume
from tests.benchmarks.spark.memory import watched

LENGTH = 5
ROUNDS = 3
"""As many at most: a round takes half a minute."""
PART = 50
"""Of the conversations, one in so many is given to a session for each group."""
GROUPS = "a session for each group"
WARM_ROUNDS, WARM_ROWS = 4, 6_000_000
"""Before the measured rounds there are at most so many, and no more than so many messages take, but for one."""
LEAST_S = 0.01
"""What a difference counts as that is less."""
FEW = 200
"""Conversations of which the time is what a query takes by itself."""
LOT = 100_000
SKEW = 0.3
STARTED_US = 1_780_000_000_000_000
MACHINES = "machines"
AT_MOST, AT_LEAST = 1.3, 50
"""The goals: the machines over the exchange and the sort, a session for each group over the machines."""
SAID = {
    "filemq": (("C", "Ohai"), ("S", "OhaiOk"), ("C", "Icanhaz"), ("S", "IcanhazOk"), ("C", "Nom")),
    "flux": (("C", "Request"), ("S", "Response"), ("C", "Request"), ("S", "Response"), ("S", "Event")),
}


class Traffic(NamedTuple):
    """Conversations of a protocol in typed tables."""

    bench: Bench
    protocol: str
    folder: Path

    def rows(self) -> DataFrame:
        """Return the narrow rows."""
        read = self.bench.spark.read
        typed = {path.name: read.parquet(str(path)) for path in sorted(self.folder.iterdir())}
        return narrow_rows(typed, Alphabet(self.protocol))

    def sort(self) -> None:
        """Exchange and sort them."""
        consume(order(self.rows()))

    def follow(self, *, keep: bool = False) -> None:
        """Run the machines; `keep`: so that they can go on later."""
        with unweighed(self.bench.spark):
            consume(fold(self.rows(), self.protocol, idle_s=IDLE_S, kept=VIOLATIONS_KEPT, keep=keep))

    def group(self) -> None:
        """Give each conversation to a session."""
        consume(_group(self.rows(), self.protocol))


def measure(bench: Bench) -> Iterator[Row]:
    """Yield the times for `bench.rows` messages of each protocol."""
    bench = replace(bench, rounds=min(bench.rounds, ROUNDS))
    count = bench.rows // LENGTH
    for protocol in SAID:
        case = f"{protocol}, {count:,} conversations"
        whole = Traffic(bench, protocol, _write(bench.folder / f"conversations-{protocol}", protocol, count))
        ways: Ways = {
            "exchange and sort": whole.sort,
            MACHINES: whole.follow,
            "machines, to be continued": partial(whole.follow, keep=True),
        }
        rows = list(
            bench.take_turns(case, ways, bench.rows, wanted={MACHINES: AT_MOST}, warm=warm_rounds(bench))
        )
        yield from rows
        yield from _against_groups(bench, protocol, rows[0], next(row for row in rows if row.way == MACHINES))
    skewed = Traffic(bench, "flux", _write(bench.folder / "conversations-skewed", "flux", count, SKEW))
    yield from bench.take_turns(
        f"flux, one conversation has {SKEW:.0%} of the messages",
        {"exchange and sort": skewed.sort, MACHINES: skewed.follow},
        bench.rows,
        wanted={MACHINES: AT_MOST},
        warm=warm_rounds(bench),
    )


def warm_rounds(bench: Bench) -> int:
    """Return how many rounds come before the measured ones: Java's compiler has settled after so many messages."""
    return max(1, min(WARM_ROUNDS, WARM_ROWS // bench.rows))


def _against_groups(bench: Bench, protocol: str, sort: Row, machines: Row) -> Iterator[Row]:
    """Yield how many times as long as the machines a session for each group takes, in all and beyond `sort`."""
    count = bench.rows // LENGTH
    some = max(1, count // PART)
    taken: list[float] = []
    for number in (FEW, FEW + some):
        folder = bench.folder / f"conversations-{protocol}-{number}"
        part = Traffic(bench, protocol, _write(folder, protocol, number))
        with watched() as peak:
            part.group()
            begun = perf_counter()
            part.group()
        taken.append(perf_counter() - begun)
    few_s, part_s = taken
    whole_s = (part_s - few_s) * count / some
    yield Row(
        f"{machines.case}, against the machines", GROUPS, bench.rows, whole_s, whole_s,
        whole_s / machines.median_s, whole_s / machines.best_s, -AT_LEAST, peak.mib,
    )  # fmt: skip
    ours_s, best_s = (
        max(own - base, LEAST_S) for own, base in zip(_times(machines), _times(sort), strict=True)
    )
    theirs_s = whole_s - sort.median_s
    case = f"{machines.case}, beyond the exchange and the sort"
    yield Row(case, MACHINES, bench.rows, ours_s, best_s, 1.0, 1.0, None, machines.peak_mib)
    yield Row(
        case, GROUPS, bench.rows, theirs_s, theirs_s, theirs_s / ours_s, theirs_s / best_s, None, peak.mib
    )  # fmt: skip


def _times(row: Row) -> tuple[float, float]:
    return row.median_s, row.best_s


def _group(rows: DataFrame, protocol: str) -> DataFrame:
    """What is compared with: two sessions over the messages of each group, which only count violations."""
    labels = Alphabet(protocol).labels
    kinds: list[Any] = []  # made once in a worker; classes that are made here could not be sent

    def watch(table: pa.Table) -> pa.Table:
        machine = import_module(f"specwire.generated.{protocol}.machine")
        if not kinds:
            kinds.extend(type(label.message or "_", (), {"flags": 0}) for label in labels)
        table = table.sort_by("seq")
        symbols: list[Any] = table["symbol"].to_pylist()
        wrong = 0
        for reading in ("strict", "concurrent"):
            session = machine.Session("S", reading)
            for symbol, key in zip(symbols, table["key"].to_pylist(), strict=True):
                message = kinds[symbol]()
                message.matchtag = key
                wrong += session.observe(labels[symbol].sender, message) is not None
        return pa.table({"place": table["place"][:1], "violations": pa.array([wrong])})

    return rows.groupBy("place").applyInArrow(watch, "place long, violations long")


def _write(folder: Path, protocol: str, count: int, skew: float = 0.0) -> Path:
    """Write typed tables, of each message type one; in each lot conversations run side by side."""
    for message in dict.fromkeys(name for _, name in SAID[protocol]):
        said = [(place, sender) for place, (sender, name) in enumerate(SAID[protocol]) if name == message]
        (folder / message).mkdir(parents=True, exist_ok=True)
        for lot in range(0, count, LOT):
            table = _table(lot, min(LOT, count - lot), said, skew)
            pq.write_table(table, folder / message / f"{lot:08}.parquet")
    return folder


def _table(lot: int, count: int, said: Sequence[tuple[int, str]], skew: float) -> pa.Table:
    numbers = np.arange(lot, lot + count)
    numbers[: int(count * skew)] = 0
    names = pa.array([f"9f3c2a10-{number:010x}" for number in numbers])
    parts: list[pa.Table] = []
    for place, sender in said:
        seq = lot * LENGTH + place * count + np.arange(count)
        columns: dict[str, Any] = {
            "tap": pa.repeat("server-4711-1a2b3c4d5e", count),
            "conversation": names,
            "sender": pa.repeat(sender, count),
            "peer": names,
            "seq": pa.array(seq),
            "ts": pa.array(STARTED_US + seq * 10, pa.timestamp("us", tz="UTC")),
            "mono": pa.array(seq * 10_000),
            "matchtag": pa.array(np.full(count, 1 + place // 2)),
            "flags": pa.array(np.zeros(count, np.int16)),
        }
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)
