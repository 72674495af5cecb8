"""A summary and the findings as one HTML file that needs nothing else: no script, no network, no fonts of its own.

This module turns them into flat views with every string decided; the template lays them out. All that came from the
wire (peers, findings, octets) is text to the template, which escapes it; figures are SVG of our own making, in which
matplotlib has escaped it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from specwire.runtime.log.text import show
from specwire.runtime.spark.pipeline.summary import Summary, TapCount
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.drawing import SERIES, Figure
from specwire.runtime.spark.report.figures import THIN_SPACE, count_text, size_text, span_text
from specwire.runtime.spark.report.found import Findings, Violation
from specwire.runtime.spark.report.found_tables import (
    file_table,
    silence_table,
    topic_table,
    violation_table,
)
from specwire.runtime.spark.report.peers import plot_peers
from specwire.runtime.spark.report.plots import plot_heartbeats, plot_latency, plot_messages
from specwire.runtime.spark.report.raw import RawFrame, dump_frames
from specwire.runtime.spark.report.tables import (
    Table,
    error_table,
    protocols_of,
    segment_table,
    tap_table,
    transfer_table,
    type_table,
)
from specwire.runtime.spark.report.times import EPOCH

RAW_SHOWN = 20
"""Violations whose raw messages are shown."""

NO_FRAMES = "Its octets are not kept: the layer of captured frames was left out, or the tap kept no payloads."


class Fact(msgspec.Struct, frozen=True):
    """One figure of the page's head; `kind` is ``grave`` where it is a reason to worry, which section `anchor` tells."""

    name: str
    value: str
    kind: str = "plain"
    anchor: str = ""


class Section(msgspec.Struct, frozen=True):
    """A figure or a table, where the list of contents finds it."""

    anchor: str
    title: str
    content: Figure | Table


class Finding(msgspec.Struct, frozen=True):
    """One violation: where it was, the sentence, and the raw message under the anchor that the list links to."""

    anchor: str
    time: str
    place: str
    text: str
    frames: tuple[RawFrame, ...]
    note: str


class View(msgspec.Struct, frozen=True):
    """All that the template shows; figures and tables stand in one list, in the order of the page."""

    title: str
    lead: str
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    findings: tuple[Finding, ...]
    series: tuple[int, ...] = tuple(range(len(SERIES)))


def render_report(summary: Summary, findings: Findings) -> str:
    """Return the report as HTML."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        finalize=_escape_unprintable,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests["figure"] = lambda content: isinstance(content, Figure)
    return environment.get_template("report.html.j2").render(view=build_view(summary, findings))


def _escape_unprintable(value: object) -> object:
    """Escape unprintable characters of a text from captured traffic; keep markup."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return show(value, keep=THIN_SPACE)


def build_view(summary: Summary, findings: Findings) -> View:
    """Return what the page shows, as texts."""
    sections = _sections(summary, findings)
    return View(
        title=f"Captured traffic: {', '.join(protocols_of(summary)) or 'nothing'}",
        lead=_lead(summary),
        facts=_facts(summary, findings, {section.title: section.anchor for section in sections}),
        sections=sections,
        findings=tuple(
            _finding(number, item) for number, item in enumerate(choose_violations(findings.violations), 1)
        ),
    )


def _sections(summary: Summary, findings: Findings) -> tuple[Section, ...]:
    """Return what there is, faults before amounts; tables that would be empty and say nothing are left out."""
    contents = (
        plot_messages(summary.timeline, _begin(summary)),
        error_table(summary),
        violation_table(findings),
        segment_table(summary),
        plot_latency(findings.latency),
        topic_table(findings),
        plot_heartbeats(findings.presences, findings.silences),
        silence_table(findings),
        plot_peers(findings.edges),
        type_table(summary),
        file_table(findings),
        transfer_table(summary),
        tap_table(summary),
    )
    there = (one for one in contents if one and (isinstance(one, Figure) or one.rows or one.note))
    return tuple(Section(one.title.lower().replace(" ", "-"), one.title, one) for one in there)


def _begin(summary: Summary) -> datetime:
    """When the first stretch of the timeline begins: stretches are laid from 1970 on."""
    starts = [datetime.fromisoformat(tap.first) for tap in summary.taps if tap.first]
    width = timedelta(seconds=summary.timeline.width_s)
    return EPOCH + (min(starts, default=EPOCH) - EPOCH) // width * width


def choose_violations(found: Sequence[Violation]) -> list[Violation]:
    """Return `RAW_SHOWN` of them in their order: the first of each kind, then the second ones; many may be all alike."""
    seen: Counter[tuple[str | None, ...]] = Counter()
    turns: list[tuple[int, int]] = []
    for place, item in enumerate(found):
        kind = (item.protocol, item.reading, item.kind, item.message)
        turns.append((seen[kind], place))
        seen[kind] += 1
    return [found[place] for place in sorted(place for _, place in sorted(turns)[:RAW_SHOWN])]


def _finding(number: int, item: Violation) -> Finding:
    who = f"the {role_name(item.protocol, item.sender)}" if item.sender else "somebody"
    place = f"{item.peer or item.conversation}, message {count_text(item.seq)} of tap {item.tap}, {item.reading} reading"
    frames = () if item.frames is None else dump_frames(item.protocol, item.frames, item.sizes, item.sender)
    return Finding(
        anchor=f"message-{number}",
        time=item.ts.isoformat(sep=" ", timespec="milliseconds")[:23],
        place=place,
        text=f"{item.message or 'Something that did not decode'} from {who}: {item.text}",
        frames=frames,
        note="" if frames else NO_FRAMES,
    )


def _facts(summary: Summary, findings: Findings, anchors: Mapping[str, str]) -> tuple[Fact, ...]:
    broken = sum(item.violations for item in findings.violation_counts if item.reading == "concurrent")
    aside = summary.segments.quarantined
    faults = (
        ("not decoded", summary.undecoded, "Messages that did not decode"),
        ("dropped", summary.dropped, "Taps"),
        ("violations", broken, "Violations of the dialogs"),
        *([("missing", summary.missing, "Taps")] if summary.missing else []),
        *([("segments set aside", aside, "Segments set aside")] if aside else []),
    )
    return (
        Fact("messages", count_text(summary.messages)),
        Fact("octets", size_text(summary.octets)),
        Fact("taps", count_text(len(summary.taps))),
        *([Fact("time range", span_text(_seconds(summary.taps)))] if summary.messages else []),
        *(
            Fact(name, count_text(number), "grave", anchors.get(title, ""))
            if number
            else Fact(name, count_text(number))
            for name, number, title in faults
        ),
    )


def _lead(summary: Summary) -> str:
    starts = [tap.first for tap in summary.taps if tap.first]
    ends = [tap.last for tap in summary.taps if tap.last]
    if not starts:
        return f"Capture {summary.capture}, without messages: there is nothing to show."
    return f"Capture {summary.capture}, from {_date(min(starts))} to {_date(max(ends))} UTC."


def _seconds(taps: Sequence[TapCount]) -> float:
    times = [datetime.fromisoformat(text) for tap in taps for text in (tap.first, tap.last) if text]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def _date(text: str) -> str:
    return text[:19].replace("T", " ")
