"""SVG charts inside the page: shapes, axes, and the charts of messages over time and of latencies.

Every mark is in a group that begins with ``<title>``, which browsers show on hover without a
script. Each chart is drawn twice, for a wide page and for a phone, because text scaled down would
be too small. Colours are the page's CSS variables. The legend is HTML, so that it wraps. The same
values always give the same text. All text is escaped here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from markupsafe import escape

from specwire.runtime.log.text import show
from specwire.runtime.spark.pipeline.counts import STRETCHES
from specwire.runtime.spark.pipeline.summary import UNDECODED, Bucket, Timeline
from specwire.runtime.spark.report.findings import BINS_PER_DECADE, LatencyBin
from specwire.runtime.spark.report.text import (
    KINDS,
    THIN_SPACE,
    count_text,
    find_ticks,
    micros_text,
    moment_text,
    rate_text,
)

SERIES = tuple(f"s{number}" for number in range(8))
"""CSS variables, and classes, of the colours of series; the last is for all others."""
BAD, INK, SOFT = "bad", "ink", "soft"
WIDE, NARROW = 960.0, 360.0
"""Widths in CSS pixels."""
LETTER = 7.2
"""Width of a character in a wide font at the chart's font size of 12 pixels."""
TOP, BOTTOM = 26.0, 206.0
"""The plotting area of a bar chart, in pixels from the top."""
BARS_HEIGHT = 250.0
BARS_NARROW = 60
"""Maximum number of bars on a phone; if there are more, neighbours are added up."""
TITLE_LENGTH = 400
"""Maximum length of a tooltip, in characters."""
TYPES_IN_TITLE = 8
OTHERS = "others"


class Figure(msgspec.Struct, frozen=True):
    """Chart in SVG for wide and for narrow pages, with its legend and a text alternative.

    `legend` has a colour and a text for each entry; `sql` is the query behind the chart.
    """

    title: str
    note: str
    description: str
    legend: tuple[tuple[str, str], ...]
    wide: str
    narrow: str
    sql: str = ""


class Scale(NamedTuple):
    """Linear or logarithmic map from values to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)


Draw = Callable[[bool], tuple[float, Iterable[str]]]
"""Draws for a wide or narrow page; returns the height in pixels and the elements."""


def draw_figure(
    title: str, note: str, description: str, legend: Sequence[tuple[str, str]], draw: Draw, *, sql: str = ""
) -> Figure:
    """Return a figure of what `draw` draws for both widths."""
    wide, narrow = _svg(WIDE, *draw(True)), _svg(NARROW, *draw(False))
    return Figure(title, note, description, tuple(legend), wide, narrow, sql)


def _svg(width: float, height: float, elements: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}">{"".join(elements)}</svg>'


def number(value: float) -> str:
    """Return a coordinate with one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def titled(title: str, *elements: str, kind: str = "mark") -> str:
    """Return marks that show a tooltip on hover."""
    text = show(title[:TITLE_LENGTH], keep=f"\n{THIN_SPACE}")
    return f'<g class="{kind}"><title>{escape(text)}</title>{"".join(elements)}</g>'


def rect(x: float, y: float, width: float, height: float, colour: str = "hit") -> str:
    """Return a rectangle, as a path because that is shorter.

    ``hit`` is invisible and only catches the pointer.
    """
    return f'<path class="{colour}" d="M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"/>'


def polygon(points: Sequence[tuple[float, float]], colour: str) -> str:
    """Return a filled polygon."""
    places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polygon class="{colour}" points="{places}"/>'


def label(x: float, y: float, text: str, *, anchor: str = "start", kind: str = SOFT) -> str:
    """Return a line of text; `anchor` is ``start``, ``middle`` or ``end``."""
    safe = escape(show(text, keep=THIN_SPACE))
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" class="{kind}">{safe}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a line of the axes."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line class="{kind}" {ends}/>'


def round_ticks(most: float, about: int = 4) -> list[float]:
    """Return about as many round values from 0 up to at least `most`."""
    if most <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most / about))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * about >= most)
    return [step * place for place in range(math.ceil(most / step) + 1)]


def y_axis(ticks: Sequence[tuple[float, str]], right: float, name: str) -> tuple[Scale, float, list[str]]:
    """Return the scale of the ticks, the left edge, and grid lines with their labels and name."""
    left = 14 + LETTER * max(len(text) for _, text in ticks)
    scale = Scale(0, ticks[-1][0], BOTTOM, TOP)
    elements = [label(0, 12, name)]
    for value, text in ticks:
        y = scale.at(value)
        elements += line(left, y, right, y, "grid"), label(left - 6, y + 4, text, anchor="end")
    return scale, left, elements


