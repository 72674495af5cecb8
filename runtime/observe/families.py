"""Metrics as values; `exposition` writes them for Prometheus.

The value of a label may come from the wire. It is made printable and cut, so two names may look
alike afterwards. Their values are added, because Prometheus refuses an answer that has a sample
twice. Others may invent thousands of values, so the code that fills a family limits them
(`MAX_VALUES`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from specwire.runtime.log.text import show

Kind = Literal["counter", "gauge", "histogram"]

LONGEST_LABEL = 120
"""Characters of a label's value."""

MAX_VALUES = 200
"""Most values of a label that others choose; totals include the others."""


class Family:
    """A metric, with a sample for each set of labels.

    Args:
        name: with unit, as Prometheus requires it: ``specwire_filemq_content_bytes``; without the
            ``_total`` of a counter.
        kind: a counter only grows while the process runs, a gauge goes up and down; for a histogram
            see `Histogram`.
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
    """A histogram: the number of values that are at most each limit.

    Args:
        limits: in rising order; larger values are counted, too.

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
    """Return the value of a label: printable, and at most `LONGEST_LABEL` characters."""
    shown = show(text[:LONGEST_LABEL])
    return shown if len(shown) <= LONGEST_LABEL else shown[:LONGEST_LABEL]


def _alone(name: str, kind: Kind, help: str, value: float) -> Family:
    family = Family(name, kind, help)
    family.add(value)
    return family
