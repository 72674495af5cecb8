"""Bars over time as flat numbers, ready to be drawn as inline SVG."""

from __future__ import annotations

from typing import Literal

import msgspec

from specwire.runtime.spark.pipeline.summary import Timeline
from specwire.runtime.spark.report.figures import count_text, size_text, span_text

WIDTH, HEIGHT = 920.0, 160.0
GAP = 0.15
"""The part of a stretch that stays white between two bars."""


class Bar(msgspec.Struct, frozen=True):
    """One bar in the chart's coordinates, with the sentence that a pointer or a screen reader gets."""

    x: str
    y: str
    width: str
    height: str
    label: str


class Chart(msgspec.Struct, frozen=True):
    """A bar chart; `top` labels the highest bar, `left` and `right` the ends of the time axis."""

    title: str
    description: str
    width: str
    height: str
    top: str
    left: str
    right: str
    bars: tuple[Bar, ...]


def draw_bars(timeline: Timeline, of: Literal["messages", "octets"], title: str) -> Chart:
    """Return the bars of one figure, the highest as high as the chart."""
    stretches = 1 + max((bucket.index for bucket in timeline.buckets), default=0)
    values = {bucket.index: getattr(bucket, of) for bucket in timeline.buckets}
    highest = max([1, *values.values()])
    step = WIDTH / stretches
    bars: list[Bar] = []
    for index, value in values.items():
        height = max(1.0, HEIGHT * value / highest) if value else 0.0
        begin = span_text(index * timeline.width_s)
        bars.append(
            Bar(
                x=f"{(index + GAP / 2) * step:.2f}",
                y=f"{HEIGHT - height:.2f}",
                width=f"{(1 - GAP) * step:.2f}",
                height=f"{height:.2f}",
                label=f"from {begin}: {_amount(value, of)}",
            )
        )
    most = f"{_amount(highest, of)} in {span_text(timeline.width_s)}"
    return Chart(
        title=title,
        description=f"{title} as bars; the highest is {most}.",
        width=f"{WIDTH:g}",
        height=f"{HEIGHT:g}",
        top=most,
        left="0",
        right=span_text(stretches * timeline.width_s),
        bars=tuple(bars),
    )


def _amount(value: int, of: Literal["messages", "octets"]) -> str:
    return size_text(value) if of == "octets" else f"{count_text(value)} messages"
