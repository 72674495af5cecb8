"""The figures: what is drawn is what was counted, in text that a page can hold twice."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from msgspec import structs

from specwire.runtime.spark.pipeline.summary import UNDECODED, Bucket, Timeline
from specwire.runtime.spark.report.drawing import Figure
from specwire.runtime.spark.report.found import Edge, Findings
from specwire.runtime.spark.report.peers import NODES_SHOWN, find_hubs, place_nodes, plot_peers
from specwire.runtime.spark.report.plots import plot_heartbeats, plot_latency, plot_messages
from specwire.runtime.spark.report.times import find_ticks
from tests.runtime.spark.report.findings import BEGIN, FINDINGS


def texts(svg: str) -> list[str]:
    """Return the words in a drawing; it must be well-formed."""
    return ["".join(item.itertext()) for item in ElementTree.fromstring(svg).iter() if item.tag == "text"]


def drawn(figure: Figure | None) -> Figure:
    """Return a figure that is there."""
    assert figure is not None
    return figure


def test_nothing_is_drawn_of_nothing() -> None:
    none = Findings()
    assert plot_messages(Timeline(1.0, ()), BEGIN) is None
    assert plot_latency(none.latency) is None
    assert plot_heartbeats(none.presences, none.silences) is None
    assert plot_peers(none.edges) is None


def test_types_beyond_the_colours_are_told_together() -> None:
    """Ten types, eight colours: the seven most frequent, and the three others in one: 1 + 2 + 3."""
    types = {f"Type{number}": number for number in range(1, 11)}
    figure = drawn(plot_messages(Timeline(0.5, (Bucket(0, 55, 0, types),)), BEGIN))
    legend = [text for text in texts(figure.wide) if re.match(r"Type|others", text)]
    assert legend == [*(f"Type{number} {number}" for number in range(10, 3, -1)), "others 6"]


def test_what_did_not_decode_is_never_among_the_others() -> None:
    """Nine types and one message in ten thousand that did not decode, in the second of three stretches: one mark."""
    types = {f"Type{number}": 10_000 for number in range(9)}
    buckets = (Bucket(0, 1, 0, types), Bucket(1, 1, 0, types | {UNDECODED: 1}), Bucket(2, 1, 0, types))
    figure = drawn(plot_messages(Timeline(60.0, buckets), BEGIN))
    legend = [text for text in texts(figure.wide) if re.match(r"Type|others|\(und", text)]
    assert legend[-2:] == ["others 60\N{THIN SPACE}000", "(undecoded) 1"]
    assert figure.note == "Red marks stand where messages did not decode."
    marks = re.findall(r'<use [^>]*x="([\d.]+)"[^>]*fill: var\(--bad\)', figure.wide)
    assert len(marks) == 1


def test_stretches_are_as_high_as_what_was_counted() -> None:
    """Stretches with 1, 0, and 2 messages: steps at one and two thirds of the height; what is between is empty."""
    figure = drawn(
        plot_messages(Timeline(1.0, (Bucket(0, 1, 0, {"Nom": 1}), Bucket(2, 2, 0, {"Nom": 2}))), BEGIN)
    )
    found = re.search(r'<path d="([^"]*)"[^>]*clip-path[^>]*style="fill: var\(--series-0\)', figure.wide)
    assert found is not None
    heights = [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", found[1])]
    ground = max(heights)
    levels = sorted({round(ground - height) for height in heights})
    low, middle, high = levels
    assert low == 0
    assert abs(high - 2 * middle) <= 1


def test_the_median_is_said_in_words() -> None:
    """Of 14 requests the seventh is in the bin 43: 10 ** (43 / 20) is 141 µs."""
    figure = drawn(plot_latency(FINDINGS.latency))
    assert "requests: median about 141 µs" in figure.description
    assert {"requests 14", "jobs 4"} <= set(texts(figure.wide))


def test_only_silences_of_conversations_that_are_shown_count() -> None:
    figure = drawn(plot_heartbeats(FINDINGS.presences, FINDINGS.silences))
    assert figure.description == "2 conversations, 2 silences."


def test_names_of_any_letters_are_drawn_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    """Unprintable characters are escaped."""
    odd = structs.replace(FINDINGS.presences[0], peer="\u4ea4\u6362 \U0001f600\x1b[31m\0")
    figure = drawn(plot_heartbeats([odd], ()))
    assert "\u4ea4\u6362 \U0001f600\\x1b[31m\\x00" in texts(figure.wide)
    assert not list(recwarn)


def test_the_busiest_peers_are_shown_and_the_others_counted() -> None:
    edges = tuple(
        Edge("flux", "messages", f"peer-{number:03}", "C", "hub", "S", 1, 1000 - number, 0)
        for number in range(60)
    )
    figure = drawn(plot_peers(edges))
    named = {text for text in texts(figure.wide) if text.startswith("peer-") or text == "hub"}
    assert named == {"hub", *(f"peer-{number:03}" for number in range(NODES_SHOWN - 1))}
    assert "37 quieter ones are left out" in figure.note


def test_each_protocol_has_its_busiest_among_the_peers() -> None:
    """Forty FILEMQ peers carry more than the only Flux connection."""
    edges = [
        Edge("filemq", "messages", f"peer-{number:03}", "C", "files", "S", 1, 1 << 30, 0)
        for number in range(40)
    ]
    figure = drawn(plot_peers([*edges, Edge("flux", "messages", "child", "C", "broker", "S", 1, 9, 0)]))
    assert {"child", "broker", "files"} <= set(texts(figure.wide))


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
    figure = drawn(plot_peers([Edge("zre", "messages", "me", "P", "me", "P", 1, 1, 0)]))
    assert "me" in texts(figure.wide)


@pytest.mark.parametrize(
    ("begin", "span_s", "labels"),
    [
        ("2026-05-28T21:00:00", 6 * 3600, ["21:00", "22:00", "23:00", "05-29", "01:00", "02:00", "03:00"]),
        ("2026-05-28T21:59:50", 150, ["22:00:00", "22:00:30", "22:01:00", "22:01:30", "22:02:00"]),
        ("2026-05-28T21:00:00", 3 * 86_400, ["05-29", "12:00", "05-30", "12:00", "05-31", "12:00"]),
    ],
)
def test_ticks_are_round_moments(begin: str, span_s: float, labels: list[str]) -> None:
    moment = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    found = list(find_ticks(moment, span_s, 9))
    assert [text for _, text in found] == labels
    assert all(0 <= seconds <= span_s for seconds, _ in found)


def test_ticks_of_any_stretch_are_few() -> None:
    """A clock that was set wrong makes a capture fifty years long."""
    assert len(list(find_ticks(datetime(1970, 1, 1, tzinfo=UTC), 50 * 365 * 86_400, 9))) <= 10
    assert list(find_ticks(BEGIN, 0.0, 9)) == []


def test_drawings_take_the_colours_of_the_page_and_are_the_same_each_time() -> None:
    figures = [drawn(plot_peers(FINDINGS.edges)) for _ in range(2)]
    assert figures[0] == figures[1]
    assert not re.search("#[0-9a-f]{6}", figures[0].wide)
    assert "var(--bad)" in figures[0].wide
