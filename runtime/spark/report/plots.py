"""The figures of the report that tell of amounts and times: messages over time, latencies, heartbeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from specwire.runtime.spark.pipeline.summary import UNDECODED, Timeline
from specwire.runtime.spark.report.drawing import BAD, INK, SERIES, Figure, draw_figure
from specwire.runtime.spark.report.figures import count_text, micros_text, short_text, span_text
from specwire.runtime.spark.report.found import BINS_PER_DECADE, LatencyBin, Presence, Silence
from specwire.runtime.spark.report.times import tell_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OTHERS = "others"
KINDS = {"rpc": "requests", "job": "jobs", "transfer": "files"}
LETTERS_WIDE, LETTERS_NARROW = 26, 12


def plot_messages(timeline: Timeline, begin: datetime) -> Figure | None:
    """Draw the messages of each stretch of time, by type, one on the other; None where there are none.

    `begin` is when the stretch with index 0 begins.
    """
    if not timeline.buckets:
        return None
    totals: Counter[str] = Counter()
    for bucket in timeline.buckets:
        totals.update(bucket.types)
    shown = _shown_types(totals)
    counts = {name: [0] * (timeline.buckets[-1].index + 1) for name in shown}
    for bucket in timeline.buckets:
        for name, messages in bucket.types.items():
            counts[name if name in counts else OTHERS][bucket.index] += messages

    def draw(axes: Axes, wide: bool) -> None:
        _draw_stretches(axes, counts, timeline.width_s)
        axes.set_ylabel(f"{'messages in' if wide else 'in'} {span_text(timeline.width_s)}")
        axes.yaxis.set_major_formatter(lambda number, _: count_text(round(number)))
        axes.grid(axis="y")
        tell_time(axes, begin, timeline.width_s * len(counts[shown[0]]), wide=wide)
        _legend(axes, wide, len(shown))

    note = "Red marks stand where messages did not decode." if UNDECODED in totals else ""
    told = ", ".join(f"{name} {count_text(messages)}" for name, messages in _ranked(totals)[:5])
    description = f"{count_text(totals.total())} messages by type over time: {told}."
    return draw_figure("messages", "Messages over time", note, description, draw)


def _shown_types(totals: Counter[str]) -> list[str]:
    """The most frequent types, the others as one, and apart from both what did not decode."""
    ranked = [name for name, _ in _ranked(totals) if name != UNDECODED]
    if len(ranked) > len(SERIES):
        ranked = [*ranked[: len(SERIES) - 1], OTHERS]
    return [*ranked, UNDECODED] if UNDECODED in totals else ranked


def _ranked(totals: Counter[str]) -> list[tuple[str, int]]:
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


def _draw_stretches(axes: Axes, counts: dict[str, list[int]], width_s: float) -> None:
    ground = [0] * len(next(iter(counts.values())))
    edges = [at * width_s for at in range(len(ground) + 1)]
    for number, (name, messages) in enumerate(counts.items()):
        top = [one + other for one, other in zip(ground, messages, strict=True)]
        colour = BAD if name == UNDECODED else SERIES[number]
        label = f"{name} {count_text(sum(messages))}"
        axes.stairs(top, edges, baseline=ground, color=colour, label=label, fill=True)
        ground = top
    marks = [(at + 0.5) * width_s for at, messages in enumerate(counts.get(UNDECODED, ())) if messages]
    axes.plot(
        marks, [1.03] * len(marks), transform=axes.get_xaxis_transform(), clip_on=False,
        marker="v", markersize=4, linestyle="", color=BAD,
    )  # fmt: skip
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)


def plot_latency(bins: Sequence[LatencyBin]) -> Figure | None:
    """Draw how many took how long, on a logarithmic scale; None where nothing was answered.

    Each kind is drawn in hundredths of its own number: there may be a million requests to a hundred files.
    """
    if not bins:
        return None
    kinds = sorted({item.kind for item in bins})

    def draw(axes: Axes, wide: bool) -> None:
        for number, kind in enumerate(kinds):
            mine = {item.bin: item.count for item in bins if item.kind == kind}
            whole = sum(mine.values())
            span = range(min(mine), max(mine) + 1)
            edges = [_bin_us(at) for at in (*span, span[-1] + 1)]
            shares = [100 * mine.get(at, 0) / whole for at in span]
            label = f"{KINDS.get(kind, kind)} {count_text(whole)}"
            axes.stairs(shares, edges, color=SERIES[number], label=label, fill=True, alpha=0.35)
            axes.stairs(shares, edges, color=SERIES[number])
        axes.set_xscale("log")
        axes.locator_params("x", numticks=12 if wide else 5)
        axes.xaxis.set_major_formatter(lambda micros, _: _tick_text(micros))
        axes.xaxis.set_minor_formatter(lambda micros, _: "")
        axes.set_xlabel("from the question to the last answer")
        axes.set_ylabel("% of its kind")
        axes.set_ylim(bottom=0)
        axes.grid(axis="both")
        _legend(axes, wide, len(kinds))

    medians = "; ".join(
        f"{KINDS.get(kind, kind)}: median about {micros_text(_median_us(bins, kind))}" for kind in kinds
    )
    note = f"{medians[0].upper()}{medians[1:]}. Taken from one tap's own clock; each step is 12 % wider than the one before."
    return draw_figure("latency", "Latency", note, f"Distribution of latencies, {medians}.", draw)


def plot_heartbeats(presences: Sequence[Presence], silences: Sequence[Silence]) -> Figure | None:
    """Draw each conversation from its first to its last message, and where a side said nothing for too long."""
    if not presences:
        return None
    begin = min(item.first_ts for item in presences)
    end = max(item.last_ts for item in presences)
    shown = [(row, gap) for row, item in enumerate(presences) for gap in silences if _within(gap, item)]

    def at(moment: datetime) -> float:
        return (moment - begin).total_seconds()

    def draw(axes: Axes, wide: bool) -> None:
        rows, first = range(len(presences)), [at(item.first_ts) for item in presences]
        axes.hlines(rows, first, [at(item.last_ts) for item in presences], SERIES[0], linewidth=3)
        axes.plot(first, rows, marker="|", markersize=9, linestyle="", color=INK)
        until = [at(gap.until_ts or end) for _, gap in shown]
        axes.hlines([row for row, _ in shown], [at(gap.ts) for _, gap in shown], until, BAD, linewidth=5)
        length = LETTERS_WIDE if wide else LETTERS_NARROW
        names = [short_text(item.peer or item.conversation, length) for item in presences]
        axes.set_yticks(rows, names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(axis="x")
        tell_time(axes, begin, at(end), wide=wide)

    note = "A line is a conversation; red is a side that was silent for longer than its heartbeat allows."
    told = f"{count_text(len(presences))} conversations, {count_text(len(shown))} silences."
    height = 1.1 + 0.22 * len(presences)
    return draw_figure("heartbeats", "Heartbeats and silences", note, told, draw, height=height)


def _within(gap: Silence, item: Presence) -> bool:
    """Whether a silence began in this stretch of the conversation, which may have gone on after a long rest."""
    same = (gap.tap, gap.conversation) == (item.tap, item.conversation)
    return same and item.first_ts <= gap.ts <= item.last_ts


def _bin_us(number: int) -> float:
    return float(10 ** (number / BINS_PER_DECADE))


def _median_us(bins: Sequence[LatencyBin], kind: str) -> float:
    mine = [item for item in bins if item.kind == kind]
    half, seen = sum(item.count for item in mine) / 2, 0
    for item in sorted(mine, key=lambda item: item.bin):
        seen += item.count
        if seen >= half:
            return _bin_us(item.bin)
    return 0.0


def _tick_text(micros: float) -> str:
    return micros_text(micros) if micros < 1e6 else f"{micros / 1e6:g} s"


def _legend(axes: Axes, wide: bool, entries: int) -> None:
    """Beside the figure where there is room, below it where there is none."""
    figure = axes.get_figure()
    assert figure is not None
    if wide:
        figure.legend(loc="outside right upper")
    else:
        figure.legend(loc="outside lower center", ncols=min(2, entries))
