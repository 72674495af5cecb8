"""Charts of amounts and times: messages over time, latencies, conversations with their silences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from specwire.runtime.spark.pipeline.counts import STRETCHES
from specwire.runtime.spark.pipeline.summary import UNDECODED, Bucket, Timeline
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.findings import BINS_PER_DECADE, LatencyBin, Presence, Silence
from specwire.runtime.spark.report.svg import (
    BAD,
    INK,
    LETTER,
    NARROW,
    SERIES,
    WIDE,
    Figure,
    Scale,
    draw_figure,
    label,
    polygon,
    rect,
    round_ticks,
    titled,
    x_axis,
    y_axis,
)
from specwire.runtime.spark.report.text import (
    count_text,
    distinct_texts,
    find_ticks,
    micros_text,
    moment_text,
    rate_text,
    short_text,
    span_text,
)

OTHERS = "others"
KINDS = {"rpc": "requests", "job": "jobs", "transfer": "files"}
SILENCES = {"again": "spoke again", "silent": "silent to the end", "gone": "given up"}
"""Labels of the ways in which a silence ends."""
PLOT_HEIGHT = 190.0
BARS_NARROW = 60
"""Maximum number of bars on a phone; if there are more, neighbours are added up."""
NAME_LENGTH = 48
"""Maximum length of the name of a conversation in the chart, in characters."""
TYPES_IN_TITLE = 8


def plot_messages(
    timeline: Timeline, begin: datetime, *, unit: str = "type", bars: int = STRETCHES, sql: str = ""
) -> Figure | None:
    """Draw messages over time as at most `bars` stacked bars, one colour for each type.

    None if there are none.

    `begin` is the start of the bar with index 0; `unit` names what the colours distinguish.
    """
    if not timeline.buckets:
        return None
    totals: Counter[str] = Counter()
    for bucket in timeline.buckets:
        totals.update(bucket.types)
    shown = _shown_types(totals)
    colours = {name: BAD if name == UNDECODED else SERIES[place] for place, name in enumerate(shown)}
    stretches = timeline.buckets[-1].index + 1

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        factor = -(-stretches // (bars if wide else min(bars, BARS_NARROW)))
        buckets = merge_buckets(timeline.buckets, factor)
        return 250, _message_bars(buckets, timeline.width_s * factor, begin, colours, wide)

    sums: Counter[str] = Counter()
    for name, messages in totals.items():
        sums[name if name in colours else OTHERS] += messages
    legend = [(colours[name], f"{name} {count_text(sums[name])}") for name in shown]
    note = "Red marks: some messages did not decode." if UNDECODED in totals else ""
    largest = ", ".join(f"{name} {count_text(messages)}" for name, messages in _ranked(totals)[:5])
    description = f"{count_text(totals.total())} messages by {unit} over time: {largest}."
    return draw_figure("Messages over time", note, description, legend, draw, sql=sql)


def merge_buckets(buckets: Iterable[Bucket], factor: int) -> list[Bucket]:
    """Return buckets `factor` times as wide."""
    if factor == 1:
        return list(buckets)
    types: dict[int, Counter[str]] = {}
    for bucket in buckets:
        types.setdefault(bucket.index // factor, Counter()).update(bucket.types)
    return [Bucket(index, found.total(), 0, dict(found)) for index, found in types.items()]


def _shown_types(totals: Counter[str]) -> list[str]:
    """The most frequent types, all others as one, and undecoded messages separately."""
    ranked = [name for name, _ in _ranked(totals) if name != UNDECODED]
    if len(ranked) > len(SERIES):
        ranked = [*ranked[: len(SERIES) - 1], OTHERS]
    return [*ranked, UNDECODED] if UNDECODED in totals else ranked


def _ranked(totals: Counter[str]) -> list[tuple[str, int]]:
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


def _message_bars(
    buckets: Sequence[Bucket], width_s: float, begin: datetime, colours: Mapping[str, str], wide: bool
) -> Iterator[str]:
    ticks = round_ticks(max(sum(bucket.types.values()) for bucket in buckets))
    texts = [(value, count_text(round(value))) for value in ticks if value == round(value)]
    left = 14 + LETTER * max(len(text) for _, text in texts)
    top, right = 26.0, (WIDE if wide else NARROW) - 8
    span_s = width_s * (buckets[-1].index + 1)
    x, y = Scale(0, span_s, left, right), Scale(0, ticks[-1], top + PLOT_HEIGHT - 10, top)
    yield label(0, 12, rate_text(width_s))
    yield from y_axis(y, texts, left, right)
    dated = (begin + timedelta(seconds=span_s)).date() != begin.date()
    for bucket in buckets:
        start, end = x.at(bucket.index * width_s), x.at((bucket.index + 1) * width_s)
        # A gap between bars shows where one ends, if there is room.
        bar = end - start - (1 if end - start > 4 else 0)
        parts, ground = [rect(start, top, end - start, y.start - top)], 0
        for name, messages in _stack(bucket.types, colours):
            high, low = y.at(ground + messages), y.at(ground)
            # A part that is too small to see is only in the tooltip.
            if low - high >= 0.1:
                parts.append(rect(start, high, bar, low - high, colours[name]))
            ground += messages
        if UNDECODED in bucket.types:
            middle = (start + end) / 2
            parts.append(polygon([(middle - 4, top - 9), (middle + 4, top - 9), (middle, top - 2)], BAD))
        moment = begin + timedelta(seconds=bucket.index * width_s)
        yield titled(_bucket_text(bucket, moment, width_s, dated=dated), *parts, kind="bin")
    if span_s <= 120:
        seconds = ((value, f"{value:g}") for value in round_ticks(span_s, 6) if value <= span_s)
        name = f"seconds from {moment_text(begin, dated=False)} UTC"
        yield from x_axis(x, seconds, y.start, name)
    else:
        yield from x_axis(x, find_ticks(begin, span_s, 10 if wide else 5), y.start, "UTC")


def _stack(types: Mapping[str, int], colours: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the parts of a bar from the bottom up."""
    for name in colours:
        if name == OTHERS:
            others = sum(messages for other, messages in types.items() if other not in colours)
            messages = others + types.get(OTHERS, 0)
        else:
            messages = types.get(name, 0)
        if messages:
            yield name, messages


