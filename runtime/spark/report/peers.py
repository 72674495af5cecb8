"""Chart of peers: nodes with many connections on the right, the others on the left.

In a protocol with servers or brokers nearly every connection has a hub at one end. So nodes with
the most connections become hubs until every connection has one. Lines then lead from one side to
the other, except those between two hubs, and each name has its own row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.findings import Edge
from specwire.runtime.spark.report.svg import (
    BAD,
    LETTER,
    NARROW,
    SERIES,
    SOFT,
    WIDE,
    Figure,
    circle,
    draw_figure,
    label,
    number,
    path,
    polygon,
    titled,
)
from specwire.runtime.spark.report.text import count_text, distinct_texts, short_text, size_text

NODES_SHOWN = 24
ROW = 26.0
NAME_LENGTH, NAME_LENGTH_NARROW = 44, 17
"""Maximum length of a name beside the lines, in characters."""

Node = tuple[str, str]
"""Name and role."""
Places = Mapping[Node, tuple[float, float]]


def plot_peers(edges: Sequence[Edge], *, sql: str = "") -> Figure | None:
    """Draw peers and services with the traffic between them; None if there is none.

    Only the busiest `NODES_SHOWN` are drawn.
    """
    if not edges:
        return None
    octets: Counter[Node] = Counter()
    for edge in edges:
        for node in set(ends_of(edge)):
            octets[node] += edge.octets
    busiest = set(_rank(edges, octets)[:NODES_SHOWN])
    shown = [edge for edge in edges if busiest.issuperset(ends_of(edge))]
    places = place_nodes(busiest, [ends_of(edge) for edge in shown])
    rows = max(Counter(x for x, _ in places.values()).values())
    roles = sorted({role for _, role in places})
    colours = {role: SERIES[place % len(SERIES)] for place, role in enumerate(roles)}

    def draw(wide: bool) -> tuple[float, Iterator[str]]:
        return ROW * rows + 8, _draw_graph(shown, places, octets, colours, wide)

    note = "The widest lines carry the most octets; dashed lines are calls of a service; red ones had errors."
    if hidden := len(octets) - len(busiest):
        note += f" {count_text(hidden)} quieter ones are omitted."
    description = f"{count_text(len(octets))} peers and services, {count_text(len(edges))} directions."
    legend = [(colour, role) for role, colour in colours.items()]
    return draw_figure("Who talks to whom", note, description, legend, draw, sql=sql)


def _draw_graph(
    edges: Sequence[Edge], places: Places, octets: Mapping[Node, int], colours: Mapping[str, str], wide: bool
) -> Iterator[str]:
    width = WIDE if wide else NARROW
    nodes = list(places)
    texts = distinct_texts([name for name, _ in nodes], NAME_LENGTH if wide else NAME_LENGTH_NARROW)
    margins = {
        side: 22
        + LETTER
        * max(
            (len(text) for node, text in zip(nodes, texts, strict=True) if places[node][0] == side), default=0
        )
        for side in (0.0, 1.0)
    }
    left, right = margins[0.0], width - margins[1.0]

    def at(node: Node) -> tuple[float, float]:
        x, row = places[node]
        return left + x * (right - left), 4 + ROW * (row + 0.5)

    most = max((edge.octets for edge in edges), default=0) or 1
    for edge in edges:
        source, target = ends_of(edge)
        if source != target:
            yield _edge(edge, at(source), at(target), 0.8 + 3.2 * edge.octets / most)
    for node, text in zip(nodes, texts, strict=True):
        name, role = node
        x, y = at(node)
        anchor, beside = ("end", x - 12) if places[node][0] == 0 else ("start", x + 12)
        title = f"{short_text(name, 120)}\n{role}, {size_text(octets[node])} sent and received"
        yield titled(
            title, circle(x, y, 5, colours[role]), label(beside, y + 4, text, anchor=anchor, kind="ink")
        )


def _edge(edge: Edge, source: tuple[float, float], target: tuple[float, float], width: float) -> str:
    """An arrow that bends to its left, so that two directions lie side by side."""
    across, down = target[0] - source[0], target[1] - source[1]
    length = math.hypot(across, down) or 1.0
    bend = (0.5 if source[0] == target[0] else 0.05) * length
    middle = (
        (source[0] + target[0]) / 2 + down / length * bend,
        (source[1] + target[1]) / 2 - across / length * bend,
    )
    tip_across, tip_down = target[0] - middle[0], target[1] - middle[1]
    tip_length = math.hypot(tip_across, tip_down) or 1.0
    unit = (tip_across / tip_length, tip_down / tip_length)
    tip = (target[0] - 7 * unit[0], target[1] - 7 * unit[1])
    back, half = 6 + width, 2.5 + width / 2
    base = (tip[0] - back * unit[0], tip[1] - back * unit[1])
    wings = [(base[0] - side * half * unit[1], base[1] + side * half * unit[0]) for side in (1, -1)]
    curve = f"M{_point(source)}Q{_point(middle)} {_point(base)}"
    colour = BAD if edge.errors else SOFT
    title = (
        f"{short_text(edge.source, 120)} to {short_text(edge.target, 120)}\n{edge.kind}: {count_text(edge.messages)} messages, "
        f"{size_text(edge.octets)}, {count_text(edge.errors)} errors"
    )
    hit = f'<path class="hit-line" d="{curve}"/>'
    return titled(
        title, hit, path(curve, colour, width, dashed=edge.kind == "calls"), polygon([tip, *wings], colour)
    )


def _point(place: tuple[float, float]) -> str:
    return f"{number(place[0])} {number(place[1])}"


def _rank(edges: Sequence[Edge], octets: Mapping[Node, int]) -> list[Node]:
    """Return the nodes, the busiest of each protocol before the second busiest of any."""
    protocols: dict[str, set[Node]] = {}
    for edge in edges:
        protocols.setdefault(edge.protocol, set()).update(ends_of(edge))
    places: dict[Node, int] = {}
    for nodes in protocols.values():
        for place, node in enumerate(sorted(nodes, key=lambda node: (-octets[node], node))):
            places[node] = min(place, places.get(node, place))
    return sorted(octets, key=lambda node: (places[node], -octets[node], node))


def ends_of(edge: Edge) -> tuple[Node, Node]:
    """Return the nodes that an edge leads from and to."""
    return (
        (edge.source, role_name(edge.protocol, edge.source_role)),
        (edge.target, role_name(edge.protocol, edge.target_role)),
    )


def find_hubs(pairs: Collection[tuple[Node, Node]]) -> list[Node]:
    """Return hubs so that every pair has one.

    Repeatedly the node in most of the pairs without a hub.

    A client becomes a hub only if both ends of a pair are clients.
    """
    left = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    hubs: list[Node] = []
    while left:
        degree = Counter(node for pair in left for node in pair)
        hub = min(degree, key=lambda node: (node[1] == "client", -degree[node], node))
        hubs.append(hub)
        left = {pair for pair in left if hub not in pair}
    return hubs


def place_nodes(
    nodes: Collection[Node], pairs: Collection[tuple[Node, Node]]
) -> dict[Node, tuple[float, float]]:
    """Return places: hubs at x = 1, spread over the rows, the others at x = 0, near their hubs."""
    hubs = find_hubs(pairs)
    ranks: dict[Node, list[int]] = {node: [] for node in nodes if node not in hubs}
    for source, target in pairs:
        for node, other in ((source, target), (target, source)):
            if node in ranks and other in hubs:
                ranks[node].append(hubs.index(other))
    left = sorted(ranks, key=lambda node: (sum(ranks[node]) / max(1, len(ranks[node])), node[1], node))
    rows = max(len(left), len(hubs))
    places = {node: (0.0, _row(number, len(left), rows)) for number, node in enumerate(left)}
    return places | {node: (1.0, _row(number, len(hubs), rows)) for number, node in enumerate(hubs)}


def _row(number: int, among: int, rows: int) -> float:
    """The row of one of `among` that share the height of `rows`."""
    return (number + 0.5) * rows / among - 0.5
