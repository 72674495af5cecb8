"""The report: right numbers, text from peers that stays text, one file that loads nothing."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import pytest
from msgspec import structs

from specwire.generated import filemq
from specwire.runtime.spark.pipeline.summary import Bucket, Summary, TapCount, Timeline, TypeCount
from specwire.runtime.spark.report.charts import Figure
from specwire.runtime.spark.report.findings import Findings, Total
from specwire.runtime.spark.report.page import (
    MOST_OCTETS,
    View,
    build_view,
    render_report,
)
from specwire.runtime.spark.report.tables import Table
from specwire.runtime.spark.report.text import THIN_SPACE, count_text
from tests.runtime.spark.report.findings import FINDINGS, HOSTILE
from tests.runtime.spark.report.summary import FIRST, LAST, SERVER, SUMMARY


@cache
def drawn_view() -> View:
    """Return what the page shows of all kinds of findings, drawn once."""
    return build_view(SUMMARY, FINDINGS)


@cache
def drawn_page() -> str:
    return render_report(SUMMARY, FINDINGS)


def test_unprintable_characters_of_captured_text_are_escaped() -> None:
    """A browser obeys bidirectional marks, and would show the text after them backwards."""
    hostile = "<script>\n\x1b[2J\x9b\x7f\u202e\u2066\u2028\udc9b"
    topic = structs.replace(FINDINGS.topics[0], topic=hostile)
    errors = (structs.replace(SUMMARY.errors[0], text=hostile),)
    page = render_report(structs.replace(SUMMARY, errors=errors), Findings(topics=(topic,)))
    assert page.encode() and all(line.replace(THIN_SPACE, "").isprintable() for line in page.split("\n"))
    assert page.count(r"&lt;script&gt;\n\x1b[2J\x9b\x7f\u202e\u2066\u2028\udc9b") >= 2


@pytest.mark.parametrize("findings", [Findings(), FINDINGS])
def test_page_is_well_formed_and_stands_alone(findings: Findings) -> None:
    """No script, nothing loaded, and what came from the wire is text; a link leads to a place in the page."""
    page = drawn_page() if findings is FINDINGS else render_report(SUMMARY, findings)
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
    assert len(page.encode()) < MOST_OCTETS
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert not {"script", "link", "img", "iframe", "image"} & tags.seen
    assert not re.search(r"src\s*=|https?://", page)
    targets = re.findall(r'href="([^"]*)"|url\(([^)]*)\)', page)
    assert all(target.startswith("#") for pair in targets for target in pair if target)
    anchors = set(re.findall(r'\bid="([^"]+)"', page))
    assert {target[1:] for pair in targets for target in pair if target} <= anchors
    assert len(re.findall(r'\bid="', page)) == len(anchors)


def test_everything_has_its_section() -> None:
    """What was found is on the page, each under its heading."""
    titles = [section.title for section in drawn_view().chapters[0].sections]
    assert titles == [
        "Messages over time",
        "Messages that did not decode",
        "Violations of the dialogs",
        "Segments with problems",
        "Latency",
        "Slowest topics",
        "Conversations and silences",
        "Longest silences",
        "Who talks to whom",
        "Messages by type and direction",
        "Largest files",
        "Files by conversation",
        "Taps",
    ]


def test_a_violation_leads_to_its_octets() -> None:
    """A NOM whose credit ends after 3 of its 8 octets: signature, number, credit; the fault is at the credit."""
    assert drawn_page().count('id="message-1"') == 1
    [first, second] = drawn_view().chapters[0].messages
    [frame] = first.frames
    assert frame.title == "frame 0, 6 octets"
    assert [(piece.offset, piece.octets, piece.field) for piece in frame.pieces] == [
        ("0", "aa a3", "signature"),
        ("2", "07", "id"),
        ("3", "00 00 01", "credit"),
    ]
    assert [bool(piece.fault) for piece in frame.pieces] == [False, False, True]
    assert "not available" in second.place
    assert drawn_view().chapters[0].note.startswith("2 of 8 violations are shown.")


def test_octets_of_long_fields_are_in_lines() -> None:
    """A chunk of 40 octets: lines of 16, 16 and 8."""
    frames = tuple(filemq.Cheezburger(1, 1, "/a", 0, (), b"x" * 40).encode())
    broken = structs.replace(FINDINGS.violations[0], frames=frames, sizes=tuple(map(len, frames)), sender="S")
    page = render_report(SUMMARY, structs.replace(FINDINGS, violations=(broken,)))
    line = " ".join(["78"] * 16)
    assert f"<td>{line}\n{line}\n{' '.join(['78'] * 8)}</td>" in page


def test_a_silent_capture_gives_a_page() -> None:
    """A tap may have dropped all that it saw, and there may be no tap at all."""
    tap = TapCount(SERVER, "filemq", 0, 0, 0, 7, None, None)
    silent = Summary("c", (tap,), (), (), (), Timeline(1.0, ()), {}, 0.1)
    assert "has no messages" in render_report(silent, Findings())
    assert [section.title for section in build_view(silent, Findings()).chapters[0].sections] == ["Taps"]
    nothing = Summary("c", (), (), (), (), Timeline(1.0, ()), {}, 0.1)
    assert "Captured traffic: nothing" in render_report(nothing, Findings())
    assert build_view(nothing, Findings()).chapters[0].sections == ()


def test_grave_figures_stand_out() -> None:
    """Messages that were dropped or did not decode."""
    kinds = {card.name: card.kind for card in drawn_view().chapters[0].cards}
    assert kinds["dropped"] == kinds["not decoded"] == kinds["violations"] == "grave"
    assert kinds["messages"] == "plain"


def test_faults_lead_to_their_sections() -> None:
    anchors = {card.name: card.anchor for card in drawn_view().chapters[0].cards}
    assert anchors["not decoded"] == "messages-that-did-not-decode"
    assert anchors["violations"] == "violations-of-the-dialogs"
    assert anchors["segments set aside"] == "segments-with-problems"
    assert anchors["messages"] == ""


def test_time_begins_where_the_first_stretch_does() -> None:
    """Stretches of 0.5 s from 1970 on: the first message, at 5.000001 s, is in the one from 5.0 s."""
    [messages, *_] = drawn_view().chapters[0].sections
    assert isinstance(messages.content, Figure)
    assert "seconds from 03:04:05 UTC" in messages.content.wide


def two_protocols() -> Summary:
    """A FILEMQ server and a protocol that no package here knows, in one capture."""
    taps = (*SUMMARY.taps, TapCount("own-1-5f0", "ticker", 5, 50, 0, 0, FIRST, LAST))
    types = (*SUMMARY.types, TypeCount("own-1-5f0", "ticker", "Quote", "P", 5, 50))
    timelines = {"filemq": SUMMARY.timeline, "ticker": Timeline(0.5, (Bucket(0, 5, 50, {"Quote": 5}),))}
    return structs.replace(SUMMARY, taps=taps, types=types, timelines=timelines)


def test_each_protocol_has_its_chapter() -> None:
    """An overview, then the protocols; the contents lead to each; numbers of a chapter are of its protocol."""
    view = build_view(two_protocols(), FINDINGS)
    overview, filemq, ticker = view.chapters
    assert [section.title for section in overview.sections] == [
        "Messages over time",
        "Segments with problems",
        "Taps",
    ]
    assert {section.anchor for section in filemq.sections} >= {"filemq-messages-over-time", "filemq-latency"}
    assert [section.title for section in ticker.sections] == [
        "Messages over time",
        "Messages by type and direction",
    ]
    cards = {card.name: card.number for card in ticker.cards}
    assert (cards["messages"], cards["octets"], cards["not decoded"]) == (5, 50, 0)
    # Without a package its dialogs are unknown: 0 would be wrong.
    assert "violations" not in cards
    assert "counted but not decoded" in ticker.lead
    page = render_report(two_protocols(), FINDINGS)
    assert 'href="#ticker"' in page and 'href="#filemq-latency"' in page


def test_cards_of_the_overview_lead_to_the_chapter_with_the_faults() -> None:
    anchors = {card.name: card.anchor for card in build_view(two_protocols(), FINDINGS).chapters[0].cards}
    assert anchors["not decoded"] == "filemq-messages-that-did-not-decode"
    assert anchors["violations"] == "filemq-violations-of-the-dialogs"


def test_the_card_of_violations_equals_its_table() -> None:
    """One violation in the concurrent reading and seven in the strict one; with cut lists, 40 and 30,000."""
    for concurrent, strict in ((1, 7), (40, 30_000)):
        numbers = {"conversations": 2, "concurrent": concurrent, "strict": strict}
        totals = tuple(Total("filemq", name, number) for name, number in numbers.items())
        view = build_view(SUMMARY, structs.replace(FINDINGS, totals=totals))
        [card] = (card for card in view.chapters[0].cards if card.name == "violations")
        [table] = (section.content for section in view.chapters[0].sections if section.title == card.section)
        assert isinstance(table, Table)
        sums = {
            reading: sum(row[-1] for row in table.values if row[0] == reading)
            for reading in ("concurrent", "strict")
        }
        assert sums == {"concurrent": concurrent, "strict": strict}
        assert (card.number, card.note) == (concurrent, f"strict reading: {count_text(strict)}")


def test_times_of_a_chapter_are_right_if_another_protocol_began_earlier() -> None:
    """FILEMQ begins at 03:04:05.0; the stretches are 0.5 s. Index 9 of the other protocol is 03:04:09.5."""
    summary = two_protocols()
    timelines = summary.timelines | {"ticker": Timeline(0.5, (Bucket(9, 5, 50, {"Quote": 5}),))}
    taps = (*SUMMARY.taps, structs.replace(summary.taps[2], first="2026-01-02T03:04:09.600000+00:00"))
    view = build_view(structs.replace(summary, timelines=timelines, taps=taps), FINDINGS)
    chart = view.chapters[2].sections[0].content
    assert isinstance(chart, Figure)
    assert "<title>03:04:09.500 to 03:04:10.000 UTC\n5 messages\nQuote 5</title>" in chart.wide


def test_long_names_are_cut_and_stay_in_the_tooltip() -> None:
    """A peer may send a topic of ten thousand letters."""
    topic = structs.replace(FINDINGS.topics[0], topic="x" * 10_000)
    page = render_report(SUMMARY, Findings(topics=(topic,)))
    assert "x" * 119 + "…" in page
    assert f'title="{"x" * 400}"' in page
    assert "x" * 401 not in page


def test_a_hostile_capture_stays_below_a_megabyte() -> None:
    """Ten protocols with long names everywhere, 240 bars of nine types, and twenty violations of many frames each."""
    name = "<\u202e&\x1b" * 2500
    types = {f"Type{number}": 10 for number in range(9)} | {"(undecoded)": 1}
    bars = Timeline(60.0, tuple(Bucket(index, 91, 900, types) for index in range(240)))
    protocols = [f"p{number}" for number in range(10)]
    taps = tuple(TapCount(f"t-{n}-5f0", n, 21_840, 1, 0, 0, FIRST, LAST) for n in protocols)
    summary = structs.replace(
        SUMMARY, taps=taps, types=(), errors=(), timeline=bars, timelines=dict.fromkeys(protocols, bars)
    )
    broken = structs.replace(
        FINDINGS.violations[0], frames=(bytes(4096),) * 32, sizes=(4096,) * 32, peer=name
    )
    findings = Findings(
        topics=tuple(structs.replace(FINDINGS.topics[0], protocol=n, topic=name) for n in protocols) * 20,
        presences=tuple(structs.replace(FINDINGS.presences[0], protocol=n, peer=name) for n in protocols)
        * 30,
        violations=tuple(structs.replace(broken, protocol=n) for n in protocols) * 20,
        edges=tuple(
            structs.replace(FINDINGS.edges[0], protocol=n, source=f"{number}{name}")
            for n in protocols
            for number in range(60)
        ),
    )
    page = render_report(summary, findings)
    assert len(page.encode()) < MOST_OCTETS
    assert "\u202e" not in page and "\x1b" not in page and "<\\u" not in page


class _Tags(HTMLParser):
    """Checks that tags close in the order in which they opened."""

    VOID = frozenset({"meta", "!doctype"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