def _bucket_text(bucket: Bucket, moment: datetime, width_s: float, *, dated: bool) -> str:
    precise = width_s < 1
    first = moment_text(moment, dated=dated, precise=precise)
    last = moment_text(moment + timedelta(seconds=width_s), dated=False, precise=precise)
    ranked = _ranked(Counter(bucket.types))
    types = [f"{name} {count_text(messages)}" for name, messages in ranked[:TYPES_IN_TITLE]]
    if len(ranked) > TYPES_IN_TITLE:
        types.append(f"{len(ranked) - TYPES_IN_TITLE} more types")
    total = count_text(sum(bucket.types.values()))
    return "\n".join((f"{first} to {last} UTC", f"{total} messages", *types))


def plot_latency(bins: Sequence[LatencyBin], *, sql: str = "") -> Figure | None:
    """Draw the distribution of latencies on a logarithmic axis; None if nothing was answered.

    Each kind is drawn as a share of its own total: there may be a million requests and a hundred
    files.
    """
    if not bins:
        return None
    kinds = sorted({item.kind for item in bins})
    counts = {kind: Counter({item.bin: item.count for item in bins if item.kind == kind}) for kind in kinds}
    colours = dict(zip(kinds, SERIES, strict=False))

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        return 250, _latency_bars(counts, colours, wide)

    medians = "; ".join(
        f"{KINDS.get(kind, kind)}: median about {micros_text(_median_us(counts[kind]))}" for kind in kinds
    )
    note = (
        f"{medians[0].upper()}{medians[1:]}. From the request to the last answer, by the clock of one tap. "
        "Each bar is 12 % wider than the one before."
    )
    legend = [
        (colours[kind], f"{KINDS.get(kind, kind)} {count_text(counts[kind].total())}") for kind in kinds
    ]
    return draw_figure("Latency", note, f"Distribution of latencies, {medians}.", legend, draw, sql=sql)


def _latency_bars(
    counts: Mapping[str, Counter[int]], colours: Mapping[str, str], wide: bool
) -> Iterator[str]:
    shares = {
        kind: {at: 100 * count / found.total() for at, count in found.items()}
        for kind, found in counts.items()
    }
    ticks = round_ticks(max(share for found in shares.values() for share in found.values()))
    texts = [(value, f"{value:g} %") for value in ticks]
    left = 14 + LETTER * max(len(text) for _, text in texts)
    top, right = 26.0, (WIDE if wide else NARROW) - 14
    places = sorted({at for found in counts.values() for at in found})
    x = Scale(_bin_us(places[0]), _bin_us(places[-1] + 1), left, right, log=True)
    y = Scale(0, ticks[-1], top + PLOT_HEIGHT - 10, top)
    yield label(0, 12, "share of its kind")
    yield from y_axis(y, texts, left, right)
    for at in places:
        start, end = x.at(_bin_us(at)), x.at(_bin_us(at + 1))
        parts, told = [rect(start, top, end - start, y.start - top)], []
        told.append(f"{micros_text(_bin_us(at))} to {micros_text(_bin_us(at + 1))}")
        for kind, found in shares.items():
            if at in found:
                high = y.at(found[at])
                # The line on top keeps a kind visible behind another.
                parts.append(
                    f'<g opacity=".45">{rect(start, high, end - start, y.start - high, colours[kind])}</g>'
                )
                parts.append(rect(start, high, end - start, 1.5, colours[kind]))
                told.append(f"{KINDS.get(kind, kind)}: {count_text(counts[kind][at])} ({found[at]:.2g} %)")
        yield titled("\n".join(told), *parts, kind="bin")
    powers = (10.0**power for power in range(14) if x.low <= 10.0**power <= x.high)
    yield from x_axis(
        x, ((value, _round_micros(value)) for value in powers), y.start, "time to the last answer"
    )


