"""Charts of peers: their conversations over time, and who talks to whom.

In a protocol with servers or brokers nearly every connection has a hub at one end. So nodes with
the most connections become hubs until every connection has one. Hubs are drawn on the right, the
others on the left. Lines then lead from one side to the other, except those between two hubs, and
each name has its own row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.charts import (
    BAD,
    INK,
    LETTER,
    NARROW,
    SERIES,
    SOFT,
    WIDE,
    Figure,
    Scale,
    draw_figure,
    label,
    number,
    polygon,
    rect,
    time_axis,
    titled,
)
from specwire.runtime.spark.report.findings import Edge, Findings, Presence, Silence
from specwire.runtime.spark.report.text import (
    SILENCES,
    conversation_name,
    count_text,
    distinct_texts,
    join_sentences,
    listed_text,
    moment_text,
    short_text,
    size_text,
    span_text,
)

CONVERSATION_LENGTH = 46
"""Maximum length of the name of a conversation, in characters."""
NODE_LENGTH, NODE_LENGTH_NARROW = 44, 16
"""Maximum length of the name of a node, in characters."""
ROW = 26.0
"""Height of a row of nodes, in pixels."""
MARGIN = 14.0
"""Space for the curves above the first row and below the last one, in pixels."""

Ends = tuple[str, str]
"""Name and role of a node."""


def plot_conversations(findings: Findings, names: Mapping[str, str], *, sql: str = "") -> Figure | None:
    """Draw each conversation from its first to its last message, with its overlong silences.

    `names` has the names of taps. A conversation is labelled with its peer, and with its tap if
    several taps saw the protocol.
    """
    presences, silences = findings.presences, findings.silences
    if not presences:
        return None
    several = len({item.tap for item in presences}) > 1
    texts = distinct_texts(
        [
            conversation_name(item.peer, item.conversation, item.tap, names if several else {})
            for item in presences
        ],
        CONVERSATION_LENGTH,
    )
    rows = [
        (item, text, [gap for gap in silences if _is_within(gap, item)])
        for item, text in zip(presences, texts, strict=True)
    ]

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        row = 22.0 if wide else 32.0
        return row * len(rows) + 46, _conversation_rows(rows, row, wide)

    marked = sum(len(gaps) for _, _, gaps in rows)
    cut = listed_text(len(rows), findings.total("conversations"), "conversations")
    note = join_sentences(
        "A line is a conversation. Red parts show that a side was silent for longer than its protocol allows.",
        f"{cut} They have the longest silences or the most messages." if cut else "",
        listed_text(marked, findings.total("silences"), "silences", "marked"),
    )
    description = f"{count_text(len(rows))} conversations, {count_text(marked)} silences."
    return draw_figure("Conversations and silences", note, description, (), draw, sql=sql)


def _is_within(gap: Silence, item: Presence) -> bool:
    """Return whether a silence began in this part of a conversation, which may have long pauses."""
    same = (gap.tap, gap.conversation) == (item.tap, item.conversation)
    return same and item.first_ts <= gap.ts <= item.last_ts


def _conversation_rows(
    rows: Sequence[tuple[Presence, str, Sequence[Silence]]], height: float, wide: bool
) -> Iterator[str]:
    left = 16 + LETTER * max(len(text) for _, text, _ in rows) if wide else 4.0
    begin = min(item.first_ts for item, _, _ in rows)
    end = max(item.last_ts for item, _, _ in rows)
    span_s = max((end - begin).total_seconds(), 0.001)
    dated = begin.date() != end.date()
    x = Scale(0, span_s, left, (WIDE if wide else NARROW) - 10)

    def at(moment: datetime) -> float:
        return x.at((min(max(moment, begin), end) - begin) / timedelta(seconds=1))

    for place, (item, text, gaps) in enumerate(rows):
        y = height * place + (12 if wide else 22)
        where, anchor = ((left - 10, y + 4), "end") if wide else ((4.0, y - 8), "start")
        times = (moment_text(moment, dated=dated, precise=True) for moment in (item.first_ts, item.last_ts))
        title = (
            f"{short_text(item.peer or item.conversation, 120)}\n"
            f"conversation {short_text(item.conversation, 80)}\ntap {short_text(item.tap, 60)}\n"
            f"{' to '.join(times)} UTC\n{count_text(item.messages)} messages"
        )
        start, width = at(item.first_ts), at(item.last_ts) - at(item.first_ts)
        yield titled(
            title,
            label(*where, text, anchor=anchor, kind=INK),
            rect(start - 3, y - 8, width + 6, 16),
            rect(start, y - 2, max(width, 2), 4, SERIES[0]),
            rect(start - 1, y - 6, 2, 12, INK),
        )
        for gap in gaps:
            since = moment_text(gap.ts, dated=dated, precise=True)
            side = role_name(item.protocol, gap.sender)
            ended = SILENCES.get(gap.outcome, gap.outcome)
            from_x, to_x = at(gap.ts), at(gap.ts + timedelta(seconds=gap.silent_s))
            yield titled(
                f"{side} silent for {span_text(gap.silent_s)} from {since} UTC\n{ended}\n{text}",
                rect(from_x, y - 4, max(to_x - from_x, 2), 8, BAD),
            )
    yield from time_axis(x, begin, height * len(rows) + 4, 8 if wide else 5)


def plot_peers(findings: Findings, *, sql: str = "") -> Figure | None:
    """Draw the busiest peers and services with the traffic between them; None if there is none."""
    edges = findings.edges
    if not edges:
        return None
    octets = {(item.node, role_name(item.protocol, item.role)): item.octets for item in findings.nodes}
    octets |= {ends: 0 for edge in edges for ends in ends_of(edge) if ends not in octets}
    places = place_nodes(octets, [ends_of(edge) for edge in edges])
    rows = max(Counter(x for x, _ in places.values()).values())
    roles = sorted({role for _, role in places})
    colours = {role: SERIES[place % len(SERIES)] for place, role in enumerate(roles)}

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        return ROW * rows + 2 * MARGIN, _draw_graph(edges, places, octets, colours, wide)

    note = join_sentences(
        "Wider lines carry more octets. Dashed lines are calls of a service. Red lines have errors.",
        listed_text(len(octets), findings.total("nodes"), "peers and services"),
        listed_text(len(edges), findings.total("edges"), "directions"),
    )
    description = f"{count_text(len(octets))} peers and services, {count_text(len(edges))} directions."
    legend = [(colour, role or "unknown") for role, colour in colours.items()]
    return draw_figure("Who talks to whom", note, description, legend, draw, sql=sql)


def _draw_graph(
    edges: Sequence[Edge],
    places: Mapping[Ends, tuple[float, float]],
    octets: Mapping[Ends, int],
    colours: Mapping[str, str],
    wide: bool,
) -> Iterator[str]:
    texts = distinct_texts([name for name, _ in places], NODE_LENGTH if wide else NODE_LENGTH_NARROW)
    labels = dict(zip(places, texts, strict=True))
    margins = {side: 22.0 for side in (0.0, 1.0)}
    for node, text in labels.items():
        side = places[node][0]
        margins[side] = max(margins[side], 22 + LETTER * len(text))
    left, right = margins[0.0], (WIDE if wide else NARROW) - margins[1.0]
    points = {
        node: (left + x * (right - left), MARGIN + ROW * (row + 0.5)) for node, (x, row) in places.items()
    }
    most = max(edge.octets for edge in edges) or 1
    widest = min(3.2, 40 / len(edges))
    for edge in edges:
        source, target = ends_of(edge)
        if source != target:
            yield _edge(edge, points[source], points[target], 0.8 + widest * edge.octets / most)
    for node, text in labels.items():
        (name, role), (x, y) = node, points[node]
        anchor, beside = ("end", x - 12) if places[node][0] == 0 else ("start", x + 12)
        title = f"{short_text(name, 120)}\n{role}, {size_text(octets[node])} sent and received"
        circle = f'<circle class="{colours[role]}" cx="{number(x)}" cy="{number(y)}" r="5"/>'
        yield titled(title, circle, label(beside, y + 4, text, anchor=anchor, kind=INK))


def _edge(edge: Edge, source: tuple[float, float], target: tuple[float, float], width: float) -> str:
    """Return an arrow that bends to its left, so that two directions lie side by side."""
    across, down = target[0] - source[0], target[1] - source[1]
    bend = 0.5 if source[0] == target[0] else 0.05
    middle = ((source[0] + target[0]) / 2 + down * bend, (source[1] + target[1]) / 2 - across * bend)
    tip_across, tip_down = target[0] - middle[0], target[1] - middle[1]
    length = math.hypot(tip_across, tip_down) or 1.0
    unit = (tip_across / length, tip_down / length)
    tip = (target[0] - 7 * unit[0], target[1] - 7 * unit[1])
    back, half = 6 + width, 2.5 + width / 2
    base = (tip[0] - back * unit[0], tip[1] - back * unit[1])
    wings = [(base[0] - side * half * unit[1], base[1] + side * half * unit[0]) for side in (1, -1)]
    start, control, end = (f"{number(x)} {number(y)}" for x, y in (source, middle, base))
    curve = f"M{start}Q{control} {end}"
    colour = BAD if edge.errors else SOFT
    dash = "" if edge.kind == "messages" else ' stroke-dasharray="8 5"'
    style = f"fill:none;stroke:var(--{colour})"
    title = (
        f"{short_text(edge.source, 120)} to {short_text(edge.target, 120)}\n{edge.kind}: "
        f"{count_text(edge.messages)} messages, {size_text(edge.octets)}, {count_text(edge.errors)} errors"
    )
    return titled(
        title,
        f'<path class="hit-line" d="{curve}"/>',
        f'<path d="{curve}" style="{style}" stroke-width="{number(width)}"{dash}/>',
        polygon([tip, *wings], colour),
    )


def ends_of(edge: Edge) -> tuple[Ends, Ends]:
    """Return the nodes that an edge leads from and to."""
    return (
        (edge.source, role_name(edge.protocol, edge.source_role)),
        (edge.target, role_name(edge.protocol, edge.target_role)),
    )


def find_hubs(pairs: Collection[tuple[Ends, Ends]]) -> list[Ends]:
    """Return hubs so that every pair has one.

    The next hub is the node in most of the pairs without a hub. A client becomes a hub only if both
    ends of a pair are clients.
    """
    left = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    hubs: list[Ends] = []
    while left:
        degree = Counter(node for pair in left for node in pair)
        hub = min(degree, key=lambda node: (node[1] == "client", -degree[node], node))
        hubs.append(hub)
        left = {pair for pair in left if hub not in pair}
    return hubs


def place_nodes(
    nodes: Collection[Ends], pairs: Collection[tuple[Ends, Ends]]
) -> dict[Ends, tuple[float, float]]:
    """Return places: hubs at x = 1, spread over the rows, the others at x = 0, near their hubs."""
    hubs = find_hubs(pairs)
    ranks: dict[Ends, list[int]] = {node: [] for node in nodes if node not in hubs}
    for source, target in pairs:
        for node, other in ((source, target), (target, source)):
            if node in ranks and other in hubs:
                ranks[node].append(hubs.index(other))
    left = sorted(ranks, key=lambda node: (sum(ranks[node]) / max(1, len(ranks[node])), node[1], node))
    rows = max(len(left), len(hubs))
    return {
        node: (x, (place + 0.5) * rows / len(side) - 0.5)
        for x, side in ((0.0, left), (1.0, hubs))
        for place, node in enumerate(side)
    }
