"""Time several ways to do one thing, in turn: what else the machine does then falls on all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from timeit import Timer
from typing import Any

ROUNDS = 40
ROUND_S = 0.008

Work = tuple[Callable[..., object], tuple[Any, ...]]
"""A function and what it is called with: no argument or one, so that the call itself is all that is added."""


def best_ns(works: Mapping[str, Work]) -> dict[str, float]:
    """Return the time of one call of each in nanoseconds: the best of `ROUNDS` rounds of `ROUND_S` seconds."""
    timers = {name: _timer(*work) for name, work in works.items()}
    numbers = {name: _number(timer) for name, timer in timers.items()}
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(numbers[name]) / numbers[name])
    return {name: seconds * 1e9 for name, seconds in best.items()}


def _timer(function: Callable[..., object], arguments: tuple[Any, ...]) -> Timer:
    names = dict(zip("a", arguments, strict=False))
    return Timer(f"f({', '.join(names)})", globals={"f": function, **names})


def _number(timer: Timer) -> int:
    """How many calls make a round."""
    timer.timeit(1)
    return max(1, int(ROUND_S / max(timer.timeit(5) / 5, 1e-8)))