def _round_micros(micros: float) -> str:
    return micros_text(micros) if micros < 1e6 else f"{micros / 1e6:g} s"


def _bin_us(place: int) -> float:
    return float(10 ** (place / BINS_PER_DECADE))


def _median_us(counts: Counter[int]) -> float:
    half, seen = counts.total() / 2, 0
    for place in sorted(counts):
        seen += counts[place]
        if seen >= half:
            return _bin_us(place)
    return 0.0


def plot_conversations(
    presences: Sequence[Presence], silences: Sequence[Silence], names: Mapping[str, str], *, sql: str = ""
) -> Figure | None:
    """Draw each conversation from its first to its last message, with its overlong silences.

    `names` has the names of taps. A conversation is labelled with its peer, and with its tap if
    several taps saw the protocol.
    """
    if not presences:
        return None
    begin = min(item.first_ts for item in presences)
    span_s = max((max(item.last_ts for item in presences) - begin).total_seconds(), 0.001)
    shown = [[gap for gap in silences if _within(gap, item)] for item in presences]
    several = len({item.tap for item in presences}) > 1
    full = [
        conversation_name(item.peer, item.conversation, item.tap, names if several else {})
        for item in presences
    ]

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        row = 22.0 if wide else 32.0
        elements = _conversation_rows(presences, shown, full, begin, span_s, wide)
        return row * len(presences) + 46, elements

    note = "A line is a conversation; red is a side that was silent for longer than its heartbeat allows."
    number = sum(map(len, shown))
    description = f"{count_text(len(presences))} conversations, {count_text(number)} silences."
    return draw_figure("Conversations and silences", note, description, (), draw, sql=sql)


def conversation_name(peer: str | None, conversation: str, tap: str, names: Mapping[str, str]) -> str:
    """Return the peer, or the conversation if it is unknown, with the tap if `names` has it."""
    where = f" at {names[tap]}" if tap in names else ""
    return f"{peer or conversation}{where}"


def _conversation_rows(
    presences: Sequence[Presence],
    silences: Sequence[Sequence[Silence]],
    names: list[str],
    begin: datetime,
    span_s: float,
    wide: bool,
) -> Iterator[str]:
    right, row = (WIDE - 10, 22.0) if wide else (NARROW - 10, 32.0)
    texts = distinct_texts(names, NAME_LENGTH)
    left = 16 + LETTER * max(map(len, texts)) if wide else 4.0
    x = Scale(0, span_s, left, right)
    bottom = row * len(presences) + 4
    dated = (begin + timedelta(seconds=span_s)).date() != begin.date()

    def at(moment: datetime) -> float:
        return x.at(min(max((moment - begin).total_seconds(), 0), span_s))

    for place, (item, gaps, text) in enumerate(zip(presences, silences, texts, strict=True)):
        y = row * place + (12 if wide else 22)
        spoken = (
            label(left - 10, y + 4, text, anchor="end", kind="ink")
            if wide
            else label(4, y - 8, text, kind="ink")
        )
        start, end = at(item.first_ts), at(item.last_ts)
        times = (moment_text(moment, dated=dated, precise=True) for moment in (item.first_ts, item.last_ts))
        told = (
            f"{short_text(item.peer or item.conversation, 120)}\nconversation {short_text(item.conversation, 80)}"
            f"\ntap {short_text(item.tap, 60)}\n{' to '.join(times)} UTC\n{count_text(item.messages)} messages"
        )
        bar = rect(start, y - 2, max(end - start, 2), 4, SERIES[0])
        yield titled(
            told, spoken, rect(start - 3, y - 8, end - start + 6, 16), bar, rect(start - 1, y - 6, 2, 12, INK)
        )
        for gap in gaps:
            until = gap.until_ts or item.last_ts
            since = moment_text(gap.ts, dated=dated, precise=True)
            side = role_name(gap.protocol or item.protocol, gap.sender)
            outcome = SILENCES.get(gap.outcome, gap.outcome)
            from_x, to_x = at(gap.ts), at(max(until, gap.ts))
            yield titled(
                f"{side} silent for {span_text(gap.silent_s)} from {since} UTC\n{outcome}\n{text}",
                rect(from_x, y - 4, max(to_x - from_x, 2), 8, BAD),
            )
    if span_s <= 120:
        seconds = ((value, f"{value:g}") for value in round_ticks(span_s, 6) if value <= span_s)
        yield from x_axis(x, seconds, bottom, f"seconds from {moment_text(begin, dated=False)} UTC")
    else:
        yield from x_axis(x, find_ticks(begin, span_s, 8 if wide else 5), bottom, "UTC")


def _within(gap: Silence, item: Presence) -> bool:
    """Return whether a silence began in this part of a conversation, which may have long pauses."""
    same = (gap.tap, gap.conversation) == (item.tap, item.conversation)
    return same and item.first_ts <= gap.ts <= item.last_ts