def x_axis(scale: Scale, ticks: Iterable[tuple[float, str]], bottom: float, name: str) -> Iterator[str]:
    """Yield the base line, tick labels that do not overlap, and the axis name below them."""
    yield line(scale.start, bottom, scale.end, bottom, "axis")
    free = -math.inf
    for value, text in ticks:
        x, half = scale.at(value), len(text) * LETTER / 2
        if x - half < free:
            continue
        free = x + half + 6
        yield line(x, bottom, x, bottom + 4, "axis")
        yield label(min(max(x, half), scale.end + 8 - half), bottom + 17, text, anchor="middle")
    yield label((scale.start + scale.end) / 2, bottom + 34, name, anchor="middle")


def time_axis(scale: Scale, begin: datetime, bottom: float, ticks: int) -> Iterator[str]:
    """Yield the axis of a time range from `begin`; `scale` has seconds. Short ranges count seconds."""
    span_s = scale.high
    if span_s > 120:
        yield from x_axis(scale, find_ticks(begin, span_s, ticks), bottom, "UTC")
        return
    seconds = ((value, f"{value:g}") for value in round_ticks(span_s, 6) if value <= span_s)
    since = moment_text(begin, dated=False, precise=bool(begin.microsecond))
    yield from x_axis(scale, seconds, bottom, f"seconds from {since} UTC")


