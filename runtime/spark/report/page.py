"""The report: one HTML file without scripts that loads nothing.

This module turns the summary and the findings into values for the template. Text from captured
traffic (peers, findings, octets) is plain text to the template, which escapes it; the SVG charts
are escaped where they are drawn. A capture of several protocols gives an overview and a chapter for
each protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import jinja2
import msgspec
from markupsafe import Markup, escape
from msgspec.structs import replace

from specwire.runtime.log.text import show
from specwire.runtime.spark.answers.durations import PER_DECADE
from specwire.runtime.spark.answers.protocol_specifics import takes_time
from specwire.runtime.spark.pipeline.counts import STRETCHES
from specwire.runtime.spark.pipeline.summary import Bucket, Summary, Timeline
from specwire.runtime.spark.protocols import known_protocols, role_name
from specwire.runtime.spark.report.charts import SERIES, Figure, plot_latency, plot_messages
from specwire.runtime.spark.report.findings import (
    BINS_PER_DECADE,
    READINGS,
    VIOLATIONS_KEPT,
    Findings,
    Tables,
    Violation,
    collect,
)
from specwire.runtime.spark.report.peers import plot_conversations, plot_peers
from specwire.runtime.spark.report.tables import (
    ERRORS_TITLE,
    SEGMENTS_TITLE,
    TEMPLATES,
    VIOLATIONS_TITLE,
    Table,
    error_table,
    file_table,
    protocols_of,
    query,
    segment_table,
    silence_table,
    tap_table,
    topic_table,
    transfer_table,
    type_table,
    violation_table,
)
from specwire.runtime.spark.report.text import (
    EPOCH,
    THIN_SPACE,
    RawFrame,
    count_text,
    dump_frames,
    join_sentences,
    listed_text,
    rate_text,
    short_names,
    size_text,
    span_text,
)

MOST_OCTETS = 1_000_000
"""Maximum size of the page; a larger page is made again with less detail."""


class Detail(NamedTuple):
    """Limits for each protocol: raw messages, bars over time, and chapters."""

    raw: int = VIOLATIONS_KEPT
    bars: int = STRETCHES
    chapters: int = 12


DETAILS = (
    Detail(),
    Detail(raw=8),
    Detail(raw=5, bars=STRETCHES // 2),
    Detail(raw=0, bars=60),
    Detail(raw=0, bars=60, chapters=4),
    Detail(raw=0, bars=60, chapters=1),
)
"""Levels of detail, most first."""
CARDS_IN_ROW = 6
CELL_LENGTH, CELL_TITLE_LENGTH = 120, 400
"""Maximum length of a table cell, and of its tooltip if the cell is cut, in characters."""

NO_FRAMES = (
    "Its octets are not available: the layer of captured frames is missing, or the tap keeps no payloads."
)


class Card(msgspec.Struct, frozen=True):
    """One figure of the head of the page or of a chapter.

    Attributes:
        number: the value that `sql` returns; None if there is no query.
        section: title of the section that explains a number that indicates a problem.
        note: a line below the number.
        anchor: of that section; empty if the number indicates no problem.
    """

    name: str
    value: str
    number: int | None = None
    sql: str = ""
    section: str = ""
    note: str = ""
    anchor: str = ""

    @property
    def kind(self) -> str:
        """The style: ``grave`` if the number indicates a problem."""
        return "grave" if self.section and self.number else "plain"


class Section(msgspec.Struct, frozen=True):
    """A figure or a table with its heading."""

    anchor: str
    title: str
    content: Figure | Table


class RawMessage(msgspec.Struct, frozen=True):
    """One violation: time, place, sentence, and the frames of the message."""

    anchor: str
    time: str
    place: str
    text: str
    frames: tuple[RawFrame, ...]


class Chapter(msgspec.Struct, frozen=True):
    """The overview, which has no title, or one protocol.

    `note` says which violations `messages` are.
    """

    title: str
    lead: str
    cards: tuple[Card, ...]
    sections: tuple[Section, ...]
    messages: tuple[RawMessage, ...] = ()
    note: str = ""

    @property
    def columns(self) -> int:
        """Cards in a row, so that rows are equally long."""
        rows = -(-len(self.cards) // CARDS_IN_ROW) or 1
        return -(-len(self.cards) // rows)


class View(msgspec.Struct, frozen=True):
    """Everything that the template shows."""

    title: str
    lead: str
    chapters: tuple[Chapter, ...]
    series: tuple[str, ...] = SERIES


def draw_report(summary: Summary, tables: Tables) -> str:
    """Return the report of a pipeline's output; `tables` reads an answer, or the frames, by name."""
    return render_report(summary, collect(tables))


