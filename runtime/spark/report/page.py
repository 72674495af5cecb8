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
from pathlib import Path
from typing import NamedTuple, TypeVar

import jinja2
import msgspec
from markupsafe import Markup, escape
from msgspec.structs import replace

from specwire.runtime.log.text import show
from specwire.runtime.spark.answers.protocol_specifics import takes_time
from specwire.runtime.spark.pipeline.counts import STRETCHES
from specwire.runtime.spark.pipeline.summary import (
    Bucket,
    ErrorCount,
    Summary,
    TapCount,
    Timeline,
    Transfer,
    TypeCount,
)
from specwire.runtime.spark.protocols import known_protocols, role_name
from specwire.runtime.spark.report import queries
from specwire.runtime.spark.report.charts import plot_conversations, plot_latency, plot_messages
from specwire.runtime.spark.report.findings import Findings, Violation
from specwire.runtime.spark.report.peers import plot_peers
from specwire.runtime.spark.report.raw import RawFrame, dump_frames
from specwire.runtime.spark.report.svg import SERIES, Figure
from specwire.runtime.spark.report.tables import (
    ERRORS_TITLE,
    VIOLATIONS_TITLE,
    Table,
    error_table,
    file_table,
    protocols_of,
    segment_table,
    short_names,
    silence_table,
    tap_table,
    topic_table,
    transfer_table,
    type_table,
    violation_table,
)
from specwire.runtime.spark.report.text import EPOCH, THIN_SPACE, count_text, rate_text, size_text, span_text

MOST_OCTETS = 1_000_000
"""Maximum size of the page; a larger page is made again with less detail."""
RAW_SHOWN = 20
"""Maximum number of violations of a protocol whose raw messages are shown."""
CHAPTERS_SHOWN = 12


class Detail(NamedTuple):
    """Limits for each protocol: raw messages, bars over time, and chapters."""

    raw: int = RAW_SHOWN
    bars: int = STRETCHES
    chapters: int = CHAPTERS_SHOWN


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

Item = TypeVar("Item", TapCount, TypeCount, ErrorCount, Transfer)


class Card(msgspec.Struct, frozen=True):
    """One figure of the head of the page or of a chapter.

    Attributes:
        number: the value that `sql` returns; None where there is no query.
        kind: ``grave`` if the number indicates a problem.
        anchor: of the section that explains it.
        note: a line below the number.
    """

    name: str
    value: str
    number: int | None = None
    sql: str = ""
    kind: str = "plain"
    anchor: str = ""
    note: str = ""


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
    note: str


class Chapter(msgspec.Struct, frozen=True):
    """The overview, which has no title, or one protocol."""

    anchor: str
    title: str
    lead: str
    cards: tuple[Card, ...]
    sections: tuple[Section, ...]
    messages: tuple[RawMessage, ...] = ()

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

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of all chapters."""
        return tuple(section for chapter in self.chapters for section in chapter.sections)


def render_report(summary: Summary, findings: Findings, *, most_octets: int = MOST_OCTETS) -> str:
    """Return the report as HTML, with less detail if it would exceed `most_octets`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
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
    sent = Counter({protocol: _part(summary, protocol).messages for protocol in protocols})
    shown = sorted(protocol for protocol, _ in sent.most_common(detail.chapters))
    if len(protocols) < 2:
        chapters = [_chapter(summary, findings, "", detail)]
    else:
        parts = [_chapter(_part(summary, name), findings.of(name), name, detail) for name in shown]
        chapters = [_overview(summary, findings, parts), *parts]
    lead = _lead(summary)
    if len(shown) < len(protocols):
        lead += f" {len(protocols) - len(shown)} protocols with fewer messages have no chapter."
    return View(f"Captured traffic: {', '.join(protocols) or 'nothing'}", lead, tuple(chapters))


def _part(summary: Summary, protocol: str) -> Summary:
    """Return the part of the summary about one protocol."""
    return replace(
        summary,
        taps=_of(summary.taps, protocol),
        types=_of(summary.types, protocol),
        errors=_of(summary.errors, protocol),
        transfers=_of(summary.transfers, protocol),
        timeline=summary.timelines.get(protocol, Timeline(1.0, ())),
    )


