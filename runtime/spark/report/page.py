"""A summary as one HTML file that needs nothing else: no script, no network, no fonts of its own.

This module turns a `Summary` into flat views with every string decided; the template lays them out. All that
came from the wire (peers, findings) is text to the template, which escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import jinja2
import msgspec

from specwire.runtime.capture.identity import tap_name
from specwire.runtime.spark.pipeline.summary import Summary, TapCount
from specwire.runtime.spark.protocols import role_name
from specwire.runtime.spark.report.chart import Chart, draw_bars
from specwire.runtime.spark.report.figures import count_text, size_text, span_text

UNDECODED = "(undecoded)"
TAP_COLUMNS = 6
"""With more taps than this the types are summed over the taps."""

TRANSFERS_SHOWN = 20
ERRORS_SHOWN = 20


class Table(msgspec.Struct, frozen=True):
    """A table of texts; the first `labels` columns are words, the others figures."""

    title: str
    note: str
    labels: int
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The style of each column."""
        return tuple("word" if at < self.labels else "figure" for at in range(len(self.head)))


class Fact(msgspec.Struct, frozen=True):
    """One figure of the page's head; `kind` is ``grave`` where it is a reason to worry."""

    name: str
    value: str
    kind: str = "plain"


class View(msgspec.Struct, frozen=True):
    """All that the template shows."""

    title: str
    lead: str
    facts: tuple[Fact, ...]
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]


def render_report(summary: Summary) -> str:
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
    return environment.get_template("report.html.j2").render(view=build_view(summary))


def build_view(summary: Summary) -> View:
    """Return what the page shows, as texts."""
    tables = (type_table(summary), error_table(summary), _tap_table(summary), _transfer_table(summary))
    return View(
        title=f"Captured traffic: {', '.join(_protocols(summary))}",
        lead=_lead(summary),
        facts=_facts(summary),
        charts=(
            draw_bars(summary.timeline, "messages", "Messages over time"),
            draw_bars(summary.timeline, "octets", "Octets over time"),
        ),
        tables=tuple(table for table in tables if table),
    )


def type_table(summary: Summary) -> Table:
    """Return messages by type and sender, a column for each tap where the taps are few."""
    names = short_names([tap.tap for tap in summary.taps if tap.messages])
    apart = 1 < len(names) <= TAP_COLUMNS
    counts: dict[tuple[str, ...], dict[str, int]] = {}
    octets: dict[tuple[str, ...], int] = {}
    for item in summary.types:
        key = (
            *_if_several(summary, item.protocol),
            item.message or UNDECODED,
            role_name(item.protocol, item.sender),
        )
        counts.setdefault(key, dict.fromkeys(names, 0))[item.tap] += item.messages
        octets[key] = octets.get(key, 0) + item.octets
    rows: list[tuple[str, ...]] = []
    for key, by_tap in sorted(counts.items(), key=lambda item: (UNDECODED in item[0], item[0])):
        each = map(count_text, by_tap.values()) if apart else ()
        rows.append((*key, *each, count_text(sum(by_tap.values())), size_text(octets[key])))
    labels = (*_if_several(summary, "Protocol"), "Message", "Sent by")
    taps = (*names.values(), "All taps") if apart else ("Messages",)
    note = "A message that two taps saw is counted for each of them." if len(names) > 1 else ""
    return Table("Messages by type and direction", note, len(labels), (*labels, *taps, "Octets"), tuple(rows))


def error_table(summary: Summary) -> Table:
    """Return what did not decode, by reason."""
    names = short_names([tap.tap for tap in summary.taps])
    rows: list[tuple[str, ...]] = []
    for error in summary.errors[:ERRORS_SHOWN]:
        protocol = _if_several(summary, error.protocol)
        rows.append((*protocol, error.text, error.kind, names[error.tap], count_text(error.messages)))
    note = "Every message decoded."
    if rows:
        note = "A finding stands for all of its field and kind; the tables named _errors have every frame."
    labels = (*_if_several(summary, "Protocol"), "Finding", "Kind", "Tap")
    return Table("Messages that did not decode", note, len(labels), (*labels, "Messages"), tuple(rows))


def _tap_table(summary: Summary) -> Table:
    rows: list[tuple[str, ...]] = []
    for tap in summary.taps:
        seen = (tap.tap, tap.protocol, _clock(tap.first), _clock(tap.last))
        traffic = (count_text(tap.messages), size_text(tap.octets))
        rows.append((*seen, *traffic, count_text(tap.errors), count_text(tap.dropped)))
    head = ("Tap", "Protocol", "First (UTC)", "Last (UTC)", "Messages", "Octets", "Not decoded", "Dropped")
    return Table("Taps", "", 4, head, tuple(rows))


def _transfer_table(summary: Summary) -> Table | None:
    if not summary.transfers:
        return None
    names = short_names([tap.tap for tap in summary.taps])
    rows: list[tuple[str, ...]] = []
    for item in summary.transfers[:TRANSFERS_SHOWN]:
        files = map(count_text, (item.begun, item.ended, item.deleted, item.chunks))
        place = (names[item.tap], item.conversation, item.peer)
        rows.append((*place, *files, size_text(item.octets), span_text(item.seconds)))
    hidden = len(summary.transfers) - len(rows)
    note = f"The largest conversations; {count_text(hidden)} more are in summary.json." if hidden else ""
    head = ("Tap", "Conversation", "Peer", "Files begun", "Ended", "Deleted", "Chunks", "Octets", "Time")
    return Table("Files transferred", note, 3, head, tuple(rows))


def _facts(summary: Summary) -> tuple[Fact, ...]:
    return (
        Fact("messages", count_text(summary.messages)),
        Fact("octets", size_text(summary.octets)),
        Fact("taps", count_text(len(summary.taps))),
        Fact("time range", span_text(_seconds(summary.taps))),
        Fact("not decoded", count_text(summary.undecoded), _kind(summary.undecoded)),
        Fact("dropped", count_text(summary.dropped), _kind(summary.dropped)),
    )


def _kind(faults: int) -> str:
    return "grave" if faults else "plain"


def _lead(summary: Summary) -> str:
    starts = [tap.first for tap in summary.taps if tap.first]
    ends = [tap.last for tap in summary.taps if tap.last]
    if not starts:
        return f"Capture {summary.capture}, without messages."
    return f"Capture {summary.capture}, from {_date(min(starts))} to {_date(max(ends))} UTC."


def short_names(taps: Sequence[str]) -> dict[str, str]:
    """Return each tap's name, or its id where two taps share a name."""
    names = [tap_name(tap) for tap in taps]
    return {tap: name if names.count(name) == 1 else tap for tap, name in zip(taps, names, strict=True)}


def _if_several(summary: Summary, protocol: str) -> tuple[str, ...]:
    """Return the cell of the protocol column, which only a capture of several protocols has."""
    return (protocol,) if len(_protocols(summary)) > 1 else ()


def _protocols(summary: Summary) -> list[str]:
    return sorted({tap.protocol for tap in summary.taps if tap.protocol})


def _seconds(taps: Sequence[TapCount]) -> float:
    times = [datetime.fromisoformat(text) for tap in taps for text in (tap.first, tap.last) if text]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def _date(text: str) -> str:
    return text[:19].replace("T", " ")


def _clock(text: str | None) -> str:
    return text[11:23] if text else ""