def render_report(summary: Summary, findings: Findings, *, most_octets: int = MOST_OCTETS) -> str:
    """Return the report as HTML, with less detail if it would exceed `most_octets`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_escape_unprintable,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["lines"] = _escape_lines
    environment.tests["figure"] = lambda content: isinstance(content, Figure)
    template = environment.get_template("report.html.j2")
    page = ""
    for detail in DETAILS:
        view = build_view(summary, findings, detail)
        page = template.render(view=view, cell_length=CELL_LENGTH, title_length=CELL_TITLE_LENGTH)
        if len(page.encode()) <= most_octets:
            break
    return page


def _escape_unprintable(value: object) -> object:
    """Escape unprintable characters of a text from captured traffic; keep markup."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return show(value, keep=THIN_SPACE)


def _escape_lines(text: str) -> Markup:
    """Escape a text with several lines, such as a query."""
    return Markup(escape(show(text, keep="\n")))


def build_view(summary: Summary, findings: Findings, detail: Detail = DETAILS[0]) -> View:
    """Return the values for the template of the page."""
    protocols = protocols_of(summary)
    starts = [tap.first for tap in summary.taps if tap.first]
    ends = [tap.last for tap in summary.taps if tap.last]
    begin = min(map(datetime.fromisoformat, starts), default=EPOCH)
    # Stretches of time are counted from 1970.
    width = timedelta(seconds=summary.timeline.width_s)
    origin = EPOCH + (begin - EPOCH) // width * width
    lead = f"Capture {summary.capture} has no messages."
    if starts:
        first, last = (text[:19].replace("T", " ") for text in (min(starts), max(ends)))
        lead = f"Capture {summary.capture}, from {first} to {last} UTC."
    if len({tap.tap for tap in summary.taps}) > 1:
        lead += " A message that two taps saw counts twice in messages and octets."
    if len(protocols) < 2:
        chapters = [_chapter(summary, findings, origin, detail, name="")]
    else:
        sent = Counter({protocol: _part(summary, protocol).messages for protocol in protocols})
        shown = sorted(protocol for protocol, _ in sent.most_common(detail.chapters))
        parts = [
            _chapter(_part(summary, name), findings.of(name), origin, detail, name=name) for name in shown
        ]
        chapters = [_overview(summary, findings, origin, parts), *parts]
        if len(shown) < len(protocols):
            lead += f" The {len(protocols) - len(shown)} protocols with the fewest messages have no chapter."
    return View(f"Captured traffic: {', '.join(protocols) or 'nothing'}", lead, tuple(chapters))


def _part(summary: Summary, protocol: str) -> Summary:
    """Return the part of the summary about one protocol."""
    parts = {
        name: tuple(item for item in getattr(summary, name) if item.protocol == protocol)
        for name in ("taps", "types", "errors", "transfers")
    }
    return replace(summary, timeline=summary.timelines.get(protocol, Timeline(1.0, ())), **parts)


def _overview(summary: Summary, findings: Findings, origin: datetime, chapters: Sequence[Chapter]) -> Chapter:
    """Return the whole capture: all protocols in one chart, segments and taps.

    A card leads to the section of the first of `chapters` with such faults.
    """
    by_protocol: dict[int, dict[str, int]] = {}
    for protocol, timeline in summary.timelines.items():
        for bucket in timeline.buckets:
            by_protocol.setdefault(bucket.index, {})[protocol] = bucket.messages
    width_s = summary.timeline.width_s
    buckets = tuple(
        Bucket(index, sum(types.values()), 0, types) for index, types in sorted(by_protocol.items())
    )
    sql = query("messages_over_time", None, _millis(width_s))
    chart = plot_messages(Timeline(width_s, buckets), origin, sql=sql)
    sections = _sections("", (chart, segment_table(summary), tap_table(summary)))
    cards = [card for chapter in reversed(chapters) for card in chapter.cards]
    anchors = {card.section: card.anchor for card in cards if card.anchor}
    return Chapter("", "", _cards(summary, findings, sections, None, anchors), sections)