def plot_messages(
    timeline: Timeline, origin: datetime, *, bars: int = STRETCHES, sql: str = ""
) -> Figure | None:
    """Draw messages over time as at most `bars` stacked bars; None if there are none.

    `origin` is the start of the stretch with index 0. The chart begins at the first bar.
    """
    if not timeline.buckets:
        return None
    first = timeline.buckets[0].index
    begin = origin + timedelta(seconds=first * timeline.width_s)
    stretches = timeline.buckets[-1].index - first + 1
    totals: Counter[str] = Counter()
    for bucket in timeline.buckets:
        totals.update(bucket.types)
    colours = _choose_colours(totals)

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        factor = -(-stretches // (bars if wide else min(bars, BARS_NARROW)))
        buckets = merge_buckets(timeline.buckets, factor)
        return BARS_HEIGHT, _message_bars(buckets, timeline.width_s * factor, begin, colours, wide)

    sums = _fold_others(totals, colours)
    legend = [(colour, f"{name} {count_text(sums[name])}") for name, colour in colours.items()]
    note = "Red marks: some messages did not decode." if UNDECODED in totals else ""
    largest = ", ".join(f"{name} {count_text(messages)}" for name, messages in _rank(totals)[:5])
    description = f"{count_text(totals.total())} messages over time: {largest}."
    return draw_figure("Messages over time", note, description, legend, draw, sql=sql)


def merge_buckets(buckets: Sequence[Bucket], factor: int) -> list[Bucket]:
    """Return buckets `factor` times as wide, of which the first begins with the first given."""
    types: dict[int, Counter[str]] = {}
    for bucket in buckets:
        types.setdefault((bucket.index - buckets[0].index) // factor, Counter()).update(bucket.types)
    return [Bucket(index, found.total(), 0, dict(found)) for index, found in types.items()]


def _choose_colours(totals: Counter[str]) -> dict[str, str]:
    """Return the colours of the most frequent types, of all others, and of undecoded messages."""
    ranked = [name for name, _ in _rank(totals) if name != UNDECODED]
    if len(ranked) > len(SERIES):
        ranked = [*ranked[: len(SERIES) - 1], OTHERS]
    return dict(zip(ranked, SERIES, strict=False)) | ({UNDECODED: BAD} if UNDECODED in totals else {})


def _rank(totals: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


def _fold_others(types: Mapping[str, int], colours: Mapping[str, str]) -> Counter[str]:
    """Return counts with those of types without a colour under `OTHERS`."""
    sums: Counter[str] = Counter()
    for name, messages in types.items():
        sums[name if name in colours else OTHERS] += messages
    return sums


def _message_bars(
    buckets: Sequence[Bucket], width_s: float, begin: datetime, colours: Mapping[str, str], wide: bool
) -> Iterator[str]:
    ticks = round_ticks(max(bucket.messages for bucket in buckets))
    texts = [(value, count_text(round(value))) for value in ticks if value == round(value)]
    right = (WIDE if wide else NARROW) - 8
    y, left, grid = y_axis(texts, right, rate_text(width_s))
    yield from grid
    span_s = width_s * (buckets[-1].index + 1)
    x = Scale(0, span_s, left, right)
    dated = (begin + timedelta(seconds=span_s)).date() != begin.date()
    for bucket in buckets:
        start, end = x.at(bucket.index * width_s), x.at((bucket.index + 1) * width_s)
        # A gap between bars shows where one ends, if there is room.
        bar = end - start - (1 if end - start > 4 else 0)
        parts, ground = [rect(start, TOP, end - start, BOTTOM - TOP)], 0
        sums = _fold_others(bucket.types, colours)
        for name in filter(sums.get, colours):
            high, low = y.at(ground + sums[name]), y.at(ground)
            # A part that is too small to see is only in the tooltip.
            if low - high >= 0.1:
                parts.append(rect(start, high, bar, low - high, colours[name]))
            ground += sums[name]
        if UNDECODED in bucket.types:
            middle = (start + end) / 2
            parts.append(polygon([(middle - 4, TOP - 9), (middle + 4, TOP - 9), (middle, TOP - 2)], BAD))
        moment = begin + timedelta(seconds=bucket.index * width_s)
        yield titled(_bucket_text(bucket, moment, width_s, dated=dated), *parts, kind="bin")
    yield from time_axis(x, begin, BOTTOM, 10 if wide else 5)


def _bucket_text(bucket: Bucket, moment: datetime, width_s: float, *, dated: bool) -> str:
    precise = width_s < 1
    first = moment_text(moment, dated=dated, precise=precise)
    last = moment_text(moment + timedelta(seconds=width_s), dated=False, precise=precise)
    ranked = _rank(bucket.types)
    types = [f"{name} {count_text(messages)}" for name, messages in ranked[:TYPES_IN_TITLE]]
    if len(ranked) > TYPES_IN_TITLE:
        types.append(f"{len(ranked) - TYPES_IN_TITLE} more types")
    return "\n".join((f"{first} to {last} UTC", f"{count_text(bucket.messages)} messages", *types))


def plot_latency(bins: Sequence[LatencyBin], *, sql: str = "") -> Figure | None:
    """Draw the distribution of the latencies of a protocol, which has requests, jobs or files.

    The time axis is logarithmic. None if nothing was answered.
    """
    if not bins:
        return None
    kind = KINDS.get(bins[0].kind, bins[0].kind)
    counts = Counter({item.bin: item.count for item in bins})

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        return BARS_HEIGHT, _latency_bars(counts, kind, wide)

    total, median = count_text(counts.total()), micros_text(_median_us(counts))
    note = (
        f"{total} {kind}; the median is about {median}. A time runs from the first message to the last one, by the "
        "clock of one tap. The time axis is logarithmic."
    )
    return draw_figure(
        "Latency", note, f"Latencies of {total} {kind}, median about {median}.", (), draw, sql=sql
    )


def _latency_bars(counts: Counter[int], kind: str, wide: bool) -> Iterator[str]:
    ticks = [value for value in round_ticks(max(counts.values())) if value == round(value)]
    right = (WIDE if wide else NARROW) - 14
    y, left, grid = y_axis([(value, count_text(round(value))) for value in ticks], right, kind)
    yield from grid
    first = min(counts)
    # At least a decade: a single bin would fill the chart.
    last = max(max(counts) + 1, first + BINS_PER_DECADE)
    x = Scale(_bin_us(first), _bin_us(last), left, right, log=True)
    for place, count in sorted(counts.items()):
        times = (_bin_us(place), _bin_us(place + 1))
        start, end = map(x.at, times)
        title = f"{' to '.join(map(micros_text, times))}\n{count_text(count)} {kind}"
        bar = rect(start, y.at(count), end - start - 0.5, BOTTOM - y.at(count), SERIES[0])
        yield titled(title, rect(start, TOP, end - start, BOTTOM - TOP), bar, kind="bin")
    powers = (10.0**power for power in range(14) if x.low <= 10.0**power <= x.high)
    texts = ((value, micros_text(value) if value < 1e6 else f"{value / 1e6:g} s") for value in powers)
    yield from x_axis(x, texts, BOTTOM, "time to the last message")


def _bin_us(place: int) -> float:
    return float(10 ** (place / BINS_PER_DECADE))


def _median_us(counts: Counter[int]) -> float:
    """Return the begin of the bin with the median."""
    half, seen = counts.total() / 2, 0
    for place in sorted(counts):
        seen += counts[place]
        if seen >= half:
            return _bin_us(place)
    return 0.0
