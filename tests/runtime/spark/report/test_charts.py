"""Charts: marks match the counts, every mark has a tooltip, and names stay distinct."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from msgspec import structs

from specwire.runtime.spark.pipeline.summary import UNDECODED, Bucket, Timeline
from specwire.runtime.spark.report.charts import (
    BARS_NARROW,
    merge_buckets,
    plot_conversations,
    plot_latency,
    plot_messages,
)
from specwire.runtime.spark.report.findings import Edge, Findings
from specwire.runtime.spark.report.peers import NODES_SHOWN, find_hubs, place_nodes, plot_peers
from specwire.runtime.spark.report.svg import Figure
from specwire.runtime.spark.report.text import distinct_texts, find_ticks, rate_text
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
    assert plot_conversations(none.presences, none.silences, {}) is None
    assert plot_peers(none.edges) is None


def test_types_beyond_the_colours_are_told_together() -> None:
    """Ten types, eight colours: the seven most frequent, and the three others in one: 1 + 2 + 3."""
    types = {f"Type{number}": number for number in range(1, 11)}
    figure = drawn(plot_messages(Timeline(0.5, (Bucket(0, 55, 0, types),)), BEGIN))
    assert [text for _, text in figure.legend] == [
        *(f"Type{number} {number}" for number in range(10, 3, -1)),
        "others 6",
    ]
    assert "8 types" not in figure.wide and "2 more types" in figure.wide


def test_what_did_not_decode_is_never_among_the_others() -> None:
    """Nine types and one message in ten thousand that did not decode, in the second of three stretches: one mark."""
    types = {f"Type{number}": 10_000 for number in range(9)}
    buckets = (Bucket(0, 1, 0, types), Bucket(1, 1, 0, types | {UNDECODED: 1}), Bucket(2, 1, 0, types))
    figure = drawn(plot_messages(Timeline(60.0, buckets), BEGIN))
    assert [text for _, text in figure.legend][-2:] == ["others 60\N{THIN SPACE}000", "(undecoded) 1"]
    assert figure.legend[-1][0] == "bad"
    assert figure.note == "Red marks: some messages did not decode."
    assert figure.wide.count('<polygon class="bad"') == 1


def test_bars_are_as_high_as_the_counts() -> None:
    """Stretches with 1, 0 and 2 messages: two bars, the second twice as high, with room for one between them."""
    figure = drawn(
        plot_messages(Timeline(1.0, (Bucket(0, 1, 0, {"Nom": 1}), Bucket(2, 2, 0, {"Nom": 2}))), BEGIN)
    )
    bars = re.findall(r'<path class="s0" d="M([\d.]+) [\d.]+h([\d.]+)v([\d.]+)', figure.wide)
    (first_x, first_width, first_height), (second_x, second_width, second_height) = (
        tuple(map(float, bar)) for bar in bars
    )
    assert second_height == pytest.approx(2 * first_height, abs=0.2)
    assert first_width == second_width
    assert second_x - first_x == pytest.approx(2 * (first_width + 1), abs=0.2)


def test_each_bar_says_when_and_how_many() -> None:
    """The third minute from 03:04:05 on has three messages of two types."""
    figure = drawn(plot_messages(Timeline(60.0, (Bucket(2, 3, 0, {"Nom": 2, "Hugz": 1}),)), BEGIN))
    title = "03:06:05 to 03:07:05 UTC\n3 messages\nNom 2\nHugz 1"
    assert f"<title>{title}</title>" in figure.wide
    assert "messages a minute" in texts(figure.wide)


def test_every_mark_has_a_tooltip() -> None:
    """Nothing that stands for a value lies outside a group that begins with a title."""
    figures = [
        plot_messages(Timeline(1.0, (Bucket(0, 1, 0, {"Nom": 1, UNDECODED: 1}),)), BEGIN),
        plot_latency(FINDINGS.latency),
        plot_conversations(FINDINGS.presences, FINDINGS.silences, {}),
        plot_peers(FINDINGS.edges),
    ]
    for figure in map(drawn, figures):
        for svg in (figure.wide, figure.narrow):
            tree = ElementTree.fromstring(svg)
            loose = [item for item in tree if item.tag in ("path", "circle", "polygon", "rect")]
            groups = [item for item in tree if item.tag == "g"]
            assert loose == []
            assert groups and all(group[0].tag == "title" and group[0].text for group in groups)


def test_a_phone_gets_fewer_and_wider_bars() -> None:
    """240 stretches are 60 bars of four; their messages add up."""
    buckets = [Bucket(index, 1, 0, {"Nom": 1}) for index in range(240)]
    figure = drawn(plot_messages(Timeline(60.0, tuple(buckets)), BEGIN))
    assert figure.wide.count('class="bin"') == 240
    assert figure.narrow.count('class="bin"') == BARS_NARROW
    assert "messages in 4 minutes" in texts(figure.narrow)
    assert merge_buckets(buckets[:5], 4) == [Bucket(0, 4, 0, {"Nom": 4}), Bucket(1, 1, 0, {"Nom": 1})]


def test_empty_days_cost_nothing() -> None:
    """A message each at both ends of 200 days: two bars."""
    buckets = (Bucket(0, 1, 0, {"Nom": 1}), Bucket(199, 1, 0, {"Nom": 1}))
    figure = drawn(plot_messages(Timeline(86_400.0, buckets), BEGIN))
    assert figure.wide.count('class="bin"') == 2
    assert len(figure.wide) < 5000


@pytest.mark.parametrize(
    ("width_s", "label"),
    [
        (0.02, "messages in 20 ms"),
        (1, "messages a second"),
        (60, "messages a minute"),
        (600, "messages in 10 minutes"),
        (3600, "messages an hour"),
        (604_800, "messages in 7 days"),
    ],
)
def test_axes_say_the_width_of_a_bar_in_words(width_s: float, label: str) -> None:
    assert rate_text(width_s) == label


def test_names_that_look_alike_once_cut_are_numbered() -> None:
    """Two names that differ only at their ends; a third that is short stays."""
    long = ["a" * 30 + "1", "a" * 30 + "2", "short"]
    assert distinct_texts(long, 12) == [
        "aaaaaa\N{HORIZONTAL ELLIPSIS} #1",
        "aaaaaa\N{HORIZONTAL ELLIPSIS} #2",
        "short",
    ]


def test_conversations_of_two_taps_name_their_tap() -> None:
    """One peer that two taps saw is two rows."""
    one = FINDINGS.presences[0]
    other = structs.replace(one, tap="client-1-2")
    figure = drawn(plot_conversations([one, other], (), {one.tap: "server", "client-1-2": "client"}))
    rows = [text for text in texts(figure.wide) if " at " in text]
    assert [text.rpartition(" at ")[2] for text in rows] == ["server", "client"]


def test_the_median_is_said_in_words() -> None:
    """Of 14 requests the seventh is in the bin 43: 10 ** (43 / 20) is 141 µs."""
    figure = drawn(plot_latency(FINDINGS.latency))
    assert "requests: median about 141 µs" in figure.description
    assert {text for _, text in figure.legend} == {"requests 14", "jobs 4"}


def test_only_silences_of_conversations_that_are_shown_count() -> None:
    figure = drawn(plot_conversations(FINDINGS.presences, FINDINGS.silences, {}))
    assert figure.description == "2 conversations, 2 silences."


def test_names_of_any_letters_are_drawn_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    """Unprintable characters are escaped."""
    odd = structs.replace(FINDINGS.presences[0], peer="\u4ea4\u6362 \U0001f600\x1b[31m\0")
    figure = drawn(plot_conversations([odd], (), {}))
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
    assert "37 quieter ones are omitted" in figure.note


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


def test_charts_use_the_colours_of_the_page_and_are_reproducible() -> None:
    figures = [drawn(plot_peers(FINDINGS.edges)) for _ in range(2)]
    assert figures[0] == figures[1]
    assert not re.search("#[0-9a-f]{6}", figures[0].wide)
    assert 'class="bad"' in figures[0].wide