def _of(items: Iterable[Item], protocol: str) -> tuple[Item, ...]:
    return tuple(item for item in items if item.protocol == protocol)


def _overview(summary: Summary, findings: Findings, chapters: Sequence[Chapter]) -> Chapter:
    """The whole capture: all protocols in one chart, segments and taps.

    A card leads to the section of the first of `chapters` with such faults.
    """
    by_protocol: dict[int, dict[str, int]] = {}
    for protocol, timeline in summary.timelines.items():
        for bucket in timeline.buckets:
            by_protocol.setdefault(bucket.index, {})[protocol] = bucket.messages
    width_s = summary.timeline.width_s
    buckets = (Bucket(index, sum(types.values()), 0, types) for index, types in sorted(by_protocol.items()))
    sections = _sections(
        "",
        (
            plot_messages(
                Timeline(width_s, tuple(buckets)),
                _begin(summary),
                unit="protocol",
                sql=queries.messages_over_time(None, width_s),
            ),
            segment_table(summary),
            tap_table(summary),
        ),
    )
    faults = (
        next(section for section in chapter.sections if section.title == card_title)
        for card_title, name in ((ERRORS_TITLE, "not decoded"), (VIOLATIONS_TITLE, "violations"))
        for chapter in chapters
        if any(card.name == name and card.number for card in chapter.cards)
    )
    # Later sections must not displace earlier ones.
    linked = (*sections, *reversed(tuple(faults)))
    return Chapter("", "", "", _cards(summary, findings, linked, None), sections)


def _chapter(summary: Summary, findings: Findings, title: str, detail: Detail) -> Chapter:
    """One protocol; faults come before amounts, and empty tables are omitted."""
    protocol = next(iter(protocols_of(summary)), None)
    names = short_names([tap.tap for tap in summary.taps])
    prefix = f"{title}-" if title else ""
    contents = (
        plot_messages(
            summary.timeline,
            _begin(summary),
            bars=detail.bars,
            sql=queries.messages_over_time(protocol, summary.timeline.width_s),
        ),
        error_table(summary),
        violation_table(findings),
        None if title else segment_table(summary),
        plot_latency(findings.latency, sql=queries.latencies(protocol)),
        topic_table(findings),
        plot_conversations(findings.presences, findings.silences, names, sql=queries.conversations(protocol)),
        silence_table(findings, names),
        plot_peers(findings.edges, sql=queries.edges(protocol)),
        type_table(summary),
        file_table(findings),
        transfer_table(summary),
        None if title else tap_table(summary),
    )
    sections = _sections(prefix, contents)
    messages = tuple(
        _raw_message(f"{prefix}message-{number}", item, names)
        for number, item in enumerate(choose_violations(findings.violations, detail.raw), 1)
    )
    lead = " ".join(_quiet(summary, findings, protocol)) if summary.messages else ""
    cards = _cards(summary, findings, sections, protocol if title else None)
    return Chapter(title, title, lead, cards, sections, messages)


def _sections(prefix: str, contents: Iterable[Figure | Table | None]) -> tuple[Section, ...]:
    present = (one for one in contents if one and (isinstance(one, Figure) or one.values or one.note))
    return tuple(Section(prefix + one.title.lower().replace(" ", "-"), one.title, one) for one in present)


def _quiet(summary: Summary, findings: Findings, protocol: str | None) -> Iterator[str]:
    """Yield sentences about kinds of findings that are absent."""
    if not findings.violation_counts and findings.presences:
        yield "No message violated the dialog."
    if not findings.silences and findings.presences:
        yield "No side was silent for longer than its protocol allows."
    if protocol in known_protocols():
        if not takes_time(protocol or ""):
            yield "This protocol has no requests, jobs or files whose duration could be measured."
        elif not findings.topics:
            yield "No request, job or file was seen."
    else:
        yield "No package for this protocol is known here, so its messages are counted but not decoded."


def _begin(summary: Summary) -> datetime:
    """Return when the first stretch of the timeline begins; stretches are counted from 1970."""
    starts = [datetime.fromisoformat(tap.first) for tap in summary.taps if tap.first]
    width = timedelta(seconds=summary.timeline.width_s)
    return EPOCH + (min(starts, default=EPOCH) - EPOCH) // width * width


