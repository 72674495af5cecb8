"""The figures of the report: messages over time, latencies, heartbeats, and who talks to whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from specwire.runtime.spark.pipeline.summary import UNDECODED, Timeline
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.drawing import BAD, INK, LINE, SERIES, SOFT, Figure, draw_figure
from specwire.runtime.spark.report.figures import count_text, short_text, span_text
from specwire.runtime.spark.report.found import BINS_PER_DECADE, Edge, LatencyBin, Presence, Silence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OTHERS = "others"
KINDS = {"rpc": "requests", "job": "jobs", "transfer": "files"}
NODES_SHOWN = 24


def plot_messages(timeline: Timeline) -> Figure | None:
    """Draw the messages of each stretch of time, by type, one on the other; None where there are none."""
    if not timeline.buckets:
        return None
    totals: dict[str, int] = {}
    for bucket in timeline.buckets:
        for name, messages in bucket.types.items():
            totals[name] = totals.get(name, 0) + messages
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    shown = ranked if len(ranked) <= len(SERIES) else [*ranked[: len(SERIES) - 1], OTHERS]
    begins = [bucket.index * timeline.width_s for bucket in timeline.buckets]

    def counts_of(name: str) -> list[int]:
        if name != OTHERS or name in totals:
            return [bucket.types.get(name, 0) for bucket in timeline.buckets]
        rest = ranked[len(SERIES) - 1 :]
        return [sum(bucket.types.get(one, 0) for one in rest) for bucket in timeline.buckets]

    def draw(axes: Axes, wide: bool) -> None:
        ground = [0] * len(begins)
        for number, name in enumerate(shown):
            counts = counts_of(name)
            colour = BAD if name == UNDECODED else SERIES[number]
            label = f"{name} {count_text(sum(counts))}"
            axes.bar(begins, counts, timeline.width_s * 0.9, ground, align="edge", color=colour, label=label)
            ground = [one + other for one, other in zip(ground, counts, strict=True)]
        axes.set_xlabel("seconds from the first message")
        axes.set_ylabel(f"messages in {span_text(timeline.width_s)}")
        axes.grid(axis="y")
        _legend(axes, wide, len(shown))

    whole = sum(totals.values())
    told = ", ".join(f"{name} {count_text(totals[name])}" for name in ranked[:5])
    return draw_figure(
        "messages", "Messages over time", "", f"{count_text(whole)} messages by type over time: {told}.", draw
    )  # fmt: skip


def plot_latency(bins: Sequence[LatencyBin]) -> Figure | None:
    """Draw how many took how long, on a logarithmic scale; None where nothing was answered."""
    if not bins:
        return None
    kinds = sorted({item.kind for item in bins})

    def draw(axes: Axes, wide: bool) -> None:
        for number, kind in enumerate(kinds):
            mine = {item.bin: item.count for item in bins if item.kind == kind}
            span = range(min(mine), max(mine) + 1)
            edges = [_bin_us(at) for at in (*span, span[-1] + 1)]
            counts = [mine.get(at, 0) for at in span]
            label = f"{KINDS.get(kind, kind)} {count_text(sum(counts))}"
            axes.stairs(counts, edges, color=SERIES[number], label=label, fill=True, alpha=0.35)
            axes.stairs(counts, edges, color=SERIES[number])
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda micros, _: _micros_text(micros))
        axes.xaxis.set_minor_formatter(lambda micros, _: "")
        axes.set_xlabel("from the question to the last answer")
        axes.set_ylabel("how many")
        axes.grid(axis="both")
        _legend(axes, wide, len(kinds))

    note = "Taken from one tap's own clock. Each step is 12 % wider than the one before."
    told = "; ".join(
        f"{KINDS.get(kind, kind)}: median about {_micros_text(_median_us(bins, kind))}" for kind in kinds
    )
    return draw_figure("latency", "Latency", note, f"Distribution of latencies, {told}.", draw)


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
        for row, item in enumerate(presences):
            axes.plot([at(item.first_ts), at(item.last_ts)], [row, row], color=SERIES[0], linewidth=3)
            axes.plot([at(item.first_ts)], [row], marker="|", markersize=9, color=INK)
        for row, gap in shown:
            until = at(gap.until_ts) if gap.until_ts else at(end)
            axes.plot([at(gap.ts), until], [row, row], color=BAD, linewidth=5, alpha=0.75)
        length = 26 if wide else 12
        names = [short_text(item.peer or item.conversation, length) for item in presences]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel("seconds from the first message")
        axes.grid(axis="x")

    note = "A line is a conversation; red is a side that was silent for longer than its heartbeat allows."
    told = f"{count_text(len(presences))} conversations, {count_text(len(shown))} silences."
    height = 1.1 + 0.22 * len(presences)
    return draw_figure("heartbeats", "Heartbeats and silences", note, told, draw, height=height)


def plot_peers(edges: Sequence[Edge]) -> Figure | None:
    """Draw peers and services on a circle, joined where they talk; the busiest `NODES_SHOWN` only."""
    if not edges:
        return None
    octets: dict[tuple[str, str], int] = {}
    for edge in edges:
        for node in _ends(edge):
            octets[node] = octets.get(node, 0) + edge.octets
    busiest = sorted(octets, key=lambda node: (-octets[node], node))[:NODES_SHOWN]
    places = {node: _on_circle(number, len(busiest)) for number, node in enumerate(busiest)}
    roles = sorted({role for _, role in busiest})
    most = max(edge.octets for edge in edges) or 1

    def draw(axes: Axes, wide: bool) -> None:
        for edge in edges:
            source, target = _ends(edge)
            if source in places and target in places:
                style = {
                    "arrowstyle": "-|>",
                    "color": BAD if edge.errors else SOFT,
                    "linewidth": 0.7 + 2.3 * edge.octets / most,
                    "connectionstyle": "arc3,rad=0.12",
                    "shrinkA": 8.0,
                    "shrinkB": 8.0,
                    "linestyle": "--" if edge.kind == "calls" else "-",
                }
                axes.annotate("", places[target], places[source], arrowprops=style)
        for node, (x, y) in places.items():
            colour = SERIES[roles.index(node[1]) % len(SERIES)]
            axes.plot([x], [y], marker="o", markersize=9, color=colour, markeredgecolor=LINE)
            side = "left" if x > 0.01 else "right" if x < -0.01 else "center"
            name = short_text(node[0], 28 if wide else 14)
            axes.text(1.12 * x, 1.12 * y, name, ha=side, va="center")
        for number, role in enumerate(roles):
            axes.plot([], [], marker="o", linestyle="", color=SERIES[number % len(SERIES)], label=role)
        axes.set_xlim(-2.6 if wide else -2.1, 2.6 if wide else 2.1)
        axes.set_ylim(-1.35, 1.35)
        axes.axis("off")
        axes.legend(loc="upper right" if wide else "lower center", ncols=1 if wide else len(roles))

    hidden = len(octets) - len(places)
    note = "Wide lines carry most octets; dashed ones are calls of a service; red ones had errors."
    if hidden:
        note += f" {count_text(hidden)} quieter ones are left out."
    told = f"{count_text(len(octets))} peers and services, {count_text(len(edges))} directions."
    return draw_figure("peers", "Who talks to whom", note, told, draw, height=4.4)


def _within(gap: Silence, item: Presence) -> bool:
    """Whether a silence began in this stretch of the conversation, which may have gone on after a long rest."""
    same = (gap.tap, gap.conversation) == (item.tap, item.conversation)
    return same and item.first_ts <= gap.ts <= item.last_ts


def _ends(edge: Edge) -> tuple[tuple[str, str], tuple[str, str]]:
    return (
        (edge.source, role_name(edge.protocol, edge.source_role)),
        (edge.target, role_name(edge.protocol, edge.target_role)),
    )


def _on_circle(number: int, among: int) -> tuple[float, float]:
    angle = math.pi / 2 + 2 * math.pi * number / among
    return math.cos(angle), math.sin(angle)


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


def _micros_text(micros: float) -> str:
    if micros < 1000:
        return f"{micros:.3g} µs"
    return f"{micros / 1000:.3g} ms" if micros < 1e6 else span_text(micros / 1e6)


def _legend(axes: Axes, wide: bool, entries: int) -> None:
    """Beside the figure where there is room, below it where there is none."""
    figure = axes.get_figure()
    assert figure is not None
    if wide:
        figure.legend(loc="outside right upper")
    else:
        figure.legend(loc="outside lower center", ncols=min(2, entries))
