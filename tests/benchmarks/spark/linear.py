"""Decoding grows with the rows and its memory does not: a fifth of the rows, all, and four times as many.

A row's ratio is to the smallest capture, read and decoded by the same backend, for the same number of rows: 1 is
linear. Each backend has a session of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tests.benchmarks.spark.captures import flux_requests, in_segments
from tests.benchmarks.spark.decode import decoded, is_there
from tests.benchmarks.spark.harness import Bench, Row

ROUNDS = 2
"""As many at most: a round takes a minute."""
SHARES = (0.2, 1.0, 4.0)
"""Of the rows asked for."""
WANTED = 1.1
SESSIONS = ("jvm", "arrow")
"""A session for each of these."""


def measure(bench: Bench) -> Iterator[Row]:
    """Yield a row for each number of messages, decoded by the backend that the session is for."""
    (name,) = bench.backends
    if not is_there(bench, "flux"):
        return
    bench = replace(bench, rounds=min(bench.rounds, ROUNDS))
    counts = [in_segments(bench.rows * share) for share in SHARES]
    segments = bench.capture("flux", "flux", counts[-1], flux_requests)
    ways: dict[str, Callable[[], object]] = {}
    for count in counts:
        ways[f"{count:,}"] = partial(decoded, partial(bench.read, segments, count), "flux", name)
    counted = {f"{count:,}": counts[0] / count for count in counts}
    wanted = {f"{count:,}": WANTED for count in counts[1:]}
    case = f"{name}, seconds for {counts[0]:,}"
    yield from bench.take_turns(case, ways, counts[0], wanted=wanted, counted=counted)
