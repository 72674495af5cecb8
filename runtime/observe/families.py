"""Measures as values: what is measured, in which unit, and what it is now; `exposition` writes them for Prometheus.

A label's value may come from the wire. It is made printable and cut, so that two names may look alike afterwards: their values
are added, as Prometheus refuses a whole answer in which a sample is there twice. And it may be invented by the thousand: whoever
fills a family says how many values there may be (`MAX_VALUES`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from specwire.runtime.log.text import show

Kind = Literal["counter", "gauge", "histogram"]

LONGEST_LABEL = 120
"""Characters of a label's value."""

MAX_VALUES = 200
"""Different values of a label that others choose; what is beyond is in the totals alone."""


class Family:
    """One measure, with a sample for each set of labels.

    Args:
        name: with unit, as Prometheus wants it: ``specwire_filemq_content_bytes``; that of a counter has no ``_total``.
        kind: a counter only grows while the process runs, a gauge goes up and down; for a histogram see `Histogram`.
        help: one line on what it means.
        labels: names of the labels, in the order of the values given to `add`.

    Attributes:
        samples: the value for each set of label values.
    """

    __slots__ = ("help", "kind", "labels", "name", "samples")

    def __init__(self, name: str, kind: Kind, help: str, labels: tuple[str, ...] = ()) -> None:
        self.name, self.kind, self.help, self.labels = name, kind, help, labels
        self.samples: dict[tuple[str, ...], float] = {}

    def add(self, value: float, *labels: str) -> None:
        """Add to the sample with these label values, which begins with 0."""
        assert len(labels) == len(self.labels), f"{self.name} has the labels {self.labels}"
        key = tuple(tidy(label) for label in labels)
        self.samples[key] = self.samples.get(key, 0) + value

    def add_each(self, values: Mapping[str, float]) -> None:
        """Add a sample for each name, which is the value of the only label."""
        for name, value in values.items():
            self.add(value, name)


class Histogram(Family):
    """How many of something were at most so large, for each of some limits.

    Args:
        limits: in rising order; what is above the last one is counted, too.

    Attributes:
        buckets: for each set of label values the number for each limit, and that of all.
    """

    __slots__ = ("buckets", "limits")

    def __init__(self, name: str, help: str, limits: tuple[float, ...], labels: tuple[str, ...]) -> None:
        super().__init__(name, "histogram", help, labels)
        self.limits = limits
        self.buckets: dict[tuple[str, ...], list[int]] = {}

    def add_all(self, at_most: list[int], total: float, *labels: str) -> None:
        """Add to the sample with these label values.

        Args:
            at_most: how many were at most each limit, and how many there are.
            total: the sum of all of them.
        """
        self.add(total, *labels)
        key = tuple(tidy(label) for label in labels)
        before = self.buckets.get(key, [0] * len(at_most))
        self.buckets[key] = [old + new for old, new in zip(before, at_most, strict=True)]


def counter(name: str, help: str, value: float) -> Family:
    """Return a counter without labels."""
    return _alone(name, "counter", help, value)


def gauge(name: str, help: str, value: float) -> Family:
    """Return a gauge without labels."""
    return _alone(name, "gauge", help, value)


def tidy(text: str) -> str:
    """Return the value of a label: nothing in it that cannot be printed, and not longer than `LONGEST_LABEL`."""
    shown = show(text[:LONGEST_LABEL])
    return shown if len(shown) <= LONGEST_LABEL else shown[:LONGEST_LABEL]


def sum_of(values: Iterable[float | None]) -> float:
    """Return the sum of those that are known."""
    return sum(value for value in values if value is not None)


def _alone(name: str, kind: Kind, help: str, value: float) -> Family:
    family = Family(name, kind, help)
    family.add(value)
    return family
