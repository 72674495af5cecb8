"""Charts of messages and latencies: marks match the counts, and every mark has a tooltip."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from specwire.runtime.spark.pipeline.summary import UNDECODED, Bucket, Timeline
from specwire.runtime.spark.report.charts import (
    BARS_NARROW,
    Figure,
    merge_buckets,
    plot_latency,
    plot_messages,
)
from specwire.runtime.spark.report.findings import Findings
from specwire.runtime.spark.report.peers import plot_conversations, plot_peers
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
    assert plot_conversations(none, {}) is None
    assert plot_peers(none) is None


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
    """The third minute from 03:04:05 on has three messages of two types; the chart begins with it."""
    figure = drawn(plot_messages(Timeline(60.0, (Bucket(2, 3, 0, {"Nom": 2, "Hugz": 1}),)), BEGIN))
    title = "03:06:05 to 03:07:05 UTC\n3 messages\nNom 2\nHugz 1"
    assert f"<title>{title}</title>" in figure.wide
    assert "messages a minute" in texts(figure.wide)


def test_every_mark_has_a_tooltip() -> None:
    """Nothing that stands for a value lies outside a group that begins with a title."""
    figures = [
        plot_messages(Timeline(1.0, (Bucket(0, 1, 0, {"Nom": 1, UNDECODED: 1}),)), BEGIN),
        plot_latency(FINDINGS.latency),
        plot_conversations(FINDINGS, {}),
        plot_peers(FINDINGS),
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


def test_the_median_is_said_in_words() -> None:
    """Of 14 requests the seventh is in the bin 43: 10 ** (43 / 20) is 141 µs."""
    figure = drawn(plot_latency(FINDINGS.latency))
    assert figure.note.startswith("14 requests; the median is about 141 µs.")
    assert "<title>141 µs to 158 µs\n10 requests</title>" in figure.wide


def test_a_chart_begins_with_its_first_bar() -> None:
    """Stretches are counted from the whole capture's begin; this protocol starts 9 stretches of 0.5 s later."""
    figure = drawn(
        plot_messages(Timeline(0.5, (Bucket(9, 1, 0, {"Nom": 1}), Bucket(10, 1, 0, {"Nom": 1}))), BEGIN)
    )
    assert "<title>03:04:09.500 to 03:04:10.000 UTC\n1 messages\nNom 1</title>" in figure.wide
    assert "seconds from 03:04:09.500 UTC" in texts(figure.wide)
    [first, second] = re.findall(r'<path class="s0" d="M([\d.]+) [\d.]+h([\d.]+)v', figure.wide)
    assert float(second[0]) == pytest.approx(float(first[0]) + float(first[1]) + 1, abs=0.2)


def test_a_single_latency_does_not_fill_the_chart() -> None:
    """Its bin is a twentieth of a decade, and the axis has at least a decade."""
    figure = drawn(plot_latency(FINDINGS.latency[:1]))
    [width] = re.findall(r'<path class="s0" d="M[\d.]+ [\d.]+h([\d.]+)v', figure.wide)
    [axis] = re.findall(r'<line class="axis" x1="([\d.]+)" y1="206" x2="([\d.]+)" y2="206"', figure.wide)
    assert float(width) == pytest.approx((float(axis[1]) - float(axis[0])) / 20 - 0.5, abs=0.1)
