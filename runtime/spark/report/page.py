"""A summary and the findings as one HTML file that needs nothing else: no script, no network, no fonts of its own.

This module turns them into flat views with every string decided; the template lays them out. All that came from the
wire (peers, findings, octets) is text to the template, which escapes it; figures are SVG of our own making, in which
matplotlib has escaped it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import jinja2
import msgspec

from specwire.runtime.spark.pipeline.summary import Summary, TapCount
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.drawing import SERIES, Figure
from specwire.runtime.spark.report.figures import count_text, size_text, span_text
from specwire.runtime.spark.report.found import Findings, Violation
from specwire.runtime.spark.report.plots import plot_heartbeats, plot_latency, plot_messages, plot_peers
from specwire.runtime.spark.report.raw import RawFrame, dump_frames
from specwire.runtime.spark.report.tables import (
    Table,
    error_table,
    file_table,
    protocols_of,
    segment_table,
    tap_table,
    topic_table,
    transfer_table,
    type_table,
    violation_table,
)

RAW_SHOWN = 20
"""Violations whose raw messages are shown."""

NO_FRAMES = "Its octets are not kept: the layer of captured frames was left out, or the tap kept no payloads."


class Fact(msgspec.Struct, frozen=True):
    """One figure of the page's head; `kind` is ``grave`` where it is a reason to worry."""

    name: str
    value: str
    kind: str = "plain"


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
    sections: tuple[Figure | Table, ...]
    findings: tuple[Finding, ...]
    series: tuple[int, ...] = tuple(range(len(SERIES)))


def render_report(summary: Summary, findings: Findings) -> str:
    """Return the report as HTML."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests["figure"] = lambda section: isinstance(section, Figure)
    return environment.get_template("report.html.j2").render(view=build_view(summary, findings))


def build_view(summary: Summary, findings: Findings) -> View:
    """Return what the page shows, as texts."""
    sections = (
        plot_messages(summary.timeline),
        type_table(summary),
        plot_latency(findings.latency),
        topic_table(findings),
        file_table(findings),
        transfer_table(summary),
        plot_heartbeats(findings.presences, findings.silences),
        plot_peers(findings.edges),
        error_table(summary),
        tap_table(summary),
        segment_table(summary),
        violation_table(findings),
    )
    return View(
        title=f"Captured traffic: {', '.join(protocols_of(summary)) or 'nothing'}",
        lead=_lead(summary),
        facts=_facts(summary, findings),
        sections=tuple(section for section in sections if section),
        findings=tuple(
            _finding(number, item) for number, item in enumerate(findings.violations[:RAW_SHOWN], 1)
        ),
    )


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


def _facts(summary: Summary, findings: Findings) -> tuple[Fact, ...]:
    broken = sum(item.violations for item in findings.violation_counts if item.reading == "concurrent")
    facts = (
        Fact("messages", count_text(summary.messages)),
        Fact("octets", size_text(summary.octets)),
        Fact("taps", count_text(len(summary.taps))),
        Fact("time range", span_text(_seconds(summary.taps))),
        Fact("not decoded", count_text(summary.undecoded), _kind(summary.undecoded)),
        Fact("dropped", count_text(summary.dropped), _kind(summary.dropped)),
        Fact("violations", count_text(broken), _kind(broken)),
    )
    missing = Fact("missing", count_text(summary.missing), "grave")
    aside = Fact("segments set aside", count_text(summary.segments.quarantined), "grave")
    return (
        *facts,
        *([missing] if summary.missing else []),
        *([aside] if summary.segments.quarantined else []),
    )


def _kind(faults: int) -> str:
    return "grave" if faults else "plain"


def _lead(summary: Summary) -> str:
    starts = [tap.first for tap in summary.taps if tap.first]
    ends = [tap.last for tap in summary.taps if tap.last]
    if not starts:
        return f"Capture {summary.capture}, without messages."
    return f"Capture {summary.capture}, from {_date(min(starts))} to {_date(max(ends))} UTC."


def _seconds(taps: Sequence[TapCount]) -> float:
    times = [datetime.fromisoformat(text) for tap in taps for text in (tap.first, tap.last) if text]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def _date(text: str) -> str:
    return text[:19].replace("T", " ")
