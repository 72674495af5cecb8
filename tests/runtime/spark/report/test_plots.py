"""The figures: what is drawn is what was counted, in text that a page can hold twice."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from msgspec import structs

from specwire.runtime.spark.pipeline.summary import Bucket, Timeline
from specwire.runtime.spark.report.drawing import Figure
from specwire.runtime.spark.report.found import Edge, Findings
from specwire.runtime.spark.report.plots import (
    NODES_SHOWN,
    plot_heartbeats,
    plot_latency,
    plot_messages,
    plot_peers,
)
from tests.runtime.spark.report.findings import FINDINGS


def texts(svg: str) -> list[str]:
    """Return the words in a drawing; it must be well-formed."""
    return ["".join(item.itertext()) for item in ElementTree.fromstring(svg).iter() if item.tag == "text"]


def drawn(figure: Figure | None) -> Figure:
    """Return a figure that is there."""
    assert figure is not None
    return figure


def test_nothing_is_drawn_of_nothing() -> None:
    none = Findings()
    assert plot_messages(Timeline(1.0, ())) is None
    assert plot_latency(none.latency) is None
    assert plot_heartbeats(none.presences, none.silences) is None
    assert plot_peers(none.edges) is None


def test_types_beyond_the_colours_are_told_together() -> None:
    """Ten types, eight colours: the seven most frequent, and the three others in one: 1 + 2 + 3."""
    types = {f"Type{number}": number for number in range(1, 11)}
    figure = drawn(plot_messages(Timeline(0.5, (Bucket(0, 55, 0, types),))))
    legend = [text for text in texts(figure.wide) if re.match(r"Type|others", text)]
    assert legend == [*(f"Type{number} {number}" for number in range(10, 3, -1)), "others 6"]


def test_bars_are_as_high_as_what_was_counted() -> None:
    """Two stretches, 1 and 2 messages: the second bar is twice the first."""
    figure = drawn(plot_messages(Timeline(1.0, (Bucket(0, 1, 0, {"Nom": 1}), Bucket(1, 2, 0, {"Nom": 2})))))
    heights = []
    for path in re.findall(
        r'<path d="([^"]*)"[^>]*clip-path[^>]*style="fill: var\(--series-0\)"', figure.wide
    ):
        ys = [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", path)]
        heights.append(max(ys) - min(ys))
    first, second = heights
    assert abs(second - 2 * first) < 0.01


def test_the_median_is_said_in_words() -> None:
    """Of 14 requests the seventh is in the bin 43: 10 ** (43 / 20) is 141 µs."""
    figure = drawn(plot_latency(FINDINGS.latency))
    assert "requests: median about 141 µs" in figure.description
    assert {"requests 14", "jobs 4"} <= set(texts(figure.wide))


def test_only_silences_of_conversations_that_are_shown_count() -> None:
    figure = drawn(plot_heartbeats(FINDINGS.presences, FINDINGS.silences))
    assert figure.description == "2 conversations, 2 silences."


def test_names_of_any_letters_are_drawn_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    """What is no letter is a dot."""
    odd = structs.replace(FINDINGS.presences[0], peer="\u4ea4\u6362 \U0001f600\x1b[31m\0")
    figure = drawn(plot_heartbeats([odd], ()))
    assert "\u4ea4\u6362 \U0001f600\u00b7[31m\u00b7" in texts(figure.wide)
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


def test_drawings_take_the_colours_of_the_page_and_are_the_same_each_time() -> None:
    figures = [drawn(plot_peers(FINDINGS.edges)) for _ in range(2)]
    assert figures[0] == figures[1]
    assert not re.search("#[0-9a-f]{6}", figures[0].wide)
    assert "var(--bad)" in figures[0].wide
