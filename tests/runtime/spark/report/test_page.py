"""The report: right numbers, text from peers that stays text, one file that loads nothing."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser

import pytest
from msgspec import structs

from specwire.runtime.spark.pipeline.summary import (
    Bucket,
    ErrorCount,
    Segments,
    SetAside,
    Summary,
    TapCount,
    Timeline,
    Transfer,
    TypeCount,
)
from specwire.runtime.spark.report.findings import Findings
from specwire.runtime.spark.report.page import (
    MOST_OCTETS,
    RAW_SHOWN,
    View,
    build_view,
    choose_violations,
    render_report,
)
from specwire.runtime.spark.report.svg import Figure
from specwire.runtime.spark.report.tables import (
    TAPS_SHOWN,
    error_table,
    short_names,
    silence_table,
    tap_table,
    topic_table,
    type_table,
    violation_table,
)
from specwire.runtime.spark.report.text import THIN_SPACE, count_text, size_text, span_text
from tests.runtime.spark.report.findings import FINDINGS, HOSTILE, TAP

SERVER, CLIENT = "server-10-5f0", "client-11-5f1"
FIRST, LAST = "2026-01-02T03:04:05.000001+00:00", "2026-01-02T03:04:07.500001+00:00"

SUMMARY = Summary(
    capture="captures/today",
    taps=(
        TapCount(SERVER, "filemq", 1202, 4096, 1, 3, FIRST, LAST),
        TapCount(CLIENT, "filemq", 1, 11, 0, 0, FIRST, FIRST),
    ),
    types=(
        TypeCount(SERVER, "filemq", None, "C", 1, 6),
        TypeCount(SERVER, "filemq", "Nom", "C", 1201, 4090),
        TypeCount(CLIENT, "filemq", "Nom", "C", 1, 11),
    ),
    errors=(ErrorCount(SERVER, "filemq", "NOM", "credit", "length", HOSTILE, 1),),
    transfers=(Transfer(SERVER, "filemq", "c1", HOSTILE, 5, 4, 1, 90, 5 << 20, 2.5),),
    timeline=Timeline(0.5, (Bucket(0, 3, 30, {"Nom": 2, "(undecoded)": 1}), Bucket(4, 6, 10, {"Nom": 6}))),
    tables={"filemq/tables/Nom": 1202},
    elapsed_s=1.5,
    segments=Segments(
        read=2, quarantined=1, told=(SetAside(1, "cut.parquet", "quarantined", f"cut off {HOSTILE}"),)
    ),
)


@cache
def drawn_view() -> View:
    """Return what the page shows of all kinds of findings, drawn once."""
    return build_view(SUMMARY, FINDINGS)


@cache
def drawn_page() -> str:
    return render_report(SUMMARY, FINDINGS)


def test_types_are_counted_for_each_tap() -> None:
    """With few taps each has its column; the last ones are the sum and the octets."""
    table = type_table(SUMMARY)
    assert table.head == ("Message", "Sent by", "server", "client", "All taps", "Octets")
    assert table.rows == (
        ("Nom", "client", f"1{THIN_SPACE}201", "1", f"1{THIN_SPACE}202", "4.0 KiB"),
        ("(undecoded)", "client", "1", "0", "1", "6 B"),
    )
    assert table.kinds == ("word", "word", "figure", "figure", "figure", "figure")
    narrow = type_table(SUMMARY, by_tap=False)
    assert narrow.head == ("Message", "Sent by", "Messages", "Octets")
    assert narrow.rows[0] == ("Nom", "client", f"1{THIN_SPACE}202", "4.0 KiB")


def test_several_protocols_have_a_column() -> None:
    """One has none: it stands in the title."""
    other = TypeCount(CLIENT, "libfilemq", "Nom", "C", 2, 22)
    tap = TapCount(CLIENT, "libfilemq", 2, 22, 0, 0, FIRST, LAST)
    both = structs.replace(SUMMARY, types=(*SUMMARY.types, other), taps=(*SUMMARY.taps, tap))
    table = type_table(both)
    assert table.head[:3] == ("Protocol", "Message", "Sent by")
    assert ("libfilemq", "Nom", "client", "", "2", "2", "22 B") in table.rows


def test_unprintable_characters_of_captured_text_are_escaped() -> None:
    """A browser obeys bidirectional marks, and would show the text after them backwards."""
    hostile = "<script>\n\x1b[2J\x9b\x7f\u202e\u2066\u2028\udc9b"
    topic = structs.replace(FINDINGS.topics[0], topic=hostile)
    errors = (structs.replace(SUMMARY.errors[0], text=hostile),)
    page = render_report(structs.replace(SUMMARY, errors=errors), Findings(topics=(topic,)))
    assert page.encode() and all(line.replace(THIN_SPACE, "").isprintable() for line in page.split("\n"))
    assert page.count(r"&lt;script&gt;\n\x1b[2J\x9b\x7f\u202e\u2066\u2028\udc9b") >= 2


def test_errors_name_their_tap() -> None:
    """The finding is the sentence of the decoder."""
    assert error_table(SUMMARY).rows == ((HOSTILE, "length", "server", "1"),)


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
    titles = [section.title for section in drawn_view().sections]
    assert titles == [
        "Messages over time",
        "Messages that did not decode",
        "Violations of the dialogs",
        "Segments set aside",
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
    """A NOM whose credit ends after 3 of its 8 octets: signature, number, credit; the fault stands with the credit."""
    page = drawn_page()
    assert page.count('href="#message-1"') == page.count('id="message-1"') == 1
    [first, second] = drawn_view().chapters[0].messages
    [frame] = first.frames
    assert frame.title == "frame 0, 6 octets"
    assert [(piece.offset, piece.octets, piece.field) for piece in frame.pieces] == [
        ("0", "aa a3", "signature"),
        ("2", "07", "id"),
        ("3", "00 00 01", "credit"),
    ]
    assert [bool(piece.fault) for piece in frame.pieces] == [False, False, True]
    assert "not available" in second.note


def test_rare_violations_are_not_behind_many_alike() -> None:
    """Forty that are alike, then one of another kind: it is the last of the twenty. Of thirty others, ten are shown."""
    alike, other = FINDINGS.violations
    many = [structs.replace(alike, seq=number) for number in range(40)]
    assert [item.seq for item in choose_violations([*many, other])] == [*range(RAW_SHOWN - 1), other.seq]
    others = [structs.replace(other, seq=100 + number) for number in range(30)]
    assert [item.seq for item in choose_violations([*many, *others])] == [*range(10), *range(100, 110)]


def test_a_silent_capture_gives_a_page() -> None:
    """A tap may have dropped all that it saw, and there may be no tap at all."""
    tap = TapCount(SERVER, "filemq", 0, 0, 0, 7, None, None)
    silent = Summary("c", (tap,), (), (), (), Timeline(1.0, ()), {}, 0.1)
    assert "has no messages" in render_report(silent, Findings())
    assert [section.title for section in build_view(silent, Findings()).sections] == ["Taps"]
    nothing = Summary("c", (), (), (), (), Timeline(1.0, ()), {}, 0.1)
    assert "Captured traffic: nothing" in render_report(nothing, Findings())
    assert build_view(nothing, Findings()).sections == ()


def test_grave_figures_stand_out() -> None:
    """Messages that were dropped or did not decode."""
    kinds = {card.name: card.kind for card in drawn_view().chapters[0].cards}
    assert kinds["dropped"] == kinds["not decoded"] == kinds["violations"] == "grave"
    assert kinds["messages"] == "plain"


def test_faults_lead_to_their_sections() -> None:
    anchors = {card.name: card.anchor for card in drawn_view().chapters[0].cards}
    assert anchors["not decoded"] == "messages-that-did-not-decode"
    assert anchors["violations"] == "violations-of-the-dialogs"
    assert anchors["segments set aside"] == "segments-set-aside"
    assert anchors["messages"] == ""


def test_time_begins_where_the_first_stretch_does() -> None:
    """Stretches of 0.5 s from 1970 on: the first message, at 5.000001 s, is in the one from 5.0 s."""
    [messages, *_] = drawn_view().sections
    assert isinstance(messages.content, Figure)
    assert "seconds from 03:04:05 UTC" in messages.content.wide


def test_tasks_are_told_with_their_service() -> None:
    table = topic_table(FINDINGS)
    assert table is not None
    assert [row[0] for row in table.rows] == [HOSTILE, "netbox: sync", "(files)"]


def test_violations_of_the_concurrent_reading_come_first() -> None:
    """Peers that do not wait for each other break the strict one by the thousand, and no harm is done."""
    counts = tuple(reversed(FINDINGS.violation_counts))
    table = violation_table(structs.replace(FINDINGS, violation_counts=counts))
    assert table is not None
    assert [row[2] for row in table.rows] == ["concurrent", "strict"]


def test_silences_tell_who_and_for_how_long() -> None:
    """The conversation where the peer has no name; times alone where all are of one day."""
    table = silence_table(FINDINGS, {})
    assert table is not None
    assert table.rows[:2] == (
        ("c1", TAP, "client", "03:04:07.000", "spoke again", "4.0 s"),
        (HOSTILE, TAP, "server", "03:04:09.000", "silent to the end", "5.0 s"),
    )


def test_missing_messages_have_a_column_where_there_are_any() -> None:
    assert tap_table(SUMMARY).head[-1] == "Dropped"
    gap = structs.replace(SUMMARY.taps[0], missing=12, last="2026-01-03T00:00:00.000000+00:00")
    table = tap_table(structs.replace(SUMMARY, taps=(gap,)))
    assert table.head[-1] == "Missing"
    assert table.rows[0][2:4] == ("2026-01-02 03:04:05", "2026-01-03 00:00:00")
    assert table.rows[0][-1] == "12"


def test_many_taps_are_bounded_and_those_with_faults_stay() -> None:
    """A hundred peers that were started once each; the one that dropped messages saw least."""
    many = [TapCount(f"peer-{n}-5f0", "filemq", 1000 + n, 1, 0, 0, FIRST, LAST) for n in range(99)]
    table = tap_table(
        structs.replace(SUMMARY, taps=(TapCount("worst-1-5f0", "filemq", 1, 1, 0, 7, FIRST, LAST), *many))
    )
    assert len(table.rows) == TAPS_SHOWN
    assert [row[0] for row in table.rows[:2]] == ["worst-1-5f0", "peer-60-5f0"]
    assert table.note == "60 more are in summary.json."


def test_taps_of_one_name_show_their_ids() -> None:
    """A name is shown only where it is enough."""
    assert short_names([SERVER, CLIENT]) == {SERVER: "server", CLIENT: "client"}
    twins = ["peer-1-a", "peer-2-b", "odd"]
    assert short_names(twins) == {"peer-1-a": "peer-1-a", "peer-2-b": "peer-2-b", "odd": "odd"}


@pytest.mark.parametrize(
    ("octets", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 50, "3072.0 TiB")],
)
def test_sizes(octets: int, text: str) -> None:
    """Powers of 1024."""
    assert size_text(octets) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0125, "12 ms"),
        (1, "1.0 s"),
        (119.9, "119.9 s"),
        (125, "2 min 5 s"),
        (7290, "2 h 1 min"),
        (266_400, "3 d 2 h"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    """In the units that suit the length."""
    assert span_text(seconds) == text


def test_counts_have_their_thousands_apart() -> None:
    """By a thin space, which no reader takes for a decimal point."""
    assert count_text(1234567) == f"1{THIN_SPACE}234{THIN_SPACE}567"


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
        "Segments set aside",
        "Taps",
    ]
    assert {section.anchor for section in filemq.sections} >= {"filemq-messages-over-time", "filemq-latency"}
    assert [section.title for section in ticker.sections] == [
        "Messages over time",
        "Messages that did not decode",
        "Messages by type and direction",
    ]
    cards = {card.name: card.number for card in ticker.cards}
    assert (cards["messages"], cards["octets"], cards["not decoded"]) == (5, 50, 0)
    assert "counted but not decoded" in ticker.lead
    page = render_report(two_protocols(), FINDINGS)
    assert 'href="#ticker"' in page and 'href="#filemq-latency"' in page


def test_cards_of_the_overview_lead_to_the_chapter_with_the_faults() -> None:
    anchors = {card.name: card.anchor for card in build_view(two_protocols(), FINDINGS).chapters[0].cards}
    assert anchors["not decoded"] == "filemq-messages-that-did-not-decode"
    assert anchors["violations"] == "filemq-violations-of-the-dialogs"


def test_the_card_of_violations_names_its_reading() -> None:
    """One in the concurrent reading, seven in the strict one; the table's note has both."""
    [card] = (card for card in drawn_view().chapters[0].cards if card.name == "violations")
    assert (card.number, card.note) == (1, "concurrent reading; strict: 7")
    table = violation_table(FINDINGS)
    assert table is not None
    assert table.note.startswith("1 concurrent, 7 strict.")


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
