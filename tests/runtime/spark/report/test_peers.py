"""Charts of conversations and of peers: names stay distinct, and what is cut is counted."""

from __future__ import annotations

import re

import pytest
from msgspec import structs

from specwire.runtime.spark.report.findings import Edge, Findings, GraphNode, Total
from specwire.runtime.spark.report.peers import find_hubs, place_nodes, plot_conversations, plot_peers
from tests.runtime.spark.report.findings import FINDINGS
from tests.runtime.spark.report.test_charts import drawn, texts


def test_conversations_of_two_taps_name_their_tap() -> None:
    """One peer that two taps saw is two rows."""
    one = FINDINGS.presences[0]
    other = structs.replace(one, tap="client-1-2")
    findings = Findings(presences=(one, other))
    figure = drawn(plot_conversations(findings, {one.tap: "server", "client-1-2": "client"}))
    rows = [text for text in texts(figure.wide) if ": " in text]
    assert [text.partition(": ")[0] for text in rows] == ["server", "client"]


def test_only_silences_of_conversations_that_are_shown_count() -> None:
    """Three silences are known, one of them in a conversation that is not shown."""
    figure = drawn(plot_conversations(FINDINGS, {}))
    assert figure.description == "2 conversations, 2 silences."
    assert figure.note.endswith("allows. 2 of 3 silences are marked.")


def test_conversations_that_are_not_shown_are_counted() -> None:
    """Of 41 conversations two are shown; of 500 silences two are marked."""
    totals = (Total("filemq", "conversations", 41), Total("filemq", "silences", 500))
    note = drawn(plot_conversations(structs.replace(FINDINGS, totals=totals), {})).note
    assert "2 of 41 conversations are shown." in note
    assert "2 of 500 silences are marked." in note


def test_a_silence_is_as_long_as_it_lasted() -> None:
    """Conversations from 0 s to 9 s: 4 s of silence from 2 s on, and 5 s from 4 s on, to the end."""
    figure = drawn(plot_conversations(FINDINGS, {}))
    [blue, *_] = re.findall(r'<path class="s0" d="M([\d.]+) [\d.]+h([\d.]+)', figure.wide)
    second = float(blue[1]) / 9
    red = re.findall(r'<path class="bad" d="M([\d.]+) [\d.]+h([\d.]+)', figure.wide)
    found = [((float(x) - float(blue[0])) / second, float(width) / second) for x, width in red]
    assert found == [pytest.approx((2, 4), abs=0.02), pytest.approx((4, 5), abs=0.02)]


def test_names_of_any_letters_are_drawn_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    """Unprintable characters are escaped."""
    odd = structs.replace(FINDINGS.presences[0], peer="\u4ea4\u6362 \U0001f600\x1b[31m\0")
    figure = drawn(plot_conversations(Findings(presences=(odd,)), {}))
    assert "\u4ea4\u6362 \U0001f600\\x1b[31m\\x00" in texts(figure.wide)
    assert not list(recwarn)


def test_peers_that_are_not_shown_are_counted() -> None:
    """A hub with 500 clients, of which two are shown; the hub's octets are those of all."""
    nodes = (
        GraphNode("flux", "hub", "S", 5 << 20),
        GraphNode("flux", "a", "C", 9),
        GraphNode("flux", "b", "C", 8),
    )
    edges = tuple(Edge("flux", "messages", name, "C", "hub", "S", 1, 9, 0) for name in "ab")
    totals = (Total("flux", "nodes", 501), Total("flux", "edges", 900))
    figure = drawn(plot_peers(Findings(nodes=nodes, edges=edges, totals=totals)))
    assert figure.note.endswith("3 of 501 peers and services are shown. 2 of 900 directions are shown.")
    assert "<title>hub\nserver, 5.0 MiB sent and received</title>" in figure.wide


def test_hubs_stand_on_one_side() -> None:
    """Two servers with three and two clients: every line has one end on each side, and clients of one are together."""
    one, two = ("one", "server"), ("two", "server")
    clients = [(f"client {number}", "client") for number in range(5)]
    pairs = [(clients[0], two), (clients[1], one), (two, clients[2]), (one, clients[3]), (clients[4], one)]
    assert find_hubs(pairs) == [one, two]
    places = place_nodes({one, two, *clients}, pairs)
    assert {places[one][0], places[two][0]} == {1.0}
    left = sorted(clients, key=lambda node: places[node])
    assert [name for name, _ in left] == ["client 1", "client 3", "client 4", "client 0", "client 2"]
    assert [places[node] for node in left] == [(0.0, row) for row in range(5)]


def test_a_client_is_no_hub_of_those_whom_it_asks() -> None:
    """It talks to three, of whom each talks to it alone; of two clients one has to be."""
    busy = ("busy", "client")
    asked = [(name, "service") for name in ("content", "kvs", "log")]
    assert find_hubs([(busy, service) for service in asked]) == asked
    assert find_hubs([(busy, ("other", "client"))]) == [busy]


def test_a_peer_that_talks_to_itself_is_drawn() -> None:
    edges = (Edge("zre", "messages", "me", "P", "me", "P", 1, 1, 0),)
    assert "me" in texts(drawn(plot_peers(Findings(edges=edges))).wide)


def test_charts_use_the_colours_of_the_page_and_are_reproducible() -> None:
    figures = [drawn(plot_peers(FINDINGS)) for _ in range(2)]
    assert figures[0] == figures[1]
    assert not re.search("#[0-9a-f]{6}", figures[0].wide)
    assert 'class="bad"' in figures[0].wide


def test_curves_between_two_peers_are_inside_the_picture() -> None:
    """They bend by 5 % of their length, and half of that is their height above the straight line."""
    figure = drawn(plot_peers(structs.replace(FINDINGS, nodes=(), edges=FINDINGS.edges[:2])))
    [(_, height)] = re.findall(r'viewBox="0 0 (\d+) (\d+)"', figure.wide)
    curves = re.findall(r'd="M([\d.]+) ([\d.]+)Q[\d.]+ (-?[\d.]+) ([\d.]+) ([\d.]+)" style', figure.wide)
    assert len(curves) == 2
    for start, control, end in ((float(c[1]), float(c[2]), float(c[4])) for c in curves):
        assert 0 < (start + 2 * control + end) / 4 < float(height)
