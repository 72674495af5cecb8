"""Conversations: the state machines against an exchange and a sort, and a session for each group.

The conversations have five messages each, interleaved as on a busy server, in typed tables. There
are three cases: FILEMQ; Flux, whose replies are paired by key; and Flux with one conversation that
has three tenths of all messages. All ways read the same columns. The exchange and the sort group
the messages of each conversation and put them in order, as the machines need them. Sessions for
each group (`groups`) would take minutes: they are measured on a part of the conversations, without
the time that a few of them take, and multiplied. The goal is for those that return the rows of the
machines; those that only count are shown beside them.

Finding the tables' schemas and writing the query takes as long for five messages as for five
million, a second for FILEMQ. No way's time includes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.spark.answers.dialogs.conversations import IDLE_S, VIOLATIONS_KEPT, track
from specwire.runtime.spark.answers.dialogs.symbols import Alphabet, narrow_rows
from specwire.runtime.spark.pipeline.answering import SETTINGS
from specwire.runtime.spark.session.settings import changed_settings
from tests.benchmarks.spark.groups import count_by_group, follow_by_group
from tests.benchmarks.spark.harness import Bench, Row, Ways, consume
from tests.benchmarks.spark.memory import watched

LENGTH = 5
ROUNDS = 3
"""As many at most: a round takes half a minute."""
PART, LEAST = 50, 20_000
"""Of the conversations, one in so many is given to a session for each group, but not less than this."""
GROUPS, COUNTS = "a session for each group", "a session for each group, which only counts"
WARM_ROUNDS, WARM_ROWS = 4, 6_000_000
"""Before the measured rounds there are at most so many, and no more than so many messages take, but for one."""
FEW = 200
"""Conversations of which the time is what a query takes by itself."""
LOT = 100_000
SKEW = 0.3
STARTED_US = 1_780_000_000_000_000
MACHINES = "machines"
AT_MOST, AT_LEAST = 5, 10
"""Limits: the machines over the exchange and the sort, a session for each group over the machines."""
SAID = {
    "filemq": (("C", "Ohai"), ("S", "OhaiOk"), ("C", "Icanhaz"), ("S", "IcanhazOk"), ("C", "Nom")),
    "flux": (("C", "Request"), ("S", "Response"), ("C", "Request"), ("S", "Response"), ("S", "Event")),
}


class Traffic:
    """Conversations of a protocol in typed tables.

    Attributes:
        rows: the narrow rows, which are read again by each query of them.
    """

    def __init__(self, bench: Bench, protocol: str, folder: Path) -> None:
        self._bench, self._protocol = bench, protocol
        typed = {path.name: bench.spark.read.parquet(str(path)) for path in sorted(folder.iterdir())}
        self.rows = narrow_rows(typed, Alphabet(protocol))

    def sort(self) -> None:
        """Exchange and sort them."""
        names = ("tap", "conversation")
        consume(self.rows.repartition(*names).sortWithinPartitions(*names, "seq"))

    def follow(self, *, saves_state: bool = False) -> None:
        """Run the machines; `saves_state`: so that a later run can continue."""
        with changed_settings(self._bench.spark, SETTINGS):
            consume(
                track(self.rows, self._protocol, idle_s=IDLE_S, kept=VIOLATIONS_KEPT, saves_state=saves_state)
            )

    def groups(self) -> Mapping[str, Callable[[], None]]:
        """Return the ways that give each conversation to sessions."""
        return {
            GROUPS: lambda: consume(follow_by_group(self.rows, self._protocol, VIOLATIONS_KEPT)),
            COUNTS: lambda: consume(count_by_group(self.rows, self._protocol)),
        }


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
            "machines, to be continued": partial(whole.follow, saves_state=True),
        }
        wanted = {MACHINES: AT_MOST}
        for row in bench.take_turns(case, ways, bench.rows, wanted=wanted, warm=warm_rounds(bench)):
            yield row
            if row.way == MACHINES:
                machines = row
        yield from _against_groups(bench, protocol, machines)
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


def _against_groups(bench: Bench, protocol: str, machines: Row) -> Iterator[Row]:
    """Yield how many times as long as the machines sessions for each group take."""
    count = bench.rows // LENGTH
    some = max(min(count, LEAST), count // PART)
    parts = [
        Traffic(
            bench, protocol, _write(bench.folder / f"conversations-{protocol}-{number}", protocol, number)
        )
        for number in (FEW, FEW + some)
    ]
    whole_s: dict[str, list[float]] = {GROUPS: [], COUNTS: []}
    with watched() as peak:
        for is_measured in (False, *[True] * bench.rounds):
            for way, taken in whole_s.items():
                few_s, part_s = (_time(part.groups()[way]) for part in parts)
                if is_measured:
                    taken.append((part_s - few_s) * count / some)
    case = f"{machines.case}, against the machines"
    for way, wanted in ((GROUPS, -AT_LEAST), (COUNTS, None)):
        typical, best = median(whole_s[way]), min(whole_s[way])
        ratios = typical / machines.median_s, best / machines.best_s
        yield Row(case, way, machines.rows, typical, best, *ratios, wanted, peak.mib)


def _time(work: Callable[[], None]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


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
