"""What one tap sees, as columns of numbers: it is said in any order, and put into the order of time at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.benchmarks.spark.busy.forms import Forms, Ints


@dataclass
class Scene:
    """What one tap sees, in any order: for each message its time, connection, sender, form, and two numbers."""

    talks: Sequence[tuple[str, str]]
    """Conversations and peers."""
    senders: str
    chance: np.random.Generator
    span_us: int
    forms: Forms = field(default_factory=Forms)
    parts: list[tuple[Ints, ...]] = field(default_factory=list)

    def say(self, at_us: Any, talk: Any, sender: str, form: Any, first: Any = 0, second: Any = 0) -> None:
        """Add messages; single values count for all of them."""
        columns = np.broadcast_arrays(at_us, talk, self.senders.index(sender), form, first, second)
        self.parts.append(tuple(np.atleast_1d(column).astype(np.int64) for column in columns))

    def moments(self, count: int) -> Ints:
        """Return random moments, in order; the traffic swells and ebbs."""
        even = np.sort(self.chance.random(count))
        return ((even + 0.06 * np.sin(even * 11)) % 1.0 * self.span_us).astype(np.int64)

    def chosen(self, count: int, weights: Sequence[float]) -> Ints:
        """Return random numbers of choices by weight."""
        whole = np.asarray(weights) / np.sum(weights)
        return self.chance.choice(len(whole), count, p=whole)

    def silence(self, talk: int, begin_us: int, end_us: int) -> None:
        """Take out what was said on a connection within a stretch of time."""
        for number, part in enumerate(self.parts):
            kept = (part[1] != talk) | (part[0] < begin_us) | (part[0] >= end_us)
            self.parts[number] = tuple(column[kept] for column in part)