def choose_violations(found: Sequence[Violation], number: int = RAW_SHOWN) -> list[Violation]:
    """Return `number` of them in their order.

    The first of each kind, then the second ones, and so on.
    """
    seen: Counter[tuple[str | None, ...]] = Counter()
    turns: list[tuple[int, int]] = []
    for place, item in enumerate(found):
        kind = (item.protocol, item.reading, item.kind, item.message)
        turns.append((seen[kind], place))
        seen[kind] += 1
    return [found[place] for place in sorted(place for _, place in sorted(turns)[:number])]


def _raw_message(anchor: str, item: Violation, names: Mapping[str, str]) -> RawMessage:
    who = f"the {role_name(item.protocol, item.sender)}" if item.sender else "an unknown sender"
    tap = names.get(item.tap, item.tap)
    place = f"{item.peer or item.conversation}, message {count_text(item.seq)} of tap {tap}, {item.reading} reading"
    frames = () if item.frames is None else dump_frames(item.protocol, item.frames, item.sizes, item.sender)
    return RawMessage(
        anchor=anchor,
        time=item.ts.isoformat(sep=" ", timespec="milliseconds")[:23],
        place=place[:CELL_TITLE_LENGTH],
        text=f"{item.message or 'An undecodable message'} from {who}: {item.text}"[: 2 * CELL_TITLE_LENGTH],
        frames=frames,
        note="" if frames else NO_FRAMES,
    )


def _cards(
    summary: Summary, findings: Findings, sections: Sequence[Section], protocol: str | None
) -> tuple[Card, ...]:
    anchors = {section.title: section.anchor for section in sections}
    counts = Counter({item.reading: 0 for item in findings.violation_counts})
    for item in findings.violation_counts:
        counts[item.reading] += item.violations
    strict = f"concurrent reading; strict: {count_text(counts['strict'])}" if counts["strict"] else ""
    cards = [
        Card("messages", count_text(summary.messages), summary.messages, queries.count_messages(protocol)),
        Card("octets", size_text(summary.octets), summary.octets, queries.count_octets(protocol)),
    ]
    if summary.timeline.buckets:
        most = max(bucket.messages for bucket in summary.timeline.buckets)
        width_s = summary.timeline.width_s
        cards.append(
            Card(f"most {rate_text(width_s)}", count_text(most), most, queries.busiest(protocol, width_s))
        )
    if summary.messages:
        cards.append(Card("time range", span_text(_seconds(summary.taps))))
    whole = protocol is None
    if whole:
        taps = len({tap.tap for tap in summary.taps})
        cards.append(Card("taps", count_text(taps), taps, queries.count_taps()))
    faults = [
        ("not decoded", summary.undecoded, queries.count_undecoded(protocol), ERRORS_TITLE, ""),
        (
            "violations",
            counts["concurrent"],
            queries.count_violations(protocol, "concurrent"),
            VIOLATIONS_TITLE,
            strict,
        ),
    ]
    if whole:
        faults.append(("dropped", summary.dropped, queries.count_dropped(), "Taps", ""))
    if whole and summary.missing:
        faults.append(("missing", summary.missing, queries.count_missing(), "Taps", ""))
    if whole and (aside := summary.segments.quarantined):
        faults.append(("segments set aside", aside, queries.count_quarantined(), "Segments set aside", ""))
    for name, number, sql, title, note in faults:
        kind, anchor = ("grave", anchors.get(title, "")) if number else ("plain", "")
        cards.append(Card(name, count_text(number), number, sql, kind, anchor, note))
    return tuple(cards)


def _lead(summary: Summary) -> str:
    starts = [tap.first for tap in summary.taps if tap.first]
    ends = [tap.last for tap in summary.taps if tap.last]
    if not starts:
        return f"Capture {summary.capture} has no messages."
    return f"Capture {summary.capture}, from {_date(min(starts))} to {_date(max(ends))} UTC."


def _seconds(taps: Sequence[TapCount]) -> float:
    times = [datetime.fromisoformat(text) for tap in taps for text in (tap.first, tap.last) if text]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def _date(text: str) -> str:
    return text[:19].replace("T", " ")