def _chapter(summary: Summary, findings: Findings, origin: datetime, detail: Detail, *, name: str) -> Chapter:
    """Return the chapter of one protocol; faults come before amounts, and empty tables are omitted.

    Without a name it is the only one, and has segments and taps, too.
    """
    protocol = next(iter(protocols_of(summary)), None)
    names = short_names([tap.tap for tap in summary.taps])
    prefix = f"{name}-" if name else ""
    width_ms = _millis(summary.timeline.width_s)
    contents = (
        plot_messages(
            summary.timeline, origin, bars=detail.bars, sql=query("messages_over_time", protocol, width_ms)
        ),
        error_table(summary),
        violation_table(findings),
        None if name else segment_table(summary),
        plot_latency(
            findings.latency, sql=query("latencies", protocol, BINS_PER_DECADE, PER_DECADE // BINS_PER_DECADE)
        ),
        topic_table(findings),
        plot_conversations(findings, names, sql=query("conversations", protocol)),
        silence_table(findings, names),
        plot_peers(findings, sql=query("edges", protocol)),
        type_table(summary),
        file_table(findings),
        transfer_table(summary, findings),
        None if name else tap_table(summary),
    )
    sections = _sections(prefix, contents)
    chosen = sorted(
        findings.violations[: detail.raw], key=lambda item: (item.reading, item.ts, item.tap, item.seq)
    )
    messages = tuple(
        _raw_message(f"{prefix}message-{number}", item, names) for number, item in enumerate(chosen, 1)
    )
    cards = _cards(summary, findings, sections, protocol if name else None, {})
    lead = " ".join(_quiet(summary, findings, protocol)) if summary.messages else ""
    cut = listed_text(len(messages), sum(map(findings.total, READINGS)), "violations")
    note = join_sentences(cut, "The first of each kind are among them; the concurrent reading comes first.")
    return Chapter(name, lead, cards, sections, messages, note)


def _sections(prefix: str, contents: Iterable[Figure | Table | None]) -> tuple[Section, ...]:
    present = (one for one in contents if one and (isinstance(one, Figure) or one.values or one.note))
    return tuple(Section(prefix + one.title.lower().replace(" ", "-"), one.title, one) for one in present)


def _quiet(summary: Summary, findings: Findings, protocol: str | None) -> Iterator[str]:
    """Yield sentences about kinds of findings that are absent."""
    if protocol not in known_protocols():
        yield "No package for this protocol is known here, so its messages are counted but not decoded."
        return
    if not summary.undecoded:
        yield "Every message decoded."
    if findings.presences:
        if not findings.violation_counts:
            yield "No message violated the dialog."
        if not findings.silences:
            yield "No side was silent for longer than its protocol allows."
    if not takes_time(protocol or ""):
        yield "This protocol has no requests, jobs or files whose duration could be measured."
    elif not findings.topics:
        yield "No request, job or file was seen."


def _raw_message(anchor: str, item: Violation, names: Mapping[str, str]) -> RawMessage:
    who = f"the {role_name(item.protocol, item.sender)}" if item.sender else "an unknown sender"
    frames = () if item.frames is None else dump_frames(item.protocol, item.frames, item.sizes, item.sender)
    place = (
        f"{item.peer or item.conversation}, message {count_text(item.seq)} of tap {names.get(item.tap, item.tap)}, "
        f"{item.reading} reading"
    )
    return RawMessage(
        anchor=anchor,
        time=item.ts.isoformat(sep=" ", timespec="milliseconds")[:23],
        place=join_sentences(f"{place[:CELL_TITLE_LENGTH]}.", "" if frames else NO_FRAMES),
        text=f"{item.message or 'An undecodable message'} from {who}: {item.text}"[: 2 * CELL_TITLE_LENGTH],
        frames=frames,
    )


def _cards(
    summary: Summary,
    findings: Findings,
    sections: Sequence[Section],
    protocol: str | None,
    anchors: Mapping[str, str],
) -> tuple[Card, ...]:
    """Return the cards of one protocol, or without one of the whole capture.

    `anchors` has sections of other chapters.
    """
    cards = [
        Card("messages", count_text(summary.messages), summary.messages, query("count_messages", protocol)),
        Card("octets", size_text(summary.octets), summary.octets, query("count_octets", protocol)),
    ]
    if buckets := summary.timeline.buckets:
        most, width_s = max(bucket.messages for bucket in buckets), summary.timeline.width_s
        sql = query("peak", protocol, _millis(width_s))
        cards.append(Card("peak", count_text(most), most, sql, note=rate_text(width_s)))
    times = [datetime.fromisoformat(text) for tap in summary.taps for text in (tap.first, tap.last) if text]
    if times:
        cards.append(Card("time range", span_text((max(times) - min(times)).total_seconds())))
    if protocol is None:
        taps = len({tap.tap for tap in summary.taps})
        cards.append(Card("taps", count_text(taps), taps, query("count_taps")))
    faults = [("not decoded", summary.undecoded, query("count_undecoded", protocol), ERRORS_TITLE, "")]
    if findings.total("conversations"):
        strict = findings.total("strict")
        note = f"strict reading: {count_text(strict)}" if strict else ""
        sql = query("count_violations", protocol, "concurrent")
        faults.append(("violations", findings.total("concurrent"), sql, VIOLATIONS_TITLE, note))
    if protocol is None:
        faults.append(("dropped", summary.dropped, query("count_dropped"), "Taps", ""))
        if summary.missing:
            faults.append(("missing", summary.missing, query("count_missing"), "Taps", ""))
        if aside := summary.segments.quarantined:
            faults.append(("segments set aside", aside, query("count_quarantined"), SEGMENTS_TITLE, ""))
    anchors = {**anchors, **{section.title: section.anchor for section in sections}}
    for name, number, sql, title, note in faults:
        anchor = anchors.get(title, "") if number else ""
        cards.append(Card(name, count_text(number), number, sql, title, note, anchor))
    return tuple(cards)


def _millis(seconds: float) -> int:
    return round(seconds * 1000)
