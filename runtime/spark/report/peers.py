"""The figure of who talks to whom: those that talk to many on the right, the others on the left.

In a protocol with servers or brokers nearly every connection has a hub at one end. So the nodes with most connections
are taken as hubs until each connection has one; every line then leads from one side to the other, but for those
between two hubs, and names stand beside their points, one a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.drawing import BAD, LINE, SERIES, SOFT, Figure, draw_figure
from specwire.runtime.spark.report.figures import count_text, short_text
from specwire.runtime.spark.report.found import Edge

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NODES_SHOWN = 24
ROW_INCHES = 0.27
LETTERS_WIDE, LETTERS_NARROW = 34, 14
"""Of a name; so many fit beside the lines."""
ROLES_WIDE, ROLES_NARROW = 8, 3
"""Of the legend, in one line."""
MARGIN = 0.65
"""Room for names on each side, as a share of the distance between the sides."""

Node = tuple[str, str]
"""Name and role."""
Places = Mapping[Node, tuple[float, float]]


def plot_peers(edges: Sequence[Edge]) -> Figure | None:
    """Draw peers and services, joined where they talk; None where there are none.

    The busiest `NODES_SHOWN` are drawn, of each protocol some.
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

    def draw(axes: Axes, wide: bool) -> None:
        _draw_edges(axes, shown, places)
        _draw_nodes(axes, places, LETTERS_WIDE if wide else LETTERS_NARROW)
        _draw_legend(axes, _roles(places), ROLES_WIDE if wide else ROLES_NARROW)
        axes.set_xlim(-MARGIN, 1 + MARGIN)
        axes.set_ylim(rows - 0.4, -0.6)
        axes.axis("off")

    note = "Wide lines carry most octets; dashed ones are calls of a service; red ones had errors."
    if hidden := len(octets) - len(busiest):
        note += f" {count_text(hidden)} quieter ones are left out."
    told = f"{count_text(len(octets))} peers and services, {count_text(len(edges))} directions."
    return draw_figure("peers", "Who talks to whom", note, told, draw, height=0.6 + ROW_INCHES * rows)


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
    """Return nodes of which each pair has one: again and again the one with most of the pairs that have none yet.

    Clients are taken only where both of a pair are.
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
    """Return the places: hubs at x = 1, spread over the rows, the others at x = 0, beside the hubs that they talk to."""
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


def _draw_edges(axes: Axes, edges: Sequence[Edge], places: Places) -> None:
    most = max((edge.octets for edge in edges), default=0) or 1
    for edge in edges:
        source, target = ends_of(edge)
        if source == target:
            continue
        bend = 0.5 if places[source][0] == places[target][0] else 0.05
        style = {
            "arrowstyle": "-|>,head_length=0.35,head_width=0.15",
            "color": BAD if edge.errors else SOFT,
            "linewidth": 0.6 + 2.4 * edge.octets / most,
            "connectionstyle": f"arc3,rad={bend}",
            "shrinkA": 6.0,
            "shrinkB": 6.0,
            "linestyle": "--" if edge.kind == "calls" else "-",
        }
        axes.annotate("", places[target], places[source], arrowprops=style)


def _draw_nodes(axes: Axes, places: Places, letters: int) -> None:
    roles = _roles(places)
    for (name, role), (x, y) in places.items():
        colour = SERIES[roles.index(role) % len(SERIES)]
        axes.plot([x], [y], marker="o", markersize=7, color=colour, markeredgecolor=LINE)
        side, beside = ("right", -0.03) if x == 0 else ("left", 1.03)
        axes.text(beside, y, short_text(name, letters), ha=side, va="center")


def _draw_legend(axes: Axes, roles: Sequence[str], columns: int) -> None:
    for number, role in enumerate(roles):
        axes.plot([], [], marker="o", linestyle="", color=SERIES[number % len(SERIES)], label=role)
    figure = axes.get_figure()
    assert figure is not None
    figure.legend(loc="outside lower center", ncols=min(columns, len(roles)))


def _roles(places: Places) -> list[str]:
    return sorted({role for _, role in places})
