"""What the benches of Spark share: a session, captures that are written once, and ways that take turns.

A topic is a module here with ``measure(bench: Bench) -> Iterator[Row]``, listed in `__main__.TOPICS`. It makes a
mapping of ways (name to a function without arguments that does the whole work, usually ``consume`` of a
DataFrame), and `Bench.take_turns` runs each of them once a round. The first way is the yardstick: the ratio of
a way is its time over the yardstick's in the same round. So what else the machine does falls on both, and so does
what Java's compiler has made of the session so far: all ways go first through some rounds that are not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.decoding.options import CAPTURE
from tests.benchmarks.spark.captures import SEGMENT_ROWS, Frames, write_capture
from tests.benchmarks.spark.memory import watched

Ways = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Row:
    """What one way takes.

    Attributes:
        case: what is done, with what.
        way: how; the yardstick is the first of its case.
        rows: how many messages it was done with.
        median_s, best_s: of the rounds, in seconds.
        ratio, best_ratio: the median of the rounds' ratios to the yardstick, and the ratio of the best times.
        wanted: the most that `ratio` may be, None where there is no goal; negative: the least, without its sign.
        peak_mib: the most memory that this process, Java and the workers had in use together.
    """

    case: str
    way: str
    rows: int
    median_s: float
    best_s: float
    ratio: float
    best_ratio: float
    wanted: float | None
    peak_mib: float

    @property
    def missed(self) -> bool:
        """Whether there is a goal that is not met."""
        if self.wanted is None:
            return False
        return self.ratio < -self.wanted if self.wanted < 0 else self.ratio > self.wanted


@dataclass(frozen=True)
class Bench:
    """The session and what was asked for: rows of a capture, rounds of each way, backends; a folder for captures.

    In a topic that measures each backend in a session of its own, `backends` is the one that this session is for.
    """

    spark: SparkSession
    folder: Path
    rows: int
    rounds: int
    backends: Sequence[str]

    def capture(self, name: str, protocol: str, rows: int, make: Frames) -> list[Path]:
        """Return the segments of the capture `name`, at least `rows` messages; it is written when first asked for."""
        place = self.folder / f"{name}-{rows}"
        if not place.exists():
            return write_capture(place, protocol, rows, make)
        return sorted(place.glob("*.parquet"))

    def read(self, segments: list[Path], rows: int | None = None) -> DataFrame:
        """Return the messages of a capture, of the first segments where only so many are wanted."""
        some = segments if rows is None else segments[: max(1, -(-rows // SEGMENT_ROWS))]
        return self.spark.read.schema(CAPTURE).parquet(*map(str, some))

    def take_turns(
        self,
        case: str,
        ways: Ways,
        rows: int,
        *,
        wanted: Mapping[str, float] | None = None,
        counted: Mapping[str, float] | None = None,
        warm: int = 1,
    ) -> Iterator[Row]:
        """Run each way some times for warming up, then once a round, and yield its row.

        Args:
            case: what is measured.
            ways: the yardstick first.
            rows: what is done with how many messages.
            wanted: the goals, as `Row.wanted` has them.
            counted: ways that do only a part of the work, with what their times are multiplied with.
            warm: how many rounds come before the measured ones.
        """
        wanted, counted = wanted or {}, counted or {}
        times: dict[str, list[float]] = {name: [] for name in ways}
        peaks = dict.fromkeys(ways, 0.0)
        for work in [*ways.values()] * warm:
            work()
        for _ in range(self.rounds):
            for name, work in ways.items():
                with watched() as peak:
                    begun = perf_counter()
                    work()
                    times[name].append((perf_counter() - begun) * counted.get(name, 1.0))
                peaks[name] = max(peaks[name], peak.mib)
        base = next(iter(times.values()))
        for name, taken in times.items():
            ratio = median(own / yard for own, yard in zip(taken, base, strict=True))
            yield Row(
                case, name, rows, median(taken), min(taken), ratio, min(taken) / min(base), wanted.get(name), peaks[name]
            )  # fmt: skip


def consume(frame: DataFrame) -> None:
    """Compute every column of every row, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()
